// y = tanh x = (e^x - e^-x) / (e^x + e^-x).
//
//   With s = sinh x and c = cosh x, y = s / c and dy/dx = (c^2 - s^2) / c^2 = 1 - y^2: dx = dy * (1 - y^2), from the
//   output alone.

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"
#include "autograd/vec_math.h"

namespace prenorm {
namespace {

struct Tanh final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "tanh",
                                 .formula = "y = tanh x",
                                 .derivative = "dx = dy * (1 - y^2)",
                                 .reference = "",
                                 .file = "autograd/ops/tanh.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    return {map("tanh", in[0], [](auto x) { return vec::tanh(x); })};
  }

  Saves saves() const override { return {.outputs = {0}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    const Tensor y = output(0);
    dx.add(0, dy[0] * (1 - y * y));
  }
};

}  // namespace

Tensor tanh(const Tensor& x) { return apply_op<Tanh>({x})[0]; }

}  // namespace prenorm
