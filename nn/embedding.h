#pragma once

#include "nn/module.h"

namespace prenorm::nn {

// A row of `weight` [num_embeddings, embedding_dim] for each id: int64 [...] -> [..., embedding_dim]. Drawn from N(0,
// 1).
class Embedding : public Layer<Embedding> {
 public:
  using Layer::Layer;
  Embedding(std::int64_t num_embeddings, std::int64_t embedding_dim);

  Tensor forward(const Tensor& ids) const;

  const Tensor& weight() const { return parameter("weight"); }
};

// sqrt(d_model) * lut(ids), int64 [...] -> [..., d_model] (Vaswani et al. 2017, section 3.4). Child lut, an Embedding.
class Embeddings : public Layer<Embeddings> {
 public:
  using Layer::Layer;
  Embeddings(std::int64_t d_model, std::int64_t vocab);

  Tensor forward(const Tensor& ids) const;
};

// x [B, T, d_model] -> dropout(x + pe[:, :T]), T <= max_len: position p adds sin(p w_i) to feature 2i and cos(p w_i) to
// feature 2i + 1, w_i = 10000^(-2i / d_model) (Vaswani et al. 2017, section 3.5). Buffer pe [1, max_len, d_model];
// child dropout.
class PositionalEncoding : public Layer<PositionalEncoding> {
 public:
  using Layer::Layer;
  PositionalEncoding(std::int64_t d_model, double dropout, std::int64_t max_len = 5000);

  Tensor forward(const Tensor& x) const;

  // The table, computed in float64 and rounded to `dtype`. A module converted to float64 keeps the rounded one.
  static Tensor table(std::int64_t max_len, std::int64_t d_model, DType dtype);
};

}  // namespace prenorm::nn
