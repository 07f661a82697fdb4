// LayerNorm, standard form (Ba, Kiros, Hinton 2016, "Layer Normalization", equations 3 and 4; eps as in PyTorch):
//
//   y = gamma * x_hat + beta,  x_hat = (x - mean) * rstd,  rstd = 1 / sqrt(var + eps)
//
// over rows of n elements, mean = sum(x) / n, var = sum((x - mean)^2) / n (biased).
//
// Derivation, for one row and g = gamma * dy, the gradient of x_hat:
//   x reaches x_hat on three routes: directly, through the mean and through the variance.
//     d mean / dx_j = 1 / n            d rstd / dx_j = -rstd^3 (x_j - mean) / n = -rstd^2 x_hat_j / n
//     d x_hat_i / dx_j = rstd (1[i = j] - 1/n) + (x_i - mean) (-rstd^2 x_hat_j / n)
//                      = rstd (1[i = j] - 1/n - x_hat_i x_hat_j / n)
//   summed over i with g_i:
//     dx = rstd * (g - mean(g) - x_hat * mean(g * x_hat))
//   So two parts of g never reach x: its mean (adding a constant to x changes nothing) and its part along x_hat
//   (scaling x changes nothing, up to eps).
//     dgamma = sum over rows of dy * x_hat,  dbeta = sum over rows of dy

#include "autograd/ops/layer_norm.h"

#include <cmath>

namespace prenorm {
namespace {

// mean is counted from the row's first element, see centred(); spread is rstd.
template <class T>
PRENORM_VECTORIZED void forward_rows(const NormForward<T>& block, T eps) {
  const std::int64_t n = block.n;
  const T *gamma = block.scale, *beta = block.shift;
  for (std::int64_t r = 0; r < block.rows; ++r) {
    const T* x = block.x + r * n;
    T* y = block.y + r * n;
    const T first = x[0];
    const T total = lane_sum<T>(n, [=](std::int64_t i) { return x[i] - first; });
    const T m = total / static_cast<T>(n);
    const T squares = lane_sum<T>(n, [=](std::int64_t i) {
      const T d = x[i] - first - m;
      return d * d;
    });
    const T s = 1 / std::sqrt(squares / static_cast<T>(n) + eps);
    block.mean[r] = m;
    block.spread[r] = s;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = gamma[i] * ((x[i] - first - m) * s) + beta[i];
  }
}

template <bool add, class T>
PRENORM_VECTORIZED void backward_rows(const NormBackward<T>& block) {
  const std::int64_t n = block.n;
  const T* gamma = block.scale;
  T *dgamma = block.dscale, *dbeta = block.dshift;
  for (std::int64_t r = 0; r < block.rows; ++r) {
    const T *x = block.x + r * n, *dy = block.dy + r * n;
    const T first = x[0], m = block.mean[r], s = block.spread[r];
    const auto [sum_g, sum_gx] = lane_sums<T>(n, [=](std::int64_t i, T& to_g, T& to_gx) {
      const T x_hat = (x[i] - first - m) * s, g = gamma[i] * dy[i];
      dgamma[i] += dy[i] * x_hat;
      dbeta[i] += dy[i];
      to_g = g;
      to_gx = g * x_hat;
    });
    if (block.dx == nullptr) continue;
    T* dx = block.dx + r * n;
    const T mean_g = sum_g / static_cast<T>(n), mean_gx = sum_gx / static_cast<T>(n);
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      const T x_hat = (x[i] - first - m) * s;
      const T value = s * (gamma[i] * dy[i] - mean_g - x_hat * mean_gx);
      dx[i] = add ? dx[i] + value : value;
    }
  }
}

// Inputs x [..., n], gamma [n], beta [n]; outputs y [..., n] and, for backward, mean - x[..., 0] [...] and rstd [...].
struct LayerNorm final : Node {
  explicit LayerNorm(double eps) : eps(eps) {}
  const double eps;

  const OpInfo& info() const override {
    static constexpr OpInfo info{
        .name = "layer_norm",
        .formula = "y = gamma * x_hat + beta, x_hat = (x - mean(x)) * rstd, rstd = 1 / sqrt(var(x) + eps)",
        .derivative =
            "g = gamma * dy; dx = rstd * (g - mean(g) - x_hat * mean(g * x_hat)); "
            "dgamma = sum(dy * x_hat); dbeta = sum(dy)",
        .reference = "Ba, Kiros, Hinton 2016, Layer Normalization, eq. 3 and 4",
        .file = "autograd/ops/layer_norm.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    return norm_forward("layer_norm", in,
                        [this]<class T>(const NormForward<T>& block) { forward_rows(block, static_cast<T>(eps)); });
  }

  Saves saves() const override { return {.inputs = {0, 1}, .outputs = {1, 2}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    if (GradMode::enabled()) return formula(dy[0], dx);
    norm_backward(*this, dy[0], dx, []<bool add, class T>(std::bool_constant<add>, const NormBackward<T>& block) {
      backward_rows<add>(block);
    });
  }

  // The same in ops, to be differentiated again. The statistics are formed anew: saved ones would lead nowhere.
  void formula(const Tensor& dy, GradientSink& dx) const {
    const Tensor d = centred(input(0));
    const Tensor rstd = 1.0 / sqrt(mean(d * d, {-1}, true) + eps);
    const Tensor x_hat = d * rstd;
    if (dx.needs(0)) {
      const Tensor g = has_input(1) ? input(1) * dy : dy;
      dx.add(0, rstd * (g - mean(g, {-1}, true) - x_hat * mean(g * x_hat, {-1}, true)));
    }
    if (has_input(1) && dx.needs(1)) dx.add(1, sum_to(dy * x_hat, input_shape(1)));
    if (has_input(2) && dx.needs(2)) dx.add(2, sum_to(dy, input_shape(2)));
  }
};

}  // namespace

Tensor centred(const Tensor& x) {
  const Tensor d = x - slice(x.detach(), -1, 0, 1);
  return d - mean(d, {-1}, true);
}

Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& gamma, const Tensor& beta, double eps) {
  const std::int64_t dims = normalized_shape.dims(), lead = x.dims() - dims;
  check(dims >= 1 && lead >= 0 && Shape(x.shape().begin() + lead, x.shape().end()) == normalized_shape,
        "layer_norm: x ", x.shape(), " does not end in the normalized shape ", normalized_shape);
  const std::int64_t n = numel(normalized_shape);
  for (const Tensor& parameter : {gamma, beta}) {
    if (!parameter.defined()) continue;
    check_same_dtype("layer_norm", x, parameter);
    check(parameter.shape() == normalized_shape, "layer_norm: gamma and beta have the normalized shape ",
          normalized_shape, ", got ", parameter.shape());
  }
  check(eps >= 0, "layer_norm: eps is not negative, got ", eps);
  const auto flat = [&](const Tensor& parameter) {
    return parameter.defined() && dims != 1 ? reshape(parameter, {n}) : parameter;
  };
  return over_last(dims, x, [&](const Tensor& rows) {
    return apply_op<LayerNorm>({rows, flat(gamma), flat(beta)}, eps)[0];
  });
}

Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps) {
  check(x.defined() && x.dims() >= 1, "layer_norm: expected [..., n]");
  return layer_norm(x, gamma.defined() ? gamma.shape() : Shape{x.size(-1)}, gamma, beta, eps);
}

}  // namespace prenorm
