#include "autograd/missing_gradients.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "autograd/grad_mode.h"
#include "autograd/scope.h"

namespace prenorm {
namespace {

std::string where(std::string_view op, const std::string& scope) {
  return std::string(op) + (scope.empty() ? "" : " in " + scope);
}

MissingGradient make(const NamedTensor& parameter, GradientLost reason, std::string_view op, const std::string& scope,
                     const std::string& why) {
  return {parameter.path, reason, std::string(op), scope, "no gradient reached " + parameter.path + ": " + why};
}

MissingGradient frozen(const NamedTensor& parameter) {
  return make(parameter, GradientLost::frozen, "", "", "it is frozen; requires_grad_() lets it learn");
}

// The nodes of the loss's graph that lead to the leaf, newest first; empty if it is not in the graph.
std::vector<const Node*> nodes_to(const Tensor& loss, const Tensor& leaf) {
  std::vector<const Node*> all;
  std::unordered_map<const Node*, bool> leads;
  if (loss.node() != nullptr) all.push_back(loss.node().get());
  if (!all.empty()) leads.emplace(all[0], false);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const Edge& edge : all[i]->edges()) {
      if (edge.node != nullptr && leads.emplace(edge.node.get(), false).second) all.push_back(edge.node.get());
    }
  }
  // Edges lead to older nodes only, so one pass from the oldest decides all.
  std::sort(all.begin(), all.end(), [](const Node* a, const Node* b) { return a->sequence() < b->sequence(); });
  for (const Node* node : all) {
    bool& it_does = leads.at(node);
    if (node->is_leaf()) it_does = static_cast<const Leaf*>(node)->tensor().is(leaf);
    for (const Edge& edge : node->edges()) it_does = it_does || (edge.node != nullptr && leads.at(edge.node.get()));
  }
  std::erase_if(all, [&](const Node* node) { return !leads.at(node); });
  std::reverse(all.begin(), all.end());
  return all;
}

bool lead_on(const std::vector<const Node*>& nodes, const Edge& edge) {
  return std::find(nodes.begin(), nodes.end(), edge.node.get()) != nodes.end();
}

void check_arguments(const Tensor& loss, const NamedTensors& parameters) {
  check(loss.defined(), "missing_gradients: the loss is undefined");
  for (const NamedTensor& parameter : parameters)
    check(parameter.tensor.defined(), "missing_gradients: ", parameter.path, " is undefined");
}

MissingGradient no_backward(const NamedTensor& parameter) {
  return make(parameter, GradientLost::no_backward, "", "", "backward() was not called on this loss");
}

}  // namespace

std::string_view name(GradientLost reason) {
  constexpr std::string_view names[] = {"frozen",      "frozen_in_use", "never_used",  "grad_mode_off",
                                        "detached",    "no_derivative", "not_in_loss", "not_in_graph",
                                        "no_backward", "gave_none",     "cleared",     "not_there"};
  return names[static_cast<int>(reason)];
}

std::vector<MissingGradient> missing_gradients(const Tensor& loss, const NamedTensors& parameters) {
  check_arguments(loss, parameters);
  std::vector<MissingGradient> missing;
  for (const NamedTensor& parameter : parameters) {
    if (parameter.tensor.grad().defined()) continue;
    if (!parameter.tensor.requires_grad()) {
      missing.push_back(frozen(parameter));
    } else if (loss.is(parameter.tensor)) {
      missing.push_back(no_backward(parameter));
    } else if (nodes_to(loss, parameter.tensor).empty()) {
      missing.push_back(make(parameter, GradientLost::not_in_graph, "", "",
                             "the loss's graph does not lead to it; it was not used, or cut off on the way: a "
                             "GradientWatch, made before the forward pass, tells where"));
    } else if (!loss.node()->was_released()) {
      missing.push_back(no_backward(parameter));
    } else {
      missing.push_back(make(parameter, GradientLost::not_there, "", "",
                             "backward ran; the gradient was cleared since (zero_grad), or an operation on the way "
                             "gave none: a GradientWatch, made before the forward pass, tells which"));
    }
  }
  return missing;
}

// --- the watch -------------------------------------------------------------------------------------------------------

