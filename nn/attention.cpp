#include "nn/attention.h"

#include <cmath>

#include "nn/container.h"
#include "nn/linear.h"

namespace prenorm::nn {

AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, double dropout) {
  constexpr double kMasked = -1e9;
  if (dropout == 0) return scaled_dot_product_attention(q, k, v, mask, {.masked_score = kMasked});
  Tensor scores = matmul(q, transpose(k, -2, -1)) / std::sqrt(static_cast<double>(q.size(-1)));
  if (mask.defined()) scores = masked_fill(scores, expand(logical_not(mask), scores.shape()), kMasked);
  const Tensor weights = softmax(scores);
  return {matmul(prenorm::dropout(weights, dropout), v), weights.detach()};
}

Tensor subsequent_mask(std::int64_t size) { return tril(ones({1, size, size}, boolean)); }

MultiHeadedAttention::MultiHeadedAttention(std::int64_t h, std::int64_t d_model, double dropout)
    : Layer("MultiHeadedAttention", {.h = h, .dropout = dropout, .last_weights = {}}) {
  check(h >= 1 && d_model >= 1 && d_model % h == 0, "MultiHeadedAttention: d_model ", d_model, " cannot be cut into ",
        h, " heads of equal size");
  check(dropout >= 0 && dropout <= 1, "MultiHeadedAttention: dropout is in [0, 1], got ", dropout);
  add_child("linears", clones(Linear(d_model, d_model), 4));
}

Tensor MultiHeadedAttention::forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const Tensor& mask) const {
  for (const Tensor& x : {query, key, value}) {
    check(x.dims() == 3, "MultiHeadedAttention: expected query, key and value [B, T, d_model], got ", query.shape(),
          ", ", key.shape(), " and ", value.shape());
  }
  const ModuleList linears = child<ModuleList>("linears");
  const std::int64_t B = query.size(0), h = options().h, C = query.size(2);
  const auto heads = [&](std::int64_t i, const Tensor& x) {  // [B, h, T, D]
    return transpose(reshape(linears.get<Linear>(i)(x), {B, x.size(1), h, C / h}), 1, 2);
  };
  const Tensor q = heads(0, query), k = heads(1, key), v = heads(2, value);
  const Tensor for_heads = mask.defined() ? unsqueeze(mask, 1) : mask;
  const AttentionResult result = attention(q, k, v, for_heads, is_training() ? options().dropout : 0);
  config().last_weights = result.weights;
  return linears.get<Linear>(3)(reshape(transpose(result.y, 1, 2), {B, query.size(1), C}));
}

CausalSelfAttention::CausalSelfAttention(std::int64_t d_model, std::int64_t n_heads, bool causal)
    : Layer("CausalSelfAttention", {.n_heads = n_heads, .causal = causal}) {
  check(n_heads >= 1 && d_model >= 1 && d_model % n_heads == 0, "CausalSelfAttention: d_model ", d_model,
        " cannot be cut into ", n_heads, " heads of equal size");
  add_child("qkv", Linear(d_model, 3 * d_model));
  add_child("out", Linear(d_model, d_model));
}

Tensor CausalSelfAttention::forward(const Tensor& x) const {
  check(x.dims() == 3, "CausalSelfAttention: expected x [B, T, d_model], got ", x.shape());
  const std::int64_t B = x.size(0), T = x.size(1), C = x.size(2), H = options().n_heads;
  const Tensor qkv = child("qkv")(x);
  if (options().causal) return child("out")(causal_attention_packed(qkv, H));

  const Tensor heads = permute(reshape(qkv, {B, T, 3, H, C / H}), {2, 0, 3, 1, 4});  // [3, B, H, T, D]
  const Tensor y = scaled_dot_product_attention(select(heads, 0, 0), select(heads, 0, 1), select(heads, 0, 2)).y;
  return child("out")(reshape(transpose(y, 1, 2), {B, T, C}));
}

}  // namespace prenorm::nn
