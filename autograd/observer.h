// Observers are told of every node made and of every call of backward on this thread. The viewer, the NaN check and the
// explainer of missing gradients are observers; the engine knows none of them.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "autograd/node.h"

namespace prenorm {

// Observes from construction to destruction, on the thread that made it. Several may observe at once.
class Observer {
 public:
  Observer();
  virtual ~Observer();
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  // After forward. The node's scope() tells the module path. Keeping the node keeps its graph alive.
  virtual void node_made(const std::shared_ptr<const Node>& /*node*/, const Tensors& /*inputs*/,
                         const Tensors& /*outputs*/) {}
  // Before a backward pass: from which outputs it starts, with which cotangents, and the inputs whose gradients grad()
  // was asked for; none where every leaf stores its own, as in Tensor::backward.
  virtual void backward_began(const std::vector<Edge>& /*outputs*/, const Tensors& /*cotangents*/,
                              const std::vector<Edge>& /*inputs*/) {}
  // After a node's backward: the cotangents it was given and the gradients it gave, one an input; undefined where none.
  // For a leaf: its total gradient as cotangent, and no gradients.
  virtual void backward_called(const std::shared_ptr<const Node>& /*node*/, const Tensors& /*cotangents*/,
                               const Tensors& /*gradients*/) {}

  // After an operation that left no node: grad mode is off, no input requires grad, or `op` has no derivative (argmax,
  // comparisons, writing in place). Not of operations within the forward of another, or within a run of backward.
  virtual void unrecorded(std::string_view /*op*/, const Tensors& /*inputs*/, const Tensors& /*outputs*/) {}

  static bool any();
  // Whether somebody is to be told of operations without a node, here and now.
  static bool any_for_unrecorded();
  static void tell_node_made(const std::shared_ptr<const Node>& node, const Tensors& inputs, const Tensors& outputs);
  static void tell_backward_began(const std::vector<Edge>& outputs, const Tensors& cotangents,
                                  const std::vector<Edge>& inputs);
  static void tell_backward_called(const std::shared_ptr<const Node>& node, const Tensors& cotangents,
                                   const Tensors& gradients);
  static void tell_unrecorded(std::string_view op, const Tensors& inputs, const Tensors& outputs);

  // While it lives, operations on this thread are parts of another one.
  class Inside {
   public:
    Inside();
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
  };
};

}  // namespace prenorm
