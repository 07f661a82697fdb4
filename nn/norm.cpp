#include "nn/norm.h"

#include "nn/activation.h"

namespace prenorm::nn {

LayerNorm::LayerNorm(const Shape& normalized_shape, LayerNormOptions options)
    : Layer("LayerNorm", {normalized_shape, options.form,
                          options.eps.value_or(options.form == Norm::unbiased ? 1e-6 : 1e-5), options.affine}) {
  const bool unbiased = options.form == Norm::unbiased;
  check(unbiased || options.form == Norm::standard, "LayerNorm: its forms are unbiased and standard");
  check(!normalized_shape.empty() && (!unbiased || normalized_shape.dims() == 1), "LayerNorm: the ",
        unbiased ? "unbiased" : "standard", " form cannot normalise over ", normalized_shape);
  check(!unbiased || normalized_shape[0] != 1,
        "LayerNorm: the unbiased form needs at least 2 features: the std of one value with n - 1 is 0 / 0");
  if (!options.affine) return;
  add_parameter(unbiased ? "a_2" : "gamma", ones(normalized_shape));
  add_parameter(unbiased ? "b_2" : "beta", zeros(normalized_shape));
}

Tensor LayerNorm::forward(const Tensor& x) const {
  const auto& [shape, form, eps, affine] = options();
  check(x.dims() >= shape.dims() && Shape(x.shape().end() - shape.dims(), x.shape().end()) == shape, "LayerNorm: x ",
        x.shape(), " does not end in ", shape);
  const auto named = [&, affine = affine](std::string_view name) { return affine ? parameter(name) : Tensor(); };
  if (form == Norm::unbiased) return layer_norm_std(x, named("a_2"), named("b_2"), eps);
  return layer_norm(x, shape, named("gamma"), named("beta"), eps);
}

RMSNorm::RMSNorm(std::int64_t features, RMSNormOptions options) : Layer("RMSNorm", options) {
  add_parameter("weight", ones({features}));
}

Tensor RMSNorm::forward(const Tensor& x) const { return rms_norm(x, parameter("weight"), options().eps); }

Module make_norm(Norm form, std::int64_t features) {
  if (form == Norm::none) return Identity();
  if (form == Norm::rms) return RMSNorm(features);
  return LayerNorm(features, {.form = form});
}

}  // namespace prenorm::nn
