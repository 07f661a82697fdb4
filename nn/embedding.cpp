#include "nn/embedding.h"

namespace prenorm::nn {

Embedding::Embedding(std::int64_t num_embeddings, std::int64_t embedding_dim) : Layer("Embedding") {
  check(num_embeddings >= 0 && embedding_dim >= 0, "Embedding: sizes are not negative, got ", num_embeddings, " and ",
        embedding_dim);
  add_parameter("weight", randn({num_embeddings, embedding_dim}));
}

Tensor Embedding::forward(const Tensor& ids) const { return embedding(ids, weight()); }

}  // namespace prenorm::nn
