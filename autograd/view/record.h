// What a recording holds: every node with its values as they were, and every backward call. Plain data; the parts of
// the export (trace, checks, forks, norms, paths) read it and change nothing.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "autograd/node.h"

namespace prenorm::view {

// A value: output number `output` of a recorded node.
struct Ref {
  std::int64_t node = -1;  // -1: an optional input that was not given
  std::int64_t output = 0;
  bool given() const { return node >= 0; }
  friend auto operator<=>(const Ref&, const Ref&) = default;
};

// One call of a node's backward. Of a leaf: its gradient as cotangent, and no gradients.
struct BackwardCall {
  std::size_t run = 0;
  Tensors cotangents, gradients;
};

struct RecordedNode {
  // leaf: requires grad. Also a value computed before the recording began. constant: an input that does not.
  enum class Kind { op, leaf, constant };
  Kind kind = Kind::op;
  std::shared_ptr<const Node> node;  // of an op or a leaf
  Tensor handle;                     // of a leaf or constant: the user's own tensor, to know it by
  std::string scope;
  std::vector<Ref> inputs;
  // Copies: an optimiser writes its parameters in place after backward, and the record shows them as they were. Where
  // an input still is what its producer gave out, both share one copy.
  Tensors input_values, outputs;
  std::vector<std::uint64_t> versions;  // of the outputs when they were copied
  std::vector<BackwardCall> calls;

  bool is_op() const { return kind == Kind::op; }
  // An op from elsewhere may go by the name of one of the library's and be another.
  bool is_of_library() const { return is_op() && node->info().file.starts_with("autograd/ops/"); }
  std::string_view op() const {
    return kind == Kind::op ? node->info().name : kind == Kind::leaf ? "leaf" : "constant";
  }
};

// One backward pass.
struct RecordedRun {
  std::vector<Ref> roots;
  Tensors cotangents;        // one a root
  std::vector<Ref> targets;  // of grad(); empty: every leaf
};

class Record {
 public:
  void add_node(const std::shared_ptr<const Node>& node, const Tensors& inputs, const Tensors& outputs);
  void begin_run(const std::vector<Edge>& outputs, const Tensors& cotangents, const std::vector<Edge>& inputs);
  void add_call(const std::shared_ptr<const Node>& node, const Tensors& cotangents, const Tensors& gradients);
  void add_name(const Tensor& tensor, std::string name);

  const std::vector<RecordedNode>& nodes() const { return nodes_; }
  const RecordedNode& operator[](std::int64_t id) const { return nodes_[static_cast<std::size_t>(id)]; }
  std::int64_t size() const { return static_cast<std::int64_t>(nodes_.size()); }
  const std::vector<RecordedRun>& runs() const { return runs_; }
  // Node ids by their last backward call: when a leaf's gradient was final.
  std::vector<std::int64_t> backward_order() const;
  // What a node is called, by the names given so far and these; "" for most.
  std::vector<std::string> names(const NamedTensors& more = {}) const;

 private:
  using Key = std::tuple<const void*, std::int64_t, std::uint64_t>;  // a tensor or node, output, version
  Ref value_of(const Tensor& input, const Edge& edge, const std::string& scope);
  Ref find(const Edge& edge) const;
  Ref add_source(RecordedNode::Kind kind, const Key& key, const Tensor& input, const Edge& edge, std::string scope);

  std::vector<RecordedNode> nodes_;
  std::map<const Node*, std::int64_t> ops_;
  std::map<Key, std::int64_t> sources_;                                  // leaves and constants
  std::map<std::pair<const Node*, std::int64_t>, std::int64_t> newest_;  // of the leaf entries of a node's output
  std::vector<RecordedRun> runs_;
  std::vector<std::int64_t> order_;
  NamedTensors names_;
};

// A copy of a tensor's values, row-major, without a graph; undefined of an undefined one.
Tensor copy_of(const Tensor& tensor);

}  // namespace prenorm::view
