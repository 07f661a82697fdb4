// Node: what a differentiable operation leaves behind for backward.
//
// An op is a type derived from Node: its attributes are members, set by its constructor, and it has three functions:
// info(), forward() and backward(). None of them changes state, draws random numbers or frees anything (a dropout mask
// is an input, the engine frees), so any node can be run again from given inputs, in float64 too. The gradient checker,
// the viewer and ops that users define outside the library all stand on this.
//
//   struct Square final : Node {
//     const OpInfo& info() const override { static constexpr OpInfo info{.name = "square", …}; return info; }
//     Tensors forward(const Tensors& in) const override { return {in[0] * in[0]}; }
//     Saves saves() const override { return {.inputs = {0}}; }
//     void backward(const Tensors& dy, GradientSink& dx) const override { dx.add(0, 2 * input(0) * dy[0]); }
//   };
//   Tensor square(const Tensor& x) { return apply_op<Square>({x})[0]; }
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/grad_mode.h"
#include "autograd/tensor.h"

namespace prenorm {

// What an op says of itself: to error messages, the checker's table and the viewer.
struct OpInfo {
  std::string_view name;        // the free function's name, "layer_norm"
  std::string_view formula;     // "y = gamma * x_hat + beta, x_hat = (x - mean(x)) / sqrt(var(x) + eps)"
  std::string_view derivative;  // "dbeta = sum(dy); dgamma = sum(dy * x_hat); dx = …"
  std::string_view reference;   // paper and equation, where there is one
  std::string_view file;        // where forward and backward stand, "autograd/ops/layer_norm.cpp"
};

// A set of input or output numbers below 64.
class IndexSet {
 public:
  IndexSet() = default;
  IndexSet(std::initializer_list<int> indices) {
    for (int i : indices) insert(i);
  }
  void insert(int i) { bits_ |= std::uint64_t{1} << i; }
  bool contains(std::int64_t i) const { return i < 64 && (bits_ >> i & 1) != 0; }
  bool empty() const { return bits_ == 0; }

 private:
  std::uint64_t bits_ = 0;
};

// The inputs and outputs whose values backward asks for.
struct Saves {
  IndexSet inputs = {};
  IndexSet outputs = {};
};

// Where backward puts the gradients of a node's inputs.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  // Whether anybody wants the gradient of this input; where not, computing it is wasted work.
  virtual bool needs(std::int64_t input) const = 0;
  // Adds `dx`, of the input's shape and dtype, to the gradient of an input. May share storage with a cotangent.
  virtual void add(std::int64_t input, Tensor dx) = 0;

  // Memory to add to, instead of a tensor to hand over: contiguous, of the input's shape and dtype. A `fresh` one holds
  // rubbish and must be written whole. Only while grad mode is off: writes are not recorded. Good until the sink is
  // called again, since another input may be the same tensor.
  struct Accumulator {
    Tensor tensor;
    bool fresh = false;
  };
  virtual Accumulator accumulator(std::int64_t input) = 0;
};

// A way from a node to one of the values it was computed from: output number `output` of an older node.
struct Edge {
  std::shared_ptr<Node> node;  // null: no gradient is wanted along here
  std::int64_t output = 0;
};
Edge edge_of(const Tensor& tensor);

// Hooks in the order they were registered; a removed one leaves an empty place.
struct Hooks {
  std::vector<GradientHook> gradient;
  std::vector<AccumulateHook> post_accumulate;
};

class Node : public std::enable_shared_from_this<Node> {
 public:
  Node();
  virtual ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  virtual const OpInfo& info() const = 0;
  // All outputs from the inputs; recording is off while it runs. Optional inputs may be undefined. An op may have more
  // outputs than its free function gives out: what backward wants to know again (rstd) is an output that is saved.
  virtual Tensors forward(const Tensors& inputs) const = 0;
  virtual Saves saves() const { return {}; }
  // From dL/d(output) to dL/d(input). An undefined cotangent is zero; at least one is defined. Grad mode is on when the
  // gradients are to be differentiated again: then everything must be computed with ops.
  virtual void backward(const Tensors& dy, GradientSink& dx) const = 0;
  // backward() with input() and output() taken from here instead of from the saved values, which may be gone: to run a
  // recorded node again, with other cotangents or in float64. Without a graph; the node does not change.
  void backward_from(const Tensors& inputs, const Tensors& outputs, const Tensors& dy, GradientSink& dx) const;

