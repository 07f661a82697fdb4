#include "autograd/node.h"

#include <atomic>
#include <mutex>

#include "autograd/observer.h"
#include "autograd/scope.h"
#include "autograd/tensor_impl.h"

namespace prenorm {
namespace {

std::atomic<std::int64_t> live_nodes{0};
std::atomic<std::uint64_t> next_sequence{1};

// Frees nodes one after another. Left to the members' destructors, a chain of a million nodes would take a million
// stack frames; instead each node hands its edges to a list that the outermost destructor on this thread works off.
void destroy_iteratively(std::vector<Edge>& edges) {
  thread_local std::vector<Edge>* pending = nullptr;
  if (pending != nullptr) {
    for (Edge& edge : edges) {
      if (edge.node != nullptr) pending->push_back(std::move(edge));
    }
    return;
  }
  std::vector<Edge> list = std::move(edges);
  pending = &list;
  while (!list.empty()) {
    const Edge edge = std::move(list.back());
    list.pop_back();
  }
  pending = nullptr;
}

// The values that a call of backward_from() gives its node, innermost call on this thread.
struct GivenValues {
  const Node* node;
  const Tensors &inputs, &outputs;
};
thread_local const GivenValues* given_values = nullptr;

// Null where the node reads its saved values.
const Tensors* given_to(const Node& node, bool inputs) {
  if (given_values == nullptr || given_values->node != &node) return nullptr;
  return inputs ? &given_values->inputs : &given_values->outputs;
}

Tensor attach(const Tensor& data, const std::shared_ptr<Node>& node, std::int64_t output) {
  if (node == nullptr) return data;
  if (node->is_leaf()) return static_cast<const Leaf&>(*node).tensor();
  Tensor tensor = data.detach();
  tensor.impl()->node = node;
  tensor.impl()->output_index = output;
  return tensor;
}

}  // namespace

Edge edge_of(const Tensor& tensor) {
  if (!tensor.defined() || !tensor.requires_grad()) return {};
  Tensor::Impl& impl = *tensor.impl();
  if (impl.node != nullptr) return {impl.node, impl.output_index};
  static std::mutex mutex;  // several threads may compute with one leaf
  const std::lock_guard lock(mutex);
  std::shared_ptr<Node> leaf = impl.leaf.lock();
  if (leaf == nullptr) {
    leaf = std::make_shared<Leaf>(tensor);
    impl.leaf = leaf;
  }
  return {std::move(leaf), 0};
}

Node::Node() : scope_(Scope::path()) { live_nodes.fetch_add(1, std::memory_order_relaxed); }

Node::~Node() {
  live_nodes.fetch_sub(1, std::memory_order_relaxed);
  destroy_iteratively(edges_);
}

std::int64_t Node::live_count() { return live_nodes.load(std::memory_order_relaxed); }

Node::Value Node::describe(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {tensor.shape(), tensor.dtype(), true};
}

void Node::record(const Tensors& inputs, const Tensors& outputs) {
  check(sequence_ == 0, info().name, ": this node is in a graph already; make a new one for each call");
  sequence_ = next_sequence.fetch_add(1, std::memory_order_relaxed);
  edges_.reserve(inputs.size());
  inputs_.reserve(inputs.size());
  for (const Tensor& input : inputs) {
    edges_.push_back(edge_of(input));
    inputs_.push_back(describe(input));
  }
  for (const Tensor& output : outputs) outputs_.push_back(describe(output));

  const Saves wanted = saves();
  const auto save = [](const Tensors& values, const IndexSet& which, std::vector<Saved>& to) {
    if (which.empty()) return;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!which.contains(static_cast<std::int64_t>(i)) || !values[i].defined()) continue;
      to.push_back({values[i].detach(), values[i].version(), static_cast<std::int64_t>(i)});
    }
  };
  save(inputs, wanted.inputs, saved_inputs_);
  save(outputs, wanted.outputs, saved_outputs_);

  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined() || !is_float(outputs[i].dtype())) continue;
    Tensor::Impl& impl = *outputs[i].impl();
    impl.node = shared_from_this();
    impl.output_index = static_cast<std::int64_t>(i);
  }
}

