// y = sqrt(sum((x - mean)^2) / m) over dims, m = max(n - correction, 0): the root of var, see var.cpp.
//
//   With d = x - mean:  dy/dx = d var/dx / (2 y) = (2 d / m) / (2 y), so dx = dy * d / (m y).
//   On constant x the root has no derivative; the gradient is taken as 0 there, by an infinite divisor.

#include <cmath>

#include "autograd/node.h"
#include "autograd/ops/var.h"

namespace prenorm {
namespace {

struct Std final : Node {
  Std(const Dims& dims, int correction, bool keepdim) : dims(dims), correction(correction), keepdim(keepdim) {}
  const Dims dims;
  const int correction;
  const bool keepdim;

  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "std",
                                 .formula = "y = sqrt(sum((x - mean(x))^2) / m), m = max(n - correction, 0)",
                                 .derivative = "dx = dy * (x - mean(x)) / (m * y), 0 at y = 0",
                                 .reference = "",
                                 .file = "autograd/ops/std.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override { return {sqrt(var(in[0], dims, correction, keepdim))}; }

  Saves saves() const override { return {.inputs = {0}, .outputs = {0}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    const Reduced reduced("std", input_shape(0), dims);
    if (reduced.n == 0) return dx.add(0, zeros(input_shape(0), input_dtype(0)));  // no elements
    const Tensor y = output(0);
    const Tensor divisor = degrees_of_freedom(reduced, correction) * masked_fill(y, eq(y, scalar_like(y, 0)), INFINITY);
    dx.add(0, reshape(dy[0] / divisor, reduced.keepdim_shape) * centred(input(0), dims));
  }
};

}  // namespace

Tensor std(const Tensor& x, const Dims& dims, int correction, bool keepdim) {
  check(is_float(x.dtype()), "std: expected float32 or float64, got ", x.dtype());
  const Reduced refuses_wrong_dims("std", x.shape(), dims);
  return apply_op<Std>({x}, dims, correction, keepdim)[0];
}

}  // namespace prenorm
