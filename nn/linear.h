#pragma once

#include "nn/module.h"

namespace prenorm::nn {

struct LinearOptions {
  bool bias = true;
};

// y = x W^T + b, [..., in] -> [..., out]. Parameters weight [out, in], bias [out], both uniform in ±1 / sqrt(in).
class Linear : public Layer<Linear, LinearOptions> {
 public:
  using Layer::Layer;
  Linear(std::int64_t in_features, std::int64_t out_features, LinearOptions options = {});

  Tensor forward(const Tensor& x) const;

  const Tensor& weight() const { return parameter("weight"); }
  Tensor bias() const { return options().bias ? parameter("bias") : Tensor(); }
  // Uses another layer's parameter [out, in] as weight from now on, as language models do with their embedding.
  void tie_weight(const Tensor& weight) { tie_parameter("weight", weight); }
};

}  // namespace prenorm::nn
