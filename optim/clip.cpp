#include "optim/clip.h"

#include <algorithm>
#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "autograd/vectorized.h"

namespace prenorm::optim {
namespace {

// Squares are added in double: the square of a float fits, so nothing overflows.
template <class T>
PRENORM_VECTORIZED double squares(const T* x, std::int64_t n) {
  double total = 0;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < n; ++i) total += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return total;
}

double squared_norm(const Tensor& gradient) {
  const NoGrad no_grad;
  const Tensor dense = contiguous(gradient);
  return dispatch_float("grad_norm", dense.dtype(), [&](auto type) {
    using T = decltype(type);
    return squares(dense.data<T>(), dense.numel());
  });
}

}  // namespace

double grad_norm(const NamedTensors& parameters) {
  double total = 0;
  for (const auto& [path, parameter] : parameters) {
    if (const Tensor gradient = parameter.grad(); gradient.defined()) total += squared_norm(gradient);
  }
  return std::sqrt(total);
}

double clip_grad_norm_(const NamedTensors& parameters, double max_norm) {
  check(max_norm >= 0, "clip_grad_norm_: max_norm is not negative, got ", max_norm);
  const double norm = grad_norm(parameters);
  if (!std::isfinite(norm)) {
    for (const auto& [path, parameter] : parameters) {
      const Tensor gradient = parameter.grad();
      check(!gradient.defined() || std::isfinite(squared_norm(gradient)), "clip_grad_norm_: the gradient of '", path,
            "' is not finite");
    }
    fail("clip_grad_norm_: the gradients are too large for their norm to be finite");
  }
  const double factor = std::min(1.0, max_norm / (norm + 1e-6));
  if (factor == 1) return norm;
  const NoGrad no_grad;
  for (const auto& [path, parameter] : parameters) {
    if (const Tensor gradient = parameter.grad(); gradient.defined()) mul_(gradient, factor);
  }
  return norm;
}

}  // namespace prenorm::optim
