#include "autograd/view/record.h"

#include <algorithm>
#include <utility>

#include "autograd/ops.h"

namespace prenorm::view {

Tensor copy_of(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  const NoGrad no_grad;
  return clone(tensor.detach());
}

void Record::add_node(const std::shared_ptr<const Node>& node, const Tensors& inputs, const Tensors& outputs) {
  RecordedNode made;
  made.node = node;
  made.scope = node->scope();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Ref ref = inputs[i].defined() ? value_of(inputs[i], node->edges()[i], made.scope) : Ref{};
    made.inputs.push_back(ref);
    if (!ref.given()) {
      made.input_values.emplace_back();
      continue;
    }
    const RecordedNode& source = (*this)[ref.node];
    const auto output = static_cast<std::size_t>(ref.output);
    const bool as_made = source.versions[output] == inputs[i].version();
    made.input_values.push_back(as_made ? source.outputs[output] : copy_of(inputs[i]));
  }
  for (const Tensor& output : outputs) {
    made.outputs.push_back(copy_of(output));
    made.versions.push_back(output.defined() ? output.version() : 0);
  }
  ops_[node.get()] = size();
  nodes_.push_back(std::move(made));
}

// The recorded value that an input is; a leaf or constant is recorded when it is first used, and again when it is used
// after a write, as are the parameters in the next step of a training loop.
Ref Record::value_of(const Tensor& input, const Edge& edge, const std::string& scope) {
  if (edge.node == nullptr) {
    const Key key{input.impl().get(), 0, input.version()};
    if (const auto known = sources_.find(key); known != sources_.end()) return {known->second, 0};
    return add_source(RecordedNode::Kind::constant, key, input, edge, scope);
  }
  if (const auto op = ops_.find(edge.node.get()); op != ops_.end()) return {op->second, edge.output};
  const Key key{edge.node.get(), edge.output, input.version()};
  if (const auto known = sources_.find(key); known != sources_.end()) return {known->second, 0};
  return add_source(RecordedNode::Kind::leaf, key, input, edge, scope);
}

Ref Record::add_source(RecordedNode::Kind kind, const Key& key, const Tensor& input, const Edge& edge,
                       std::string scope) {
  RecordedNode source;
  source.kind = kind;
  source.node = edge.node;
  source.handle = input;
  source.scope = std::move(scope);
  source.outputs = {copy_of(input)};
  source.versions = {input.version()};
  const std::int64_t id = size();
  sources_[key] = id;
  if (edge.node != nullptr) newest_[{edge.node.get(), edge.output}] = id;
  nodes_.push_back(std::move(source));
  return {id, 0};
}

Ref Record::find(const Edge& edge) const {
  if (const auto op = ops_.find(edge.node.get()); op != ops_.end()) return {op->second, edge.output};
  const auto source = newest_.find({edge.node.get(), edge.output});
  return source == newest_.end() ? Ref{} : Ref{source->second, 0};
}

void Record::begin_run(const std::vector<Edge>& outputs, const Tensors& cotangents, const std::vector<Edge>& inputs) {
  RecordedRun run;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Ref root = find(outputs[i]);
    if (!root.given()) continue;  // of a graph made before the recording
    run.roots.push_back(root);
    run.cotangents.push_back(copy_of(cotangents[i]));
  }
  for (const Edge& input : inputs) run.targets.push_back(find(input));
  runs_.push_back(std::move(run));
}

void Record::add_call(const std::shared_ptr<const Node>& node, const Tensors& cotangents, const Tensors& gradients) {
  const auto copies = [](const Tensors& tensors) {
    Tensors out;
    for (const Tensor& tensor : tensors) out.push_back(copy_of(tensor));
    return out;
  };
  const std::size_t run = runs_.empty() ? 0 : runs_.size() - 1;
  const auto add = [&](std::int64_t id, BackwardCall call) {
    nodes_[static_cast<std::size_t>(id)].calls.push_back(std::move(call));
    order_.push_back(id);
  };
  if (const auto op = ops_.find(node.get()); op != ops_.end()) {
    return add(op->second, {run, copies(cotangents), copies(gradients)});
  }
  // A leaf, or a node from before the recording, of which only the outputs that were used here are known.
  for (std::size_t output = 0; output < cotangents.size(); ++output) {
    const auto source = newest_.find({node.get(), static_cast<std::int64_t>(output)});
    if (source == newest_.end() || !cotangents[output].defined()) continue;
    add(source->second, {run, {copy_of(cotangents[output])}, {}});
  }
}

void Record::add_name(const Tensor& tensor, std::string name) {
  check(tensor.defined(), "view::Recording: the tensor to be called \"", name, "\" is undefined");
  names_.push_back({std::move(name), tensor});
}

std::vector<std::int64_t> Record::backward_order() const {
  std::vector<bool> seen(nodes_.size(), false);
  std::vector<std::int64_t> order;
  for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
    if (seen[static_cast<std::size_t>(*it)]) continue;
    seen[static_cast<std::size_t>(*it)] = true;
    order.push_back(*it);
  }
  std::reverse(order.begin(), order.end());
  return order;
}

std::vector<std::string> Record::names(const NamedTensors& more) const {
  std::map<const void*, std::string> by_tensor;
  std::vector<std::string> names(nodes_.size());
  for (const NamedTensors* list : {&names_, &more}) {
    for (const NamedTensor& named : *list) {
      check(named.tensor.defined(), "view::Recording: the tensor to be called \"", named.path, "\" is undefined");
      by_tensor[named.tensor.impl().get()] = named.path;
      if (named.tensor.is_leaf()) continue;
      const auto op = ops_.find(named.tensor.node().get());
      if (op != ops_.end()) names[static_cast<std::size_t>(op->second)] = named.path;
    }
  }
  for (std::size_t id = 0; id < nodes_.size(); ++id) {
    if (!nodes_[id].handle.defined()) continue;
    const auto named = by_tensor.find(nodes_[id].handle.impl().get());
    if (named != by_tensor.end()) names[id] = named->second;
  }
  return names;
}

}  // namespace prenorm::view