  // For backward: whether an input had a gradient to give when the op ran, and the saved values. With grad mode on
  // these lead into the graph, otherwise they are data. Throws if they were freed or have been written to since.
  bool needs(std::int64_t input) const { return edges_[input].node != nullptr; }
  bool has_input(std::int64_t input) const { return inputs_[input].given; }
  Tensor input(std::int64_t index) const;
  Tensor output(std::int64_t index) const;
  const Shape& input_shape(std::int64_t index) const { return inputs_[index].shape; }
  const Shape& output_shape(std::int64_t index) const { return outputs_[index].shape; }
  DType input_dtype(std::int64_t index) const { return inputs_[index].dtype; }
  DType output_dtype(std::int64_t index) const { return outputs_[index].dtype; }
  // The cotangent, or zeros where it is undefined.
  Tensor cotangent(const Tensors& dy, std::int64_t output) const;

  std::int64_t input_count() const { return static_cast<std::int64_t>(inputs_.size()); }
  std::int64_t output_count() const { return static_cast<std::int64_t>(outputs_.size()); }
  const std::vector<Edge>& edges() const { return edges_; }  // one an input
  const std::string& scope() const { return *scope_; }       // module path that it was made under
  std::uint64_t sequence() const { return sequence_; }       // larger is newer; 0 for leaves
  virtual bool is_leaf() const { return false; }

  // saves() of a product: inputs 0 and 1, each only where the other one's gradient is wanted.
  Saves factors() const;

  // Graph state that the engine keeps here.
  void release_saved();
  bool was_released() const { return released_; }
  Hooks& hooks(std::int64_t output);  // made on first use
  const Hooks* find_hooks(std::int64_t output) const;
  void retain_grad(const Tensor& output);
  // The tensors that asked to keep the gradient of this output and are still alive.
  Tensors retained(std::int64_t output) const;

  // Nodes alive in this process: back to where it was once all tensors of a graph are gone.
  static std::int64_t live_count();

 private:
  friend Tensors apply_op(const std::shared_ptr<Node>& node, const Tensors& inputs);
  void record(const Tensors& inputs, const Tensors& outputs);

  struct Value {
    Shape shape;
    DType dtype = float32;
    bool given = false;
  };
  struct Saved {
    Tensor data;
    std::uint64_t version;
    std::int64_t index;
  };
  struct PerOutput {
    std::int64_t output;
    std::shared_ptr<Hooks> hooks;
    std::vector<std::weak_ptr<Tensor::Impl>> retained;
  };
  static Value describe(const Tensor& tensor);
  const Tensor& unpack(const std::vector<Saved>& saved, std::int64_t index, std::string_view kind) const;
  PerOutput& per_output(std::int64_t output);

  std::vector<Edge> edges_;
  std::vector<Value> inputs_, outputs_;
  std::vector<Saved> saved_inputs_, saved_outputs_;
  std::vector<PerOutput> per_output_;  // empty for nearly all nodes
  std::shared_ptr<const std::string> scope_;
  std::uint64_t sequence_ = 0;
  bool released_ = false;
};

// A leaf's place in graphs: where its gradient arrives. Keeps the leaf alive while a graph needs it.
class Leaf final : public Node {
 public:
  explicit Leaf(const Tensor& tensor) : tensor_(tensor) {}
  const OpInfo& info() const override;
  Tensors forward(const Tensors&) const override { return {tensor_}; }
  void backward(const Tensors&, GradientSink&) const override {}  // the engine stores the gradient
  bool is_leaf() const override { return true; }
  const Tensor& tensor() const { return tensor_; }

 private:
  Tensor tensor_;
};

// Runs the node's forward and, where grad mode is on and an input requires grad, records it in the graph.
Tensors apply_op(const std::shared_ptr<Node>& node, const Tensors& inputs);
template <class Op, class... Attributes>
Tensors apply_op(const Tensors& inputs, Attributes&&... attributes) {
  return apply_op(std::make_shared<Op>(std::forward<Attributes>(attributes)...), inputs);
}

}  // namespace prenorm
