// BatchNorm (Ioffe, Szegedy 2015, "Batch Normalization", algorithm 1): x [N, C] or [N, C, L]. For each channel
//
//   y = weight * x_hat + bias,  x_hat = (x - mean) * rstd,  rstd = 1 / sqrt(var + eps)
//
// over the n = N (L) elements of the channel, var with n: LayerNorm's formula down the batch instead of along a row. So
// each sample depends on all the others, which LayerNorm avoids.
//
// Derivation: that of layer_norm.cpp with the means taken per channel. With g = weight * dy
//     dx = rstd * (g - mean(g) - x_hat * mean(g * x_hat))
//     dweight = sum of dy * x_hat,  dbias = sum of dy, per channel
//   Where the statistics are given from outside (running, in evaluation), they do not depend on x: dx = rstd * g.

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

// Everything but the channels.
Dims batch_dims(std::int64_t dims) { return dims == 2 ? Dims{0} : Dims{0, 2}; }

// [C] as [C] or [C, 1], to meet x.
Tensor per_channel(const Tensor& values, std::int64_t dims) {
  return dims == 2 ? values : reshape(values, {values.numel(), 1});
}

struct Statistics {
  Tensor mean, d, var;  // mean and var with dimensions kept, d = x - mean
};

// Each channel's first element is taken off before the mean is formed: exact arithmetic would not notice (so it counts
// as a constant for derivatives), but a channel far from zero keeps its digits.
Statistics statistics(const Tensor& x) {
  Tensor first = slice(x.detach(), 0, 0, 1);
  if (x.dims() == 3) first = slice(first, 2, 0, 1);
  const Dims dims = batch_dims(x.dims());
  const Tensor from_first = x - first, shift = mean(from_first, dims, true), d = from_first - shift;
  return {first + shift, d, mean(d * d, dims, true)};
}

// Inputs x, weight [C], bias [C]; outputs y, mean [C] and var [C].
struct BatchNorm final : Node {
  explicit BatchNorm(double eps) : eps(eps) {}
  const double eps;

  const OpInfo& info() const override {
    static constexpr OpInfo info{
        .name = "batch_norm",
        .formula =
            "y = weight * x_hat + bias, x_hat = (x - mean(x)) * rstd, rstd = 1 / sqrt(var(x) + eps), per channel",
        .derivative =
            "g = weight * dy; dx = rstd * (g - mean(g) - x_hat * mean(g * x_hat)); "
            "dweight = sum(dy * x_hat); dbias = sum(dy)",
        .reference = "Ioffe, Szegedy 2015, Batch Normalization, algorithm 1",
        .file = "autograd/ops/batch_norm.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    const std::int64_t dims = in[0].dims(), C = in[0].size(1);
    const auto [mean, d, var] = statistics(in[0]);
    Tensor y = d / sqrt(var + eps);
    if (in[1].defined()) y = y * per_channel(in[1], dims);
    if (in[2].defined()) y = y + per_channel(in[2], dims);
    return {y, reshape(mean, {C}), reshape(var, {C})};
  }

  Saves saves() const override { return {.inputs = {0, 1}}; }

  // In ops, whether it will be differentiated again or not.
  void backward(const Tensors& all_dy, GradientSink& dx) const override {
    const Tensor& dy = all_dy[0];
    const Dims dims = batch_dims(dy.dims());
    const auto [_, d, var] = statistics(input(0));
    const Tensor rstd = 1.0 / sqrt(var + eps), x_hat = d * rstd;
    if (dx.needs(0)) {
      const Tensor g = has_input(1) ? dy * per_channel(input(1), dy.dims()) : dy;
      dx.add(0, rstd * (g - mean(g, dims, true) - x_hat * mean(g * x_hat, dims, true)));
    }
    if (has_input(1) && dx.needs(1)) dx.add(1, sum(dy * x_hat, dims));
    if (has_input(2) && dx.needs(2)) dx.add(2, sum(dy, dims));
  }
};

void check_batch_norm(const Tensor& x, std::initializer_list<Tensor> per_channel, double eps) {
  check(x.defined(), "batch_norm: x is undefined");
  check(x.dims() == 2 || x.dims() == 3, "batch_norm: expected x [N, C] or [N, C, L], got ", x.shape());
  for (const Tensor& values : per_channel) {
    if (!values.defined()) continue;
    check_same_dtype("batch_norm", x, values);
    check(values.shape() == Shape{x.size(1)}, "batch_norm: one value a channel is [", x.size(1), "] for x ", x.shape(),
          ", got ", values.shape());
  }
  check(eps >= 0, "batch_norm: eps is not negative, got ", eps);
}

}  // namespace

BatchNormResult batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  check_batch_norm(x, {weight, bias}, eps);
  check(x.size(0) * (x.dims() == 3 ? x.size(2) : 1) >= 2, "batch_norm: x ", x.shape(),
        " has fewer than two values a channel to form statistics of; use running statistics (evaluation)");
  const Tensors outputs = apply_op<BatchNorm>({x, weight, bias}, eps);
  return {outputs[0], outputs[1].detach(), outputs[2].detach()};
}

Tensor batch_norm_with(const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& weight, const Tensor& bias,
                       double eps) {
  check(mean.defined() && var.defined(), "batch_norm_with: mean and var are undefined");
  check_batch_norm(x, {mean, var, weight, bias}, eps);
  Tensor y = (x - per_channel(mean, x.dims())) / per_channel(sqrt(var + eps), x.dims());
  if (weight.defined()) y = y * per_channel(weight, x.dims());
  if (bias.defined()) y = y + per_channel(bias, x.dims());
  return y;
}

}  // namespace prenorm
