// The Transformer block of GPT-like models, with the switches that show what residuals and norms are for.
#pragma once

#include "nn/module.h"
#include "nn/norm.h"
#include "nn/residual.h"

namespace prenorm::nn {

struct BlockOptions {
  bool use_residual = true;
  Norm norm = Norm::standard;  // Norm::none: without
  Order order = Order::pre;
  bool causal = true;
  double dropout = 0;  // on what each branch adds
  std::int64_t expansion = 4;
};

// x [B, T, d_model] -> [B, T, d_model]: self-attention, then a feed-forward, each a branch around the residual stream.
// Pre order: x = x + attn(ln1(x)), x = x + ffn(ln2(x)). Children attn, ffn, ln1, ln2.
class Block : public Layer<Block, BlockOptions> {
 public:
  using Layer::Layer;
  Block(std::int64_t d_model, std::int64_t n_heads, BlockOptions options = {});

  Tensor forward(const Tensor& x) const;
};

}  // namespace prenorm::nn
