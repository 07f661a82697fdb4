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

// w_2(dropout(relu(w_1(x)))), [..., d_model] -> [..., d_model] through d_ff: the Transformer of 2017's (section 3.3).
// Children w_1, w_2, dropout.
class PositionwiseFeedForward : public Layer<PositionwiseFeedForward> {
 public:
  using Layer::Layer;
  PositionwiseFeedForward(std::int64_t d_model, std::int64_t d_ff, double dropout = 0.1);

  Tensor forward(const Tensor& x) const;
};

}  // namespace prenorm::nn
