// y = max(x, 0) (Nair, Hinton 2010, "Rectified Linear Units Improve Restricted Boltzmann Machines").
//
//   The slope is 1 above 0 and 0 below: dx = dy where y > 0, else 0. At 0 there is a kink; the gradient is taken as 0
//   there. Both directions are written with <= so that a NaN stays one, and its gradient goes on.

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

struct Relu final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "relu",
                                 .formula = "y = max(x, 0)",
                                 .derivative = "dx = dy where y > 0, else 0",
                                 .reference = "Nair, Hinton 2010, Rectified Linear Units Improve RBMs",
                                 .file = "autograd/ops/relu.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    return {map("relu", in[0], [](auto x) { return x <= 0 ? decltype(x){0} : x; })};
  }

  Saves saves() const override { return {.outputs = {0}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    const Tensor y = output(0);
    if (GradMode::enabled()) return dx.add(0, masked_fill(dy[0], le(y, scalar_like(y, 0)), 0));
    dx.add(0, zip_float("relu", dy[0], y, [](auto g, auto y) { return y <= 0 ? decltype(g){0} : g; }));
  }
};

}  // namespace

Tensor relu(const Tensor& x) { return apply_op<Relu>({x})[0]; }

}  // namespace prenorm
