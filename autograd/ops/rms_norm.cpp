// RMSNorm (Zhang, Sennrich 2019, "Root Mean Square Layer Normalization", equation 4; eps as in PyTorch):
//
//   y = weight * x_hat,  x_hat = x * rstd,  rstd = 1 / sqrt(mean(x^2) + eps)
//
// over rows of n elements: LayerNorm without the mean.
//
// Derivation, for one row and g = weight * dy, the gradient of x_hat:
//     d rstd / dx_j = -rstd^3 x_j / n = -rstd^2 x_hat_j / n
//     d x_hat_i / dx_j = rstd 1[i = j] + x_i (-rstd^2 x_hat_j / n) = rstd (1[i = j] - x_hat_i x_hat_j / n)
//   summed over i with g_i:
//     dx = rstd * (g - x_hat * mean(g * x_hat))
//   So the part of g along x_hat never reaches x: scaling x changes nothing, up to eps.
//     dweight = sum over rows of dy * x_hat

#include <cmath>

#include "autograd/ops/layer_norm.h"

namespace prenorm {
namespace {

// The statistics are mean(x^2) and rstd.
template <class T>
PRENORM_VECTORIZED void forward_rows(const NormForward<T>& block, T eps) {
  const std::int64_t n = block.n;
  const T* weight = block.scale;
  for (std::int64_t r = 0; r < block.rows; ++r) {
    const T* x = block.x + r * n;
    T* y = block.y + r * n;
    const T squares = lane_sum<T>(n, [=](std::int64_t i) { return x[i] * x[i]; });
    const T mean_square = squares / static_cast<T>(n), s = 1 / std::sqrt(mean_square + eps);
    block.mean[r] = mean_square;
    block.spread[r] = s;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = weight[i] * (x[i] * s);
  }
}

template <bool add, class T>
PRENORM_VECTORIZED void backward_rows(const NormBackward<T>& block) {
  const std::int64_t n = block.n;
  const T* weight = block.scale;
  T* dweight = block.dscale;
  for (std::int64_t r = 0; r < block.rows; ++r) {
    const T *x = block.x + r * n, *dy = block.dy + r * n;
    const T s = block.spread[r];
    const T sum_gx = lane_sum<T>(n, [=](std::int64_t i) {
      const T x_hat = x[i] * s;
      dweight[i] += dy[i] * x_hat;
      return weight[i] * dy[i] * x_hat;
    });
    if (block.dx == nullptr) continue;
    T* dx = block.dx + r * n;
    const T mean_gx = sum_gx / static_cast<T>(n);
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      const T value = s * (weight[i] * dy[i] - x[i] * s * mean_gx);
      dx[i] = add ? dx[i] + value : value;
    }
  }
}

// Inputs x [..., n], weight [n]; outputs y [..., n] and, for backward, mean(x^2) [...] and rstd [...].
struct RmsNorm final : Node {
  explicit RmsNorm(double eps) : eps(eps) {}
  const double eps;

  const OpInfo& info() const override {
    static constexpr OpInfo info{
        .name = "rms_norm",
        .formula = "y = weight * x_hat, x_hat = x * rstd, rstd = 1 / sqrt(mean(x^2) + eps)",
        .derivative = "g = weight * dy; dx = rstd * (g - x_hat * mean(g * x_hat)); dweight = sum(dy * x_hat)",
        .reference = "Zhang, Sennrich 2019, Root Mean Square Layer Normalization, eq. 4",
        .file = "autograd/ops/rms_norm.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    return norm_forward("rms_norm", in,
                        [this]<class T>(const NormForward<T>& block) { forward_rows(block, static_cast<T>(eps)); });
  }

  Saves saves() const override { return {.inputs = {0, 1}, .outputs = {1, 2}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    if (GradMode::enabled()) return formula(dy[0], dx);
    norm_backward(*this, dy[0], dx, []<bool add, class T>(std::bool_constant<add>, const NormBackward<T>& block) {
      backward_rows<add>(block);
    });
  }

  // The same in ops, to be differentiated again. rstd is formed anew: a saved one would lead nowhere.
  void formula(const Tensor& dy, GradientSink& dx) const {
    const Tensor x = input(0);
    const Tensor rstd = 1.0 / sqrt(mean(x * x, {-1}, true) + eps);
    const Tensor x_hat = x * rstd;
    if (dx.needs(0)) {
      const Tensor g = has_input(1) ? input(1) * dy : dy;
      dx.add(0, rstd * (g - x_hat * mean(g * x_hat, {-1}, true)));
    }
    if (has_input(1) && dx.needs(1)) dx.add(1, sum_to(dy * x_hat, input_shape(1)));
  }
};

}  // namespace

Tensor rms_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, double eps) {
  check(x.defined(), "rms_norm: x is undefined");
  const std::int64_t dims = normalized_shape.dims(), lead = x.dims() - dims;
  check(dims >= 1 && lead >= 0 && Shape(x.shape().begin() + lead, x.shape().end()) == normalized_shape, "rms_norm: x ",
        x.shape(), " does not end in the normalized shape ", normalized_shape);
  if (weight.defined()) {
    check_same_dtype("rms_norm", x, weight);
    check(weight.shape() == normalized_shape, "rms_norm: weight has the normalized shape ", normalized_shape, ", got ",
          weight.shape());
  }
  check(eps >= 0, "rms_norm: eps is not negative, got ", eps);
  const Tensor flat = weight.defined() && dims != 1 ? reshape(weight, {numel(normalized_shape)}) : weight;
  return over_last(dims, x, [&](const Tensor& rows) { return apply_op<RmsNorm>({rows, flat}, eps)[0]; });
}

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  check(x.defined() && x.dims() >= 1, "rms_norm: expected [..., n]");
  return rms_norm(x, weight.defined() ? weight.shape() : Shape{x.size(-1)}, weight, eps);
}

}  // namespace prenorm
