#include "autograd/observer.h"

#include <algorithm>

namespace prenorm {
namespace {

std::vector<Observer*>& observers() {
  thread_local std::vector<Observer*> list;
  return list;
}

thread_local int depth = 0;  // of operations within operations

}  // namespace

Observer::Observer() { observers().push_back(this); }
Observer::~Observer() { std::erase(observers(), this); }

bool Observer::any() { return !observers().empty(); }

bool Observer::any_for_unrecorded() { return depth == 0 && any(); }

Observer::Inside::Inside() { ++depth; }
Observer::Inside::~Inside() { --depth; }

void Observer::tell_node_made(const std::shared_ptr<const Node>& node, const Tensors& inputs, const Tensors& outputs) {
  for (std::size_t i = 0; i < observers().size(); ++i) observers()[i]->node_made(node, inputs, outputs);
}
void Observer::tell_backward_began(const std::vector<Edge>& outputs, const Tensors& cotangents,
                                   const std::vector<Edge>& inputs) {
  for (std::size_t i = 0; i < observers().size(); ++i) observers()[i]->backward_began(outputs, cotangents, inputs);
}
void Observer::tell_backward_called(const std::shared_ptr<const Node>& node, const Tensors& cotangents,
                                    const Tensors& gradients) {
  for (std::size_t i = 0; i < observers().size(); ++i) observers()[i]->backward_called(node, cotangents, gradients);
}

void Observer::tell_unrecorded(std::string_view op, const Tensors& inputs, const Tensors& outputs) {
  for (std::size_t i = 0; i < observers().size(); ++i) observers()[i]->unrecorded(op, inputs, outputs);
}

}  // namespace prenorm
