#include "nn/init.h"

#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"

namespace prenorm::nn {

Tensor linear_uniform(const Shape& shape, std::int64_t fan_in) {
  const double bound = fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
  return uniform(shape, -bound, bound);
}

void xavier_uniform_(const Tensor& weight, double gain) {
  check(weight.dims() == 2, "xavier_uniform_: expected a weight [out, in], got ", weight.shape());
  const NoGrad no_grad;
  const double bound = gain * std::sqrt(6.0 / static_cast<double>(weight.size(0) + weight.size(1)));
  copy_(weight, uniform(weight.shape(), -bound, bound, {.dtype = weight.dtype()}));
}

}  // namespace prenorm::nn
