// The decoder of the Transformer (Vaswani et al. 2017), as the Annotated Transformer builds it.
#pragma once

#include "nn/encoder.h"

namespace prenorm::nn {

// Self-attention, attention over the encoder's memory, then a feed-forward, each in a SublayerConnection:
// x [B, T, size], memory [B, S, size], src_mask bool [B, 1, S], tgt_mask bool [B, T, T], masks maybe undefined.
// Children self_attn, src_attn, feed_forward (as given, not copied), sublayer.0 to sublayer.2.
class DecoderLayer : public Layer<DecoderLayer, EncoderLayerConfig> {
 public:
  using Layer::Layer;
  DecoderLayer(std::int64_t size, const MultiHeadedAttention& self_attn, const MultiHeadedAttention& src_attn,
               const Module& feed_forward, EncoderLayerOptions options = {});

  Tensor forward(const Tensor& x, const Tensor& memory, const Tensor& src_mask, const Tensor& tgt_mask) const;
};

// N deep copies of a layer one after another, then, in the pre order, a final norm. Children layers.0 …, norm.
class Decoder : public Layer<Decoder> {
 public:
  using Layer::Layer;
  Decoder(const DecoderLayer& layer, std::int64_t N);

  Tensor forward(const Tensor& x, const Tensor& memory, const Tensor& src_mask, const Tensor& tgt_mask) const;
};

}  // namespace prenorm::nn
