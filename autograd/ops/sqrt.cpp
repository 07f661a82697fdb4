// y = sqrt(x): NaN below 0.
//
//   x = y^2, so dx/dy = 2 y and dy/dx = 1 / (2 y): dx = dy / (2 y).
//   At 0 the slope is infinite; the gradient is taken as 0 there, by an infinite divisor. (Infinite times the 0 that
//   often comes next, as in the norm of a zero vector, would be NaN.)

#include <cmath>

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

struct Sqrt final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "sqrt",
                                 .formula = "y = sqrt(x)",
                                 .derivative = "dx = dy / (2 * y), 0 at y = 0",
                                 .reference = "",
                                 .file = "autograd/ops/sqrt.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    return {map("sqrt", in[0], [](auto x) { return std::sqrt(x); })};
  }

  Saves saves() const override { return {.outputs = {0}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    const Tensor y = output(0);
    dx.add(0, dy[0] / (2 * masked_fill(y, eq(y, scalar_like(y, 0)), INFINITY)));
  }
};

}  // namespace

Tensor sqrt(const Tensor& x) { return apply_op<Sqrt>({x})[0]; }

}  // namespace prenorm
