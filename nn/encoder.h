// The encoder of the Transformer (Vaswani et al. 2017), as the Annotated Transformer builds it: in the pre order by
// default, with the unbiased LayerNorm.
#pragma once

#include "nn/attention.h"
#include "nn/module.h"
#include "nn/residual.h"

namespace prenorm::nn {

struct EncoderLayerOptions {
  double dropout = 0.1;
  Order order = Order::pre;
};

struct EncoderLayerConfig {
  std::int64_t size;
  Order order;
};

// Self-attention, then a feed-forward, each in a SublayerConnection: x [B, T, size], mask bool [B, 1, T] or [B, T, T]
// or undefined. Children self_attn, feed_forward (as given, not copied), sublayer.0 and sublayer.1.
class EncoderLayer : public Layer<EncoderLayer, EncoderLayerConfig> {
 public:
  using Layer::Layer;
  EncoderLayer(std::int64_t size, const MultiHeadedAttention& self_attn, const Module& feed_forward,
               EncoderLayerOptions options = {});

  Tensor forward(const Tensor& x, const Tensor& mask = {}) const;
};

// N deep copies of a layer one after another, then, in the pre order, a final norm. Children layers.0 …, norm.
class Encoder : public Layer<Encoder> {
 public:
  using Layer::Layer;
  Encoder(const EncoderLayer& layer, std::int64_t N);

  Tensor forward(const Tensor& x, const Tensor& mask = {}) const;
};

// The norm after a stack of layers: the pre order needs one, the post order has just normalised.
Module final_norm(Order order, std::int64_t size);

}  // namespace prenorm::nn
