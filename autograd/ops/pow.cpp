// y = b^e, base b and exponent e, element by element, broadcast.
//
//   dy/db = e b^(e - 1), by the power rule; dy/de = b^e ln b, as b^e = e^(e ln b).
//
//   At the edges, so that no 0 * inf turns into NaN, in second derivatives neither:
//     b^0 is 1 for all b, so at b = 0, e = 0 the gradient of b is 0 (the rule says 0 * 0^-1);
//     0^e is 0 for all e > 0, so at b = 0, e >= 0 the gradient of e is 0 (the rule says 0 * ln 0);
//     for b < 0 only whole e have a power: the gradient of b follows the rule, that of e is NaN.

#include <cmath>

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

struct Pow final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "pow",
                                 .formula = "y = b^e",
                                 .derivative = "db = sum_to(dy * e * b^(e - 1), b); de = sum_to(dy * b^e * ln b, e)",
                                 .reference = "",
                                 .file = "autograd/ops/pow.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    check_same_dtype("pow", in[0], in[1]);
    if (in[1].dims() == 0 && in[1].item() == 2) return {map("pow", in[0], [](auto b) { return b * b; })};
    return {zip_float("pow", in[0], in[1], [](auto b, auto e) { return std::pow(b, e); })};
  }

  Saves saves() const override { return {.inputs = {0, 1}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    const Tensor b = input(0), e = input(1);
    const Tensor zero = scalar_like(b, 0), zero_base = eq(b, zero);
    if (dx.needs(0)) {
      const Tensor both_zero = where(zero_base, eq(e, zero), full({}, 0, boolean));
      dx.add(0, sum_to(dy[0] * (e * pow(b, masked_fill(e - 1, both_zero, 0))), b.shape()));
    }
    if (dx.needs(1)) {
      const Tensor flat = where(zero_base, ge(e, zero), full({}, 0, boolean));
      const Tensor safe = masked_fill(b, flat, 1);
      dx.add(1, sum_to(dy[0] * (pow(safe, e) * log(safe)), e.shape()));
    }
  }
};

}  // namespace

Tensor pow(const Tensor& base, const Tensor& exponent) { return apply_op<Pow>({base, exponent})[0]; }
Tensor pow(const Tensor& base, double exponent) { return pow(base, scalar_like(base, exponent)); }

}  // namespace prenorm
