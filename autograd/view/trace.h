// The backward pass of a record, node by node: as it was recorded, or redone with a fault.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "autograd/view/fault.h"
#include "autograd/view/record.h"

namespace prenorm::view {

struct NodeTrace {
  bool reached = false;     // backward ran here, or a leaf's gradient arrived
  Tensors cotangents;       // one an output
  Tensors gradients;        // one an input; of a leaf none
  std::vector<bool> asked;  // whether the gradient of an input was wanted: an undefined one is then zero
  // The cotangents that the gradient of an input stems from. Those above, unless several backward passes asked for
  // different gradients.
  std::vector<Tensors> stems_from;
};

// Where several backward passes went through a node, all is summed over them, as in .grad; backward is linear.
struct Trace {
  std::vector<NodeTrace> nodes;
  std::map<Ref, Tensor> roots;  // what backward() began with

  const NodeTrace& operator[](std::int64_t id) const { return nodes[static_cast<std::size_t>(id)]; }
};

Trace recorded_trace(const Record& record);
// Each recorded node's own backward again, from the same roots, with the fault in one place. Hooks are not run.
Trace broken_trace(const Record& record, const Trace& recorded, const Fault& fault);

// A node's own backward from recorded values; only the gradients that are `wanted`, one an input.
Tensors backward_of(const RecordedNode& node, const Tensors& cotangents, const std::vector<bool>& wanted);

// a + b, where undefined is zero.
Tensor sum_of(const Tensor& a, const Tensor& b);

}  // namespace prenorm::view
