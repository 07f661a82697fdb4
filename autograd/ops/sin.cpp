// y = sin x, in radians.
//
//   dy/dx = cos x, so dx = dy * cos(x).

#include <cmath>

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

struct Sin final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "sin",
                                 .formula = "y = sin x",
                                 .derivative = "dx = dy * cos(x)",
                                 .reference = "",
                                 .file = "autograd/ops/sin.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    return {map("sin", in[0], [](auto x) { return std::sin(x); })};
  }

  Saves saves() const override { return {.inputs = {0}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override { dx.add(0, dy[0] * cos(input(0))); }
};

}  // namespace

Tensor sin(const Tensor& x) { return apply_op<Sin>({x})[0]; }

}  // namespace prenorm
