// y = x, with `value` where the mask is true; mask and x broadcast.
//
//   Where x went through, dy does; what was overwritten has no part in y and gets 0.

#include <cmath>

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

struct MaskedFill final : Node {
  explicit MaskedFill(double value) : value(value) {}
  const double value;

  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "masked_fill",
                                 .formula = "y = value where mask, else x",
                                 .derivative = "dx = sum_to(0 where mask, else dy, x)",
                                 .reference = "",
                                 .file = "autograd/ops/masked_fill.cpp"};
    return info;
  }

  // Inputs x and mask.
  Tensors forward(const Tensors& in) const override { return {where(in[1], scalar_like(in[0], value), in[0])}; }

  Saves saves() const override { return {.inputs = {1}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    dx.add(0, sum_to(masked_fill(dy[0], input(1), 0), input_shape(0)));
  }
};

}  // namespace

Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) {
  check(x.defined() && mask.defined(), "masked_fill: x or the mask is undefined");
  check(mask.dtype() == boolean, "masked_fill: the mask is bool, got ", mask.dtype());
  check(is_float(x.dtype()) || (std::fabs(value) < 0x1p63 && std::trunc(value) == value), "masked_fill: ", x.dtype(),
        " holds no ", value);
  broadcast_shapes("masked_fill", x.shape(), mask.shape());
  return apply_op<MaskedFill>({x, mask}, value)[0];
}

}  // namespace prenorm