GradientWatch::Value GradientWatch::value_of(const Tensor& tensor) {
  if (!tensor.defined()) return {kUnknown, nullptr, false};
  const auto [entry, is_new] = memories_.try_emplace(tensor.storage(), static_cast<Memory>(memories_.size()));
  return {entry->second, tensor.impl().get(), tensor.requires_grad()};
}

GradientWatch::Memory GradientWatch::find(const Tensor& tensor) const {
  const auto found = memories_.find(tensor.storage());
  return found == memories_.end() ? kUnknown : found->second;
}

void GradientWatch::note(std::string_view op, const std::string& scope, const Tensors& inputs, const Tensors& outputs) {
  Step step{std::string(op), scope, {}, {}, GradMode::enabled()};
  for (const Tensor& input : inputs) step.inputs.push_back(value_of(input));
  for (const Tensor& output : outputs) step.outputs.push_back(value_of(output));
  steps_.push_back(std::move(step));
}

void GradientWatch::node_made(const std::shared_ptr<const Node>& node, const Tensors& inputs, const Tensors& outputs) {
  note(node->info().name, node->scope(), inputs, outputs);
}

void GradientWatch::unrecorded(std::string_view op, const Tensors& inputs, const Tensors& outputs) {
  note(op, *Scope::path(), inputs, outputs);
}

void GradientWatch::backward_called(const std::shared_ptr<const Node>& node, const Tensors& /*cotangents*/,
                                    const Tensors& gradients) {
  if (node->is_leaf()) {
    arrived_.insert(value_of(static_cast<const Leaf&>(*node).tensor()).memory);
    return;
  }
  std::vector<bool>& given = ran_[node->sequence()];
  given.resize(gradients.size());
  for (std::size_t i = 0; i < gradients.size(); ++i) given[i] = given[i] || gradients[i].defined();
}

std::vector<MissingGradient> GradientWatch::missing(const Tensor& loss, const NamedTensors& parameters) const {
  check_arguments(loss, parameters);
  std::vector<MissingGradient> missing;
  for (const NamedTensor& parameter : parameters) {
    if (!parameter.tensor.grad().defined()) missing.push_back(explain(loss, parameter));
  }
  return missing;
}

// What became of a parameter's value on its way to the loss.
struct GradientWatch::Fate {
  enum class Kind { unused, lost, cut, connected } kind = Kind::unused;
  GradientLost reason = GradientLost::never_used;  // of a cut
  std::size_t step = 0;                            // the first to use it; of a cut: where it happened
  Memory memory = kUnknown;                        // what was cut off
};

// A tensor within the graph and a detached one on the same memory are told apart by requires_grad.
GradientWatch::Fate GradientWatch::follow(const Tensor& parameter, const Tensor& loss) const {
  std::map<std::pair<Memory, bool>, Fate> fates;  // of the values that were computed from the parameter
  const auto look_up = [&](Memory memory, bool requires_grad) {
    const auto found = fates.find({memory, requires_grad});
    return found == fates.end() ? nullptr : &found->second;
  };
  const Memory start = find(parameter);
  if (start == kUnknown) return {};
  fates[{start, true}].kind = Fate::Kind::connected;

  // What an input of a step brings with it, if it comes from the parameter.
  const auto fate_of = [&](const Value& input, std::size_t s) -> std::optional<Fate> {
    if (const Fate* fate = look_up(input.memory, input.requires_grad)) return *fate;
    const Fate* fate = look_up(input.memory, true);
    if (fate == nullptr) return std::nullopt;
    if (fate->kind == Fate::Kind::cut) return *fate;
    const bool itself = input.tensor == parameter.impl().get();
    return Fate{Fate::Kind::cut, itself ? GradientLost::frozen_in_use : GradientLost::detached, s, input.memory};
  };

  std::optional<std::size_t> first_use;
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    std::optional<Fate> joined;  // the best that an input brings: connected, else the earliest cut
    for (const Value& input : step.inputs) {
      const std::optional<Fate> fate = fate_of(input, s);
      if (!fate) continue;
      if (!first_use) first_use = s;
      const bool better = joined && joined->kind == Fate::Kind::cut &&
                          (fate->kind == Fate::Kind::connected || fate->step < joined->step);
      if (!joined || better) joined = fate;
    }
    if (!joined) continue;
    for (const Value& output : step.outputs) {
      if (output.memory == kUnknown) continue;
      Fate fate = *joined;
      if (fate.kind == Fate::Kind::connected && !output.requires_grad) {
        const GradientLost reason = step.grad_mode ? GradientLost::no_derivative : GradientLost::grad_mode_off;
        fate = {Fate::Kind::cut, reason, s, kUnknown};
      }
      fates.try_emplace({output.memory, output.requires_grad}, fate);
    }
  }
  if (!first_use) return {};
  const Memory end = find(loss);
  const Fate* fate = look_up(end, loss.requires_grad());
  if (fate == nullptr && look_up(end, true) != nullptr) {  // nothing came after it was cut off
    return {Fate::Kind::cut, GradientLost::detached, steps_.size(), end};
  }
  return fate == nullptr ? Fate{Fate::Kind::lost, GradientLost::not_in_loss, *first_use, start} : *fate;
}

