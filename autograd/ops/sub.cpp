// y = a - b, broadcast.
//
//   dL/da = dy, dL/db = -dy, each summed over the dimensions along which its operand was repeated.

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

struct Sub final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "sub",
                                 .formula = "y = a - b",
                                 .derivative = "da = sum_to(dy, a); db = -sum_to(dy, b)",
                                 .reference = "",
                                 .file = "autograd/ops/sub.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    return {zip("sub", in[0], in[1], [](auto a, auto b) { return a - b; })};
  }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    if (dx.needs(0)) dx.add(0, sum_to(dy[0], input_shape(0)));
    if (dx.needs(1)) dx.add(1, -sum_to(dy[0], input_shape(1)));
  }
};

}  // namespace

Tensor sub(const Tensor& a, const Tensor& b) { return apply_op<Sub>({a, b})[0]; }

Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
Tensor operator-(const Tensor& a, double b) { return sub(a, scalar_like(a, b)); }
Tensor operator-(double a, const Tensor& b) { return sub(scalar_like(b, a), b); }

}  // namespace prenorm
