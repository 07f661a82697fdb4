// Attention layers.
#pragma once

#include "nn/module.h"

namespace prenorm::nn {

// softmax(q k^T / sqrt(D)) v, q [..., Tq, D], k [..., Tk, D], v [..., Tk, Dv], as in the Annotated Transformer: scores
// where `mask` (bool, broadcasts to [..., Tq, Tk]; may be undefined) is false become -1e9, so a row without any true
// gets equal weights. Each weight is dropped with probability `dropout` before it meets v; the weights returned are
// those before.
AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask = {},
                          double dropout = 0);

// bool [1, size, size]: true where a position may look, at itself and what came before.
Tensor subsequent_mask(std::int64_t size);

struct MultiHeadedAttentionConfig {
  std::int64_t h;
  double dropout;
  Tensor last_weights;  // see MultiHeadedAttention::weights()
};

// query [B, Tq, d_model], key and value [B, Tk, d_model] -> [B, Tq, d_model], through four linears: `linears.0` to
// `linears.2` map query, key and value, which are cut into h heads of d_model / h features; `linears.3` maps the heads,
// put back side by side. mask: bool [B, 1, Tk] or [B, Tq, Tk], the same for all heads.
class MultiHeadedAttention : public Layer<MultiHeadedAttention, MultiHeadedAttentionConfig> {
 public:
  using Layer::Layer;
  MultiHeadedAttention(std::int64_t h, std::int64_t d_model, double dropout = 0.1);

  Tensor forward(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask = {}) const;

  // The attention weights of the last call, [B, h, Tq, Tk], detached; undefined before the first.
  const Tensor& weights() const { return options().last_weights; }
};

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
