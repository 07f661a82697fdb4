// TinyLM: a GPT-like language model, small enough to be watched.
#pragma once

#include "nn/block.h"
#include "nn/module.h"

namespace prenorm::nn {

struct TinyLMOptions {
  std::int64_t d_model = 64;
  std::int64_t n_heads = 4;
  std::int64_t n_layers = 8;
  std::int64_t max_len = 64;
  std::int64_t expansion = 4;  // of the feed-forwards
  bool use_residual = true;
  Norm norm = Norm::standard;
  Order order = Order::pre;
  double dropout = 0;
  bool tie_head = false;  // the head is the token embedding, without a bias
};

// ids int64 [B, T], T <= max_len -> logits [B, T, vocab].
//   x = tok[ids] + pos[0 … T - 1];  x = blocks(x);  logits = head(ln_f(x))
// The final norm belongs to the pre order; the post order has none.
// Children tok, pos, blocks.0 …, ln_f, head. Weights are drawn in the order of the list in PyTorch's way.
class TinyLM : public Layer<TinyLM, TinyLMOptions> {
 public:
  using Layer::Layer;
  explicit TinyLM(std::int64_t vocab, TinyLMOptions options = {});

  Tensor forward(const Tensor& ids) const;

  // The stream that the blocks begin with: ids int64 [B, T] -> [B, T, d_model].
  Tensor embed(const Tensor& ids) const;

  std::int64_t vocab() const;
  Block blocks(std::int64_t index) const;
};

}  // namespace prenorm::nn
