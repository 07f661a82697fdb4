// y = a / b, element by element, broadcast.
//
//   dy/da = 1 / b and dy/db = -a / b^2 = -y / b, so
//     dL/da = dy / b, dL/db = -dy y / b, each summed over the dimensions along which its operand was repeated.

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

struct Div final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "div",
                                 .formula = "y = a / b",
                                 .derivative = "da = sum_to(dy / b, a); db = sum_to(-dy * y / b, b)",
                                 .reference = "",
                                 .file = "autograd/ops/div.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    return {zip_float("div", in[0], in[1], [](auto a, auto b) { return a / b; })};
  }

  Saves saves() const override {
    Saves saves{.inputs = {1}};
    if (needs(1)) saves.outputs.insert(0);
    return saves;
  }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    const Tensor per_a = dy[0] / input(1);
    if (dx.needs(0)) dx.add(0, sum_to(per_a, input_shape(0)));
    if (dx.needs(1)) dx.add(1, -sum_to(per_a * output(0), input_shape(1)));
  }
};

}  // namespace

Tensor div(const Tensor& a, const Tensor& b) { return apply_op<Div>({a, b})[0]; }

Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
Tensor operator/(const Tensor& a, double b) { return div(a, scalar_like(a, b)); }
Tensor operator/(double a, const Tensor& b) { return div(scalar_like(b, a), b); }

}  // namespace prenorm
