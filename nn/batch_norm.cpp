#include "nn/batch_norm.h"

namespace prenorm::nn {

BatchNorm1d::BatchNorm1d(std::int64_t channels, BatchNorm1dOptions options) : Layer("BatchNorm1d", options) {
  if (options.affine) {
    add_parameter("weight", ones({channels}));
    add_parameter("bias", zeros({channels}));
  }
  add_buffer("running_mean", zeros({channels}));
  add_buffer("running_var", ones({channels}));
}

Tensor BatchNorm1d::forward(const Tensor& x) const {
  const auto [eps, momentum, affine] = options();
  const Tensor weight = affine ? parameter("weight") : Tensor(), bias = affine ? parameter("bias") : Tensor();
  const Tensor &running_mean = buffer("running_mean"), &running_var = buffer("running_var");
  check((x.dims() == 2 || x.dims() == 3) && x.size(1) == running_mean.size(0), "BatchNorm1d: expected x [N, ",
        running_mean.size(0), "] or [N, ", running_mean.size(0), ", L], got ", x.shape());
  if (!is_training()) return batch_norm_with(x, running_mean, running_var, weight, bias, eps);

  const std::int64_t count = x.numel() / std::max<std::int64_t>(x.size(1), 1);
  check(count > 1, "BatchNorm1d: training needs more than one value a channel, got x ", x.shape());
  const auto [y, mean, var] = batch_norm(x, weight, bias, eps);
  const NoGrad no_grad;
  const double unbiased = static_cast<double>(count) / static_cast<double>(count - 1);
  add_(mul_(running_mean, 1 - momentum), mean, momentum);
  add_(mul_(running_var, 1 - momentum), var, momentum * unbiased);
  return y;
}

}  // namespace prenorm::nn
