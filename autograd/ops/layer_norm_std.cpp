// LayerNorm, unbiased form (the Annotated Transformer's; not the one of Ba et al.):
//
//   y = a_2 * x_hat + b_2,  x_hat = (x - mean) / (std + eps),  std = sqrt(sum((x - mean)^2) / (n - 1))
//
// over rows of n >= 2 elements. It differs from the standard form twice: n - 1 under the root, and eps outside of it.
//
// Derivation, for one row, d = x - mean, r = 1 / (std + eps) and g = a_2 * dy, the gradient of x_hat = d r:
//     d std / dx_j = d_j / ((n - 1) std)         (the part through the mean vanishes: sum(d) = 0)
//     d r / dx_j = -r^2 d_j / ((n - 1) std)
//     d x_hat_i / dx_j = r (1[i = j] - 1/n) - d_i r^2 d_j / ((n - 1) std)
//   summed over i with g_i:
//     dx = r * (g - mean(g)) - d * r^2 * sum(g * d) / ((n - 1) std)
//   On a constant row std = 0 has no derivative; it is taken as 0, which leaves dx = (g - mean(g)) / eps.
//     da_2 = sum over rows of dy * x_hat,  db_2 = sum over rows of dy

#include <cmath>

#include "autograd/ops/layer_norm.h"

namespace prenorm {
namespace {

// mean is counted from the row's first element, see centred(); spread is std.
template <class T>
PRENORM_VECTORIZED void forward_rows(const NormForward<T>& block, T eps) {
  const std::int64_t n = block.n;
  const T *a_2 = block.scale, *b_2 = block.shift;
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
    const T s = std::sqrt(squares / static_cast<T>(n - 1));
    const T scale = 1 / (s + eps);
    block.mean[r] = m;
    block.spread[r] = s;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = a_2[i] * ((x[i] - first - m) * scale) + b_2[i];
  }
}

template <bool add, class T>
PRENORM_VECTORIZED void backward_rows(const NormBackward<T>& block, T eps) {
  const std::int64_t n = block.n;
  const T* a_2 = block.scale;
  T *da_2 = block.dscale, *db_2 = block.dshift;
  for (std::int64_t r = 0; r < block.rows; ++r) {
    const T *x = block.x + r * n, *dy = block.dy + r * n;
    const T first = x[0], m = block.mean[r], s = block.spread[r], scale = 1 / (s + eps);
    const auto [sum_g, sum_gd] = lane_sums<T>(n, [=](std::int64_t i, T& to_g, T& to_gd) {
      const T d = x[i] - first - m, g = a_2[i] * dy[i];
      da_2[i] += dy[i] * (d * scale);
      db_2[i] += dy[i];
      to_g = g;
      to_gd = g * d;
    });
    if (block.dx == nullptr) continue;
    T* dx = block.dx + r * n;
    const T mean_g = sum_g / static_cast<T>(n);
    const T along = s == 0 ? T{0} : scale * scale * sum_gd / (static_cast<T>(n - 1) * s);
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      const T value = scale * (a_2[i] * dy[i] - mean_g) - (x[i] - first - m) * along;
      dx[i] = add ? dx[i] + value : value;
    }
  }
}

// Inputs x [..., n], a_2 [n], b_2 [n]; outputs y [..., n] and, for backward, mean - x[..., 0] [...] and std [...].
struct LayerNormStd final : Node {
  explicit LayerNormStd(double eps) : eps(eps) {}
  const double eps;

  const OpInfo& info() const override {
    static constexpr OpInfo info{
        .name = "layer_norm_std",
        .formula = "y = a_2 * x_hat + b_2, x_hat = d / (std(x) + eps), d = x - mean(x), std with n - 1",
        .derivative =
            "g = a_2 * dy; r = 1 / (std + eps); dx = r * (g - mean(g)) - d * r^2 * sum(g * d) / ((n - 1) std); "
            "da_2 = sum(dy * x_hat); db_2 = sum(dy)",
        .reference = "The Annotated Transformer (Rush 2018), class LayerNorm",
        .file = "autograd/ops/layer_norm_std.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    return norm_forward("layer_norm_std", in,
                        [this]<class T>(const NormForward<T>& block) { forward_rows(block, static_cast<T>(eps)); });
  }

  Saves saves() const override { return {.inputs = {0, 1}, .outputs = {1, 2}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    if (GradMode::enabled()) return formula(dy[0], dx);
    norm_backward(*this, dy[0], dx, [this]<bool add, class T>(std::bool_constant<add>, const NormBackward<T>& block) {
      backward_rows<add>(block, static_cast<T>(eps));
    });
  }

  // The same in ops, to be differentiated again. The statistics are formed anew: saved ones would lead nowhere.
  void formula(const Tensor& dy, GradientSink& dx) const {
    const Tensor d = centred(input(0));
    const double n = static_cast<double>(input_shape(0).back());
    const Tensor s = sqrt(sum(d * d, {-1}, true) / (n - 1));
    const Tensor r = 1.0 / (s + eps);
    if (dx.needs(0)) {
      const Tensor g = has_input(1) ? input(1) * dy : dy;
      // Where s is 0 so is d, and any divisor but 0 makes the last term vanish.
      const Tensor divisor = (n - 1) * masked_fill(s, eq(s, zeros_like(s)), 1);
      dx.add(0, r * (g - mean(g, {-1}, true)) - d * (r * r * sum(g * d, {-1}, true) / divisor));
    }
    if (has_input(1) && dx.needs(1)) dx.add(1, sum_to(dy * (d * r), input_shape(1)));
    if (has_input(2) && dx.needs(2)) dx.add(2, sum_to(dy, input_shape(2)));
  }
};

}  // namespace

Tensor layer_norm_std(const Tensor& x, const Tensor& a_2, const Tensor& b_2, double eps) {
  check(x.defined() && x.dims() >= 1, "layer_norm_std: expected [..., n]");
  const std::int64_t n = x.size(-1);
  check(n != 1, "layer_norm_std: x ", x.shape(),
        " has rows of one element, whose unbiased std is 0 / 0; expected at least 2");
  for (const Tensor& parameter : {a_2, b_2}) {
    if (!parameter.defined()) continue;
    check_same_dtype("layer_norm_std", x, parameter);
    check(parameter.shape() == Shape{n}, "layer_norm_std: a_2 and b_2 are [", n, "] for x ", x.shape(), ", got ",
          parameter.shape());
  }
  check(eps >= 0, "layer_norm_std: eps is not negative, got ", eps);
  return apply_op<LayerNormStd>({x, a_2, b_2}, eps)[0];
}

}  // namespace prenorm
