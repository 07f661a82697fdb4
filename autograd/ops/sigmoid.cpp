// y = 1 / (1 + e^-x).
//
//   dy/dx = e^-x / (1 + e^-x)^2 = y * e^-x / (1 + e^-x) = y (1 - y): dx = dy * y * (1 - y), from the output alone.

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"
#include "autograd/vec_math.h"

namespace prenorm {
namespace {

struct Sigmoid final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "sigmoid",
                                 .formula = "y = 1 / (1 + e^-x)",
                                 .derivative = "dx = dy * y * (1 - y)",
                                 .reference = "",
                                 .file = "autograd/ops/sigmoid.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    return {map("sigmoid", in[0], [](auto x) { return 1 / (1 + vec::exp(-x)); })};
  }

  Saves saves() const override { return {.outputs = {0}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    const Tensor y = output(0);
    dx.add(0, dy[0] * (y * (1 - y)));
  }
};

}  // namespace

Tensor sigmoid(const Tensor& x) { return apply_op<Sigmoid>({x})[0]; }

}  // namespace prenorm
