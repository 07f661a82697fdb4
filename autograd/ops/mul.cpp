// y = a * b, element by element, broadcast.
//
//   dL/da = dy * b, dL/db = dy * a, each summed over the dimensions along which its operand was repeated.

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

struct Mul final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "mul",
                                 .formula = "y = a * b",
                                 .derivative = "da = sum_to(dy * b, a); db = sum_to(dy * a, b)",
                                 .reference = "",
                                 .file = "autograd/ops/mul.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    return {zip("mul", in[0], in[1], [](auto a, auto b) { return a * b; })};
  }

  Saves saves() const override { return factors(); }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    if (dx.needs(0)) dx.add(0, sum_to(dy[0] * input(1), input_shape(0)));
    if (dx.needs(1)) dx.add(1, sum_to(dy[0] * input(0), input_shape(1)));
  }
};

}  // namespace

Tensor mul(const Tensor& a, const Tensor& b) { return apply_op<Mul>({a, b})[0]; }

Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
Tensor operator*(const Tensor& a, double b) { return mul(a, scalar_like(a, b)); }
Tensor operator*(double a, const Tensor& b) { return mul(scalar_like(b, a), b); }

}  // namespace prenorm
