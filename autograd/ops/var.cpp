// y = sum((x - mean)^2) / m over dims, m = max(n - correction, 0): unbiased with correction 1 (Bessel's), biased with
// 0. NaN or infinite where m = 0.
//
// Derivation, with d_i = x_i - mean:
//   dy/dx_j = (2 / m) sum_i d_i (1[i = j] - 1/n) = (2 / m) (d_j - mean(d)) = 2 d_j / m, since sum(d) = 0.
//   The route through the mean adds nothing: the mean is where the sum of squares is smallest.
//   So dx = dy * 2 (x - mean) / m.

#include "autograd/ops/var.h"

#include <algorithm>

#include "autograd/node.h"

namespace prenorm {
namespace {

// In two passes, in double. Counted from the first element, so that a constant row gives exactly 0.
template <class T>
PRENORM_VECTORIZED double sum_of_squares(const T* x, std::int64_t n) {
  const double first = n > 0 ? static_cast<double>(x[0]) : 0;
  double total = 0;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < n; ++i) total += static_cast<double>(x[i]) - first;
  const double mean = total / static_cast<double>(n);
  double squares = 0;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(x[i]) - first - mean;
    squares += d * d;
  }
  return squares;
}

struct Var final : Node {
  Var(const Dims& dims, int correction, bool keepdim) : dims(dims), correction(correction), keepdim(keepdim) {}
  const Dims dims;
  const int correction;
  const bool keepdim;

  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "var",
                                 .formula = "y = sum((x - mean(x))^2) / m, m = max(n - correction, 0)",
                                 .derivative = "dx = dy * 2 * (x - mean(x)) / m",
                                 .reference = "",
                                 .file = "autograd/ops/var.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    const Reduced reduced("var", in[0].shape(), dims);
    return {dispatch_float("var", in[0].dtype(), [&](auto t) {
      using T = decltype(t);
      return reduce_as<T>(in[0], reduced, keepdim,
                          [m = degrees_of_freedom(reduced, correction)](const T* row, std::int64_t n) {
                            return static_cast<T>(sum_of_squares(row, n) / m);
                          });
    })};
  }

  Saves saves() const override { return {.inputs = {0}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    const Reduced reduced("var", input_shape(0), dims);
    if (reduced.n == 0) return dx.add(0, zeros(input_shape(0), input_dtype(0)));  // no elements
    const Tensor slope = reshape(dy[0], reduced.keepdim_shape) * (2 / degrees_of_freedom(reduced, correction));
    dx.add(0, slope * centred(input(0), dims));
  }
};

}  // namespace

Tensor centred(const Tensor& x, const Dims& dims) {
  const Reduced reduced("centred", x.shape(), dims);
  Tensor first = x.detach();
  for (std::int64_t d = 0; d < x.dims(); ++d) {
    if (reduced.keepdim_shape[d] != x.shape()[d]) first = slice(first, d, 0, 1);
  }
  const Tensor d = x - first;
  return d - mean(d, dims, true);
}

double degrees_of_freedom(const Reduced& reduced, int correction) {
  return static_cast<double>(std::max<std::int64_t>(reduced.n - correction, 0));
}

Tensor var(const Tensor& x, const Dims& dims, int correction, bool keepdim) {
  return apply_op<Var>({x}, dims, correction, keepdim)[0];
}

}  // namespace prenorm
