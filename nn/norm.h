// Normalisation layers. The two LayerNorms differ, and learners trip over it: see the forms below.
#pragma once

#include <optional>

#include "nn/module.h"

namespace prenorm::nn {

enum class Norm {
  unbiased,  // LayerNorm: a_2 * (x - mean) / (std + eps) + b_2, std with n - 1: the Annotated Transformer's
  standard,  // LayerNorm: gamma * (x - mean) / sqrt(var + eps) + beta, var with n: Ba et al.'s and PyTorch's
  rms,       // RMSNorm: x / sqrt(mean(x^2) + eps) * weight
  none,      // the identity
};

struct LayerNormOptions {
  Norm form = Norm::unbiased;      // or standard
  std::optional<double> eps = {};  // default 1e-6 unbiased, 1e-5 standard
  bool affine = true;              // whether there are parameters for scale and shift
};

// What a LayerNorm knows of itself.
struct LayerNormConfig {
  Shape normalized_shape;
  Norm form;
  double eps;
  bool affine;
};

// Normalises over the last dimension, or in the standard form over the last normalized_shape.dims() dimensions.
// Parameters: a_2 and b_2 (unbiased) or gamma and beta (standard), from ones and zeros.
class LayerNorm : public Layer<LayerNorm, LayerNormConfig> {
 public:
  using Layer::Layer;
  explicit LayerNorm(std::int64_t features, LayerNormOptions options = {}) : LayerNorm(Shape{features}, options) {}
  explicit LayerNorm(const Shape& normalized_shape, LayerNormOptions options = {});

  Tensor forward(const Tensor& x) const;
};

struct RMSNormOptions {
  double eps = 1e-6;
};

// x / sqrt(mean(x^2) + eps) * weight over the last dimension (Zhang, Sennrich 2019, eq. 4). Parameter weight, from
// ones.
class RMSNorm : public Layer<RMSNorm, RMSNormOptions> {
 public:
  using Layer::Layer;
  explicit RMSNorm(std::int64_t features, RMSNormOptions options = {});

  Tensor forward(const Tensor& x) const;
};

// The layer of a form, with its default eps.
Module make_norm(Norm form, std::int64_t features);

}  // namespace prenorm::nn