const Tensor& Node::unpack(const std::vector<Saved>& saved, std::int64_t index, std::string_view kind) const {
  check(!released_, info().name, ": the values saved for backward are gone; see Node::was_released()");
  for (const Saved& value : saved) {
    if (value.index != index) continue;
    check(value.data.version() == value.version, info().name, ": ", kind, " ", index, " of shape ", value.data.shape(),
          " was saved for backward at version ", value.version, " and has been written to since, to version ",
          value.data.version(), "; write to a clone() instead");
    return value.data;
  }
  fail(info().name, ": backward asks for ", kind, " ", index, ", which saves() does not name or which was not given");
}

Tensor Node::input(std::int64_t index) const {
  if (const Tensors* given = given_to(*this, true)) return given->at(static_cast<std::size_t>(index));
  const Tensor& data = unpack(saved_inputs_, index, "input");
  if (!GradMode::enabled()) return data;
  return attach(data, edges_[index].node, edges_[index].output);
}

Tensor Node::output(std::int64_t index) const {
  if (const Tensors* given = given_to(*this, false)) return given->at(static_cast<std::size_t>(index));
  const Tensor& data = unpack(saved_outputs_, index, "output");
  if (!GradMode::enabled() || !is_float(data.dtype())) return data;
  return attach(data, std::const_pointer_cast<Node>(shared_from_this()), index);
}

void Node::backward_from(const Tensors& inputs, const Tensors& outputs, const Tensors& dy, GradientSink& dx) const {
  check(inputs.size() == inputs_.size() && outputs.size() == outputs_.size(), info().name,
        ": backward_from() was given ", inputs.size(), " inputs and ", outputs.size(), " outputs, the op has ",
        inputs_.size(), " and ", outputs_.size());
  const NoGrad no_grad;
  const GivenValues values{this, inputs, outputs};
  struct Restore {
    const GivenValues* outer = given_values;
    ~Restore() { given_values = outer; }
  } const restore;
  given_values = &values;
  backward(dy, dx);
}

Saves Node::factors() const {
  Saves saves;
  if (needs(0)) saves.inputs.insert(1);
  if (needs(1)) saves.inputs.insert(0);
  return saves;
}

void Node::release_saved() {
  saved_inputs_.clear();
  saved_outputs_.clear();
  released_ = true;
}

Node::PerOutput& Node::per_output(std::int64_t output) {
  for (PerOutput& entry : per_output_) {
    if (entry.output == output) return entry;
  }
  per_output_.push_back({output, std::make_shared<Hooks>(), {}});
  return per_output_.back();
}

Hooks& Node::hooks(std::int64_t output) { return *per_output(output).hooks; }

const Hooks* Node::find_hooks(std::int64_t output) const {
  for (const PerOutput& entry : per_output_) {
    if (entry.output == output) return entry.hooks.get();
  }
  return nullptr;
}

void Node::retain_grad(const Tensor& output) {
  auto& list = per_output(output.output_index()).retained;
  for (const auto& entry : list) {
    if (entry.lock() == output.impl()) return;
  }
  list.push_back(output.impl());
}

Tensors Node::retained(std::int64_t output) const {
  Tensors alive;
  for (const PerOutput& entry : per_output_) {
    if (entry.output != output) continue;
    for (const auto& weak : entry.retained) {
      if (auto impl = weak.lock()) alive.emplace_back(std::move(impl));
    }
  }
  return alive;
}

const OpInfo& Leaf::info() const {
  static constexpr OpInfo info{
      .name = "leaf", .formula = "x", .derivative = "x.grad += dx", .reference = "", .file = "autograd/engine.cpp"};
  return info;
}

Tensors apply_op(const std::shared_ptr<Node>& node, const Tensors& inputs) {
  Tensors outputs;
  {
    const NoGrad no_grad;
    const Observer::Inside inside;
    outputs = node->forward(inputs);
  }
  bool wanted = false;
  for (const Tensor& input : inputs) wanted = wanted || (input.defined() && input.requires_grad());
  if (!GradMode::enabled() || !wanted) {
    if (Observer::any_for_unrecorded()) Observer::tell_unrecorded(node->info().name, inputs, outputs);
    return outputs;
  }
  for (Tensor& output : outputs) {
    // An op that has nothing to do may hand its input back; the output's place in the graph is another one.
    for (const Tensor& input : inputs) {
      if (output.defined() && output.is(input)) output = output.detach();
    }
  }
  node->record(inputs, outputs);
  if (Observer::any()) Observer::tell_node_made(node, inputs, outputs);
  return outputs;
}

}  // namespace prenorm
