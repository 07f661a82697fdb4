// y = cos x, in radians.
//
//   dy/dx = -sin x, so dx = -dy * sin(x).

#include <cmath>

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

struct Cos final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "cos",
                                 .formula = "y = cos x",
                                 .derivative = "dx = -dy * sin(x)",
                                 .reference = "",
                                 .file = "autograd/ops/cos.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    return {map("cos", in[0], [](auto x) { return std::cos(x); })};
  }

  Saves saves() const override { return {.inputs = {0}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override { dx.add(0, -(dy[0] * sin(input(0)))); }
};

}  // namespace

Tensor cos(const Tensor& x) { return apply_op<Cos>({x})[0]; }

}  // namespace prenorm
