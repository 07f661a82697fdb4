// y = sqrt(sum(x^2)) over dims, the Euclidean length.
//
//   y^2 = sum(x^2), so 2 y dy = 2 sum(x dx) and dy/dx = x / y, the direction of x: dx = dy * x / y.
//   The zero vector has no direction; the gradient is taken as 0 there, by an infinite divisor.

#include <cmath>

#include "autograd/node.h"
#include "autograd/ops/reduce.h"

namespace prenorm {
namespace {

// In double: squares of float32 numbers neither overflow nor vanish there.
template <class T>
PRENORM_VECTORIZED T length(const T* x, std::int64_t n) {
  double squares = 0;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t i = 0; i < n; ++i) squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return static_cast<T>(std::sqrt(squares));
}

struct Norm final : Node {
  Norm(const Dims& dims, bool keepdim) : dims(dims), keepdim(keepdim) {}
  const Dims dims;
  const bool keepdim;

  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "norm",
                                 .formula = "y = sqrt(sum(x^2))",
                                 .derivative = "dx = dy * x / y, 0 at y = 0",
                                 .reference = "",
                                 .file = "autograd/ops/norm.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    const Reduced reduced("norm", in[0].shape(), dims);
    return {dispatch_float("norm", in[0].dtype(), [&](auto t) {
      using T = decltype(t);
      return reduce_as<T>(in[0], reduced, keepdim, [](const T* row, std::int64_t n) { return length(row, n); });
    })};
  }

  Saves saves() const override { return {.inputs = {0}, .outputs = {0}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    const Reduced reduced("norm", input_shape(0), dims);
    const Tensor y = output(0), divisor = masked_fill(y, eq(y, scalar_like(y, 0)), INFINITY);
    dx.add(0, reshape(dy[0] / divisor, reduced.keepdim_shape) * input(0));
  }
};

}  // namespace

Tensor norm(const Tensor& x, const Dims& dims, bool keepdim) { return apply_op<Norm>({x}, dims, keepdim)[0]; }

}  // namespace prenorm
