// What a Tensor handle points to. Internal: for tensor.cpp, node.cpp, engine.cpp and view/forks.cpp.
#pragma once

#include <memory>

#include "autograd/node.h"

namespace prenorm {

struct Tensor::Impl {
  std::shared_ptr<Storage> storage;
  std::int64_t offset = 0;
  Shape shape;
  Strides strides;
  DType dtype = float32;
  std::int64_t numel = 0;
  bool contiguous = true;

  // A leaf: requires_grad as set, and the node that stands for it in graphs while any graph uses it.
  bool requires_grad = false;
  std::weak_ptr<Node> leaf;
  std::shared_ptr<Hooks> hooks;
  // A computed tensor: output number `output_index` of `node`.
  std::shared_ptr<Node> node;
  std::int64_t output_index = 0;

  Tensor grad;  // detached: a gradient with a graph would lead back to this tensor
};

}  // namespace prenorm
