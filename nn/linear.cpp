#include "nn/linear.h"

#include "nn/init.h"

namespace prenorm::nn {

Linear::Linear(std::int64_t in_features, std::int64_t out_features, LinearOptions options) : Layer("Linear", options) {
  check(in_features >= 0 && out_features >= 0, "Linear: sizes are not negative, got ", in_features, " and ",
        out_features);
  add_parameter("weight", linear_uniform({out_features, in_features}, in_features));
  if (options.bias) add_parameter("bias", linear_uniform({out_features}, in_features));
}

Tensor Linear::forward(const Tensor& x) const { return linear(x, weight(), bias()); }

}  // namespace prenorm::nn
