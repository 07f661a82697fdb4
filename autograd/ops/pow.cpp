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
    // These two for speed: squares are common, and 2 b^1 is their derivative.
    if (is_number(in[1], 1)) return {map("pow", in[0], [](auto b) { return b; })};
    if (is_number(in[1], 2)) return {map("pow", in[0], [](auto b) { return b * b; })};
    return {zip_float("pow", in[0], in[1], [](auto b, auto e) { return std::pow(b, e); })};
  }

  Saves saves() const override { return {.inputs = {0, 1}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    const Tensor b = input(0), e = input(1);
    if (dx.needs(0)) {
      const bool never_zero = e.dims() == 0 && e.item() != 0;
      const Tensor power = never_zero ? e - 1 : masked_fill(e - 1, at_zero_base(eq(e, scalar_like(e, 0))), 0);
      dx.add(0, sum_to(dy[0] * (e * pow(b, power)), b.shape()));
    }
    if (dx.needs(1)) {
      const Tensor safe = masked_fill(b, at_zero_base(ge(e, scalar_like(e, 0))), 1);
      dx.add(1, sum_to(dy[0] * (pow(safe, e) * log(safe)), e.shape()));
    }
  }

 private:
  static bool is_number(const Tensor& e, double value) { return e.dims() == 0 && e.item() == value; }
  // Where the base is 0 and `condition` holds.
  Tensor at_zero_base(const Tensor& condition) const {
    const Tensor b = input(0);
    return where(eq(b, scalar_like(b, 0)), condition, full({}, 0, boolean));
  }
};

}  // namespace

Tensor pow(const Tensor& base, const Tensor& exponent) {
  check_same_dtype("pow", base, exponent);
  check(is_float(base.dtype()), "pow: expected float32 or float64, got ", base.dtype());
  return apply_op<Pow>({base, exponent})[0];
}
Tensor pow(const Tensor& base, double exponent) { return pow(base, scalar_like(base, exponent)); }

}  // namespace prenorm
