// Attention layers.
#pragma once

#include "nn/module.h"

namespace prenorm::nn {

struct CausalSelfAttentionOptions {
  std::int64_t n_heads = 1;
  bool causal = true;  // false: each position sees all others, as in BERT's encoder
};

// x [B, T, d_model] -> [B, T, d_model]. Child `qkv` maps to queries, keys and values side by side, each cut into
// n_heads heads of d_model / n_heads features; each head computes softmax(q k^T / sqrt(d)) v over the positions up to
// its own; child `out` maps the heads, put back side by side.
class CausalSelfAttention : public Layer<CausalSelfAttention, CausalSelfAttentionOptions> {
 public:
  using Layer::Layer;
  CausalSelfAttention(std::int64_t d_model, std::int64_t n_heads, bool causal = true);

  Tensor forward(const Tensor& x) const;
};

}  // namespace prenorm::nn
