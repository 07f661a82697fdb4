// Position-wise feed-forward layers: each position on its own, two linears with a non-linearity between.
#pragma once

#include "nn/module.h"

namespace prenorm::nn {

// w2(gelu(w1(x))), [..., d_model] -> [..., d_model] through expansion * d_model. Children w1, w2.
class FeedForward : public Layer<FeedForward> {
 public:
  using Layer::Layer;
  explicit FeedForward(std::int64_t d_model, std::int64_t expansion = 4);

  Tensor forward(const Tensor& x) const;
};

}  // namespace prenorm::nn