// The last step before `before` that gave out this memory; null where none did.
const GradientWatch::Step* GradientWatch::maker(Memory memory, std::size_t before) const {
  for (std::size_t s = before; s-- > 0;) {
    for (const Value& output : steps_[s].outputs) {
      if (output.memory == memory) return &steps_[s];
    }
  }
  return nullptr;
}

MissingGradient GradientWatch::explain(const Tensor& loss, const NamedTensor& parameter) const {
  if (!parameter.tensor.requires_grad()) return frozen(parameter);
  if (loss.is(parameter.tensor) || !nodes_to(loss, parameter.tensor).empty()) return explain_in_graph(loss, parameter);
  const Fate fate = follow(parameter.tensor, loss);
  if (fate.kind == Fate::Kind::unused) {
    return make(parameter, GradientLost::never_used, "", "", "no operation used it");
  }
  const bool at_the_end = fate.step == steps_.size();  // cut off after the last step
  const Step& step = steps_[at_the_end ? fate.step - 1 : fate.step];
  const std::string at = at_the_end ? "it became the loss" : where(step.op, step.scope);
  const auto because = [&](GradientLost reason, const std::string& why) {
    return make(parameter, reason, step.op, step.scope, why);
  };
  if (fate.kind != Fate::Kind::cut) {
    return because(GradientLost::not_in_loss, at + " used it, but the loss was not computed from any of that");
  }
  switch (fate.reason) {
    case GradientLost::frozen_in_use:
      return because(fate.reason, "requires_grad was off when " + at + " used it");
    case GradientLost::grad_mode_off:
      return because(fate.reason, at + " ran under NoGrad");
    case GradientLost::no_derivative:
      return because(fate.reason, at + " has no derivative");
    default: {
      const Step* source = fate.memory == find(parameter.tensor) ? nullptr : maker(fate.memory, fate.step);
      if (source == nullptr) return because(fate.reason, "it was detached before " + at);
      return make(parameter, fate.reason, source->op, source->scope,
                  "the output of " + where(source->op, source->scope) + " was detached before " + at);
    }
  }
}

MissingGradient GradientWatch::explain_in_graph(const Tensor& loss, const NamedTensor& parameter) const {
  if (arrived_.contains(find(parameter.tensor))) {
    return make(parameter, GradientLost::cleared, "", "", "it arrived, and was cleared since (zero_grad)");
  }
  const std::vector<const Node*> nodes = nodes_to(loss, parameter.tensor);
  if (loss.is_leaf() || !ran_.contains(loss.node()->sequence())) return no_backward(parameter);
  for (const Node* node : nodes) {
    const auto ran = ran_.find(node->sequence());
    if (ran == ran_.end()) continue;
    for (std::size_t i = 0; i < ran->second.size(); ++i) {
      if (ran->second[i] || !lead_on(nodes, node->edges()[i])) continue;
      return make(parameter, GradientLost::gave_none, node->info().name, node->scope(),
                  "the backward of " + where(node->info().name, node->scope()) + " gave its input " +
                      std::to_string(i) + " no gradient");
    }
  }
  return make(parameter, GradientLost::not_there, "", "", "backward ended before it came to it");
}

}  // namespace prenorm
