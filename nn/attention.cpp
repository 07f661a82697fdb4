#include "nn/attention.h"

#include "nn/linear.h"

namespace prenorm::nn {

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
