#include "autograd/view/trace.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "autograd/ops.h"

namespace prenorm::view {
namespace {

// Adds to slot(input), whatever is there, as the engine does: then sums have the same bits.
class Collect final : public GradientSink {
 public:
  using Slot = std::function<Tensor&(std::size_t input)>;
  Collect(const RecordedNode& node, const std::vector<bool>& wanted, Slot slot)
      : node_(node), wanted_(wanted), slot_(std::move(slot)) {}

  bool needs(std::int64_t input) const override {
    return node_.node->needs(input) && wanted_[static_cast<std::size_t>(input)];
  }
  void add(std::int64_t input, Tensor dx) override {
    if (!needs(input)) return;
    Tensor& gradient = slot_(static_cast<std::size_t>(input));
    gradient = sum_of(gradient, contiguous(dx.detach()));  // values of a record are read as row-major
  }
  Accumulator accumulator(std::int64_t input) override {
    Tensor& gradient = slot_(static_cast<std::size_t>(input));
    if (!gradient.defined()) {
      const Tensor& value = node_.input_values[static_cast<std::size_t>(input)];
      gradient = Tensor::empty(value.shape(), value.dtype());
      return {gradient, true};
    }
    gradient = copy_of(gradient);
    return {gradient, false};
  }

 private:
  const RecordedNode& node_;
  const std::vector<bool>& wanted_;
  Slot slot_;
};

void add_to(Tensors& sums, const Tensors& more) {
  if (sums.size() < more.size()) sums.resize(more.size());
  for (std::size_t i = 0; i < more.size(); ++i) sums[i] = sum_of(sums[i], more[i]);
}

std::map<Ref, Tensor> roots_of(const Record& record) {
  std::map<Ref, Tensor> roots;
  for (const RecordedRun& run : record.runs()) {
    for (std::size_t i = 0; i < run.roots.size(); ++i) {
      Tensor& root = roots[run.roots[i]];
      root = sum_of(root, run.cotangents[i]);
    }
  }
  return roots;
}

bool any_defined(const Tensors& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const Tensor& tensor) { return tensor.defined(); });
}

NodeTrace trace_of(const Record& record, const RecordedNode& node) {
  NodeTrace trace;
  trace.cotangents.resize(node.outputs.size());
  if (node.is_op()) {
    trace.gradients.resize(node.inputs.size());
    trace.asked.resize(node.inputs.size());
    trace.stems_from.resize(node.inputs.size());
  }
  for (const BackwardCall& call : node.calls) {
    trace.reached = true;
    add_to(trace.cotangents, call.cotangents);
    if (!node.is_op()) continue;
    add_to(trace.gradients, call.gradients);
    const bool all_leaves = record.runs().empty() || record.runs()[call.run].targets.empty();
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const bool asked = node.node->needs(static_cast<std::int64_t>(i)) && (all_leaves || call.gradients[i].defined());
      if (!asked) continue;
      trace.asked[i] = true;
      add_to(trace.stems_from[i], call.cotangents);
    }
  }
  return trace;
}

}  // namespace

Tensor sum_of(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  if (!b.defined()) return a;
  const NoGrad no_grad;
  return a + b;
}

Tensors backward_of(const RecordedNode& node, const Tensors& cotangents, const std::vector<bool>& wanted) {
  Tensors gradients(node.inputs.size());
  Collect sink(node, wanted, [&](std::size_t input) -> Tensor& { return gradients[input]; });
  node.node->backward_from(node.input_values, node.outputs, cotangents, sink);
  return gradients;
}

Trace recorded_trace(const Record& record) {
  Trace trace;
  for (const RecordedNode& node : record.nodes()) trace.nodes.push_back(trace_of(record, node));
  trace.roots = roots_of(record);
  return trace;
}

Trace broken_trace(const Record& record, const Trace& recorded, const Fault& fault) {
  Trace trace;
  trace.roots = recorded.roots;
  trace.nodes.resize(recorded.nodes.size());
  for (std::size_t id = 0; id < trace.nodes.size(); ++id) {
    trace.nodes[id].cotangents.resize(record.nodes()[id].outputs.size());
  }
  const auto cotangent = [&](const Ref& ref) -> Tensor& {
    return trace.nodes[static_cast<std::size_t>(ref.node)].cotangents[static_cast<std::size_t>(ref.output)];
  };
  for (const auto& [ref, root] : trace.roots) cotangent(ref) = root;
  // Inputs are older than the node that uses them: from the newest node down, each cotangent is complete in time.
  for (std::int64_t id = record.size() - 1; id >= 0; --id) {
    const RecordedNode& node = record[id];
    NodeTrace& here = trace.nodes[static_cast<std::size_t>(id)];
    if (!recorded[id].reached || !any_defined(here.cotangents)) continue;
    here.reached = true;
    if (!node.is_op()) continue;
    here.asked = recorded[id].asked;
    here.gradients = backward_of(node, here.cotangents, here.asked);
    if (fault.node == id) fault.change(node, here.cotangents, here.gradients);
    here.stems_from.assign(node.inputs.size(), here.cotangents);
    const auto overwrites = [&](const Ref& to) { return fault.overwrites && fault.node == to.node; };
    if (fault.node != id && std::none_of(node.inputs.begin(), node.inputs.end(), overwrites)) {
      Collect sink(node, here.asked, [&](std::size_t input) -> Tensor& { return cotangent(node.inputs[input]); });
      node.node->backward_from(node.input_values, node.outputs, here.cotangents, sink);
      continue;
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Ref& to = node.inputs[i];
      if (!to.given() || !here.gradients[i].defined()) continue;
      Tensor& total = cotangent(to);
      total = overwrites(to) ? here.gradients[i] : sum_of(total, here.gradients[i]);
    }
  }
  return trace;
}

}  // namespace prenorm::view
