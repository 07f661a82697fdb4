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

}  // namespace prenorm::nn
