// y = |x|.
//
//   y = x above 0 and -x below, so dx = dy * sign(x). At 0 there is a kink; the gradient is taken as 0 there.

#include <cmath>

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

struct Abs final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "abs",
                                 .formula = "y = |x|",
                                 .derivative = "dx = dy * sign(x), sign(0) = 0",
                                 .reference = "",
                                 .file = "autograd/ops/abs.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    return {map("abs", in[0], [](auto x) { return std::fabs(x); })};
  }

  Saves saves() const override { return {.inputs = {0}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    // A constant, as the slope does not change near x. NaN stays.
    const Tensor sign = map("abs", input(0), [](auto x) {
      using T = decltype(x);
      return x > 0 ? T{1} : x < 0 ? T{-1} : x;
    });
    dx.add(0, dy[0] * sign);
  }
};

}  // namespace

Tensor abs(const Tensor& x) { return apply_op<Abs>({x})[0]; }

}  // namespace prenorm
