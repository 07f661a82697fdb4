#include "nn/block.h"

#include "nn/attention.h"
#include "nn/feed_forward.h"

namespace prenorm::nn {

Block::Block(std::int64_t d_model, std::int64_t n_heads, BlockOptions options) : Layer("Block", options) {
  check(options.dropout >= 0 && options.dropout <= 1, "Block: dropout is in [0, 1], got ", options.dropout);
  add_child("attn", CausalSelfAttention(d_model, n_heads, options.causal));
  add_child("ffn", FeedForward(d_model, options.expansion));
  add_child("ln1", make_norm(options.norm, d_model));
  add_child("ln2", make_norm(options.norm, d_model));
}

Tensor Block::forward(const Tensor& x) const {
  const auto around = [&](const Module& branch, const Module& norm, const Tensor& stream) {
    const bool pre = options().order == Order::pre;
    const Tensor y = dropout(branch(pre ? norm(stream) : stream), options().dropout, is_training());
    const Tensor out = options().use_residual ? residual_add(stream, y) : y;
    return pre ? out : norm(out);
  };
  return around(child("ffn"), child("ln2"), around(child("attn"), child("ln1"), x));
}

}  // namespace prenorm::nn
