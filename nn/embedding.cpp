#include "nn/embedding.h"

#include <cmath>

#include "nn/dropout.h"

namespace prenorm::nn {

Embedding::Embedding(std::int64_t num_embeddings, std::int64_t embedding_dim) : Layer("Embedding") {
  check(num_embeddings >= 0 && embedding_dim >= 0, "Embedding: sizes are not negative, got ", num_embeddings, " and ",
        embedding_dim);
  add_parameter("weight", randn({num_embeddings, embedding_dim}));
}

Tensor Embedding::forward(const Tensor& ids) const { return embedding(ids, weight()); }

Embeddings::Embeddings(std::int64_t d_model, std::int64_t vocab) : Layer("Embeddings") {
  add_child("lut", Embedding(vocab, d_model));
}

Tensor Embeddings::forward(const Tensor& ids) const {
  const Tensor rows = child("lut")(ids);
  return rows * std::sqrt(static_cast<double>(rows.size(-1)));
}

PositionalEncoding::PositionalEncoding(std::int64_t d_model, double dropout, std::int64_t max_len)
    : Layer("PositionalEncoding") {
  check(d_model >= 1 && max_len >= 1, "PositionalEncoding: d_model ", d_model, " and max_len ", max_len,
        " are at least 1");
  add_child("dropout", Dropout(dropout));
  add_buffer("pe", table(max_len, d_model, float32));
}

Tensor PositionalEncoding::table(std::int64_t max_len, std::int64_t d_model, DType dtype) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(max_len * d_model));
  for (std::int64_t p = 0; p < max_len; ++p) {
    for (std::int64_t c = 0; c < d_model; ++c) {
      const double w = std::pow(10000.0, -static_cast<double>(c - c % 2) / static_cast<double>(d_model));
      const double angle = static_cast<double>(p) * w;
      values.push_back(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return Tensor::of(values, {1, max_len, d_model}, {.dtype = dtype});
}

Tensor PositionalEncoding::forward(const Tensor& x) const {
  const Tensor& pe = buffer("pe");
  check(x.dims() == 3 && x.size(2) == pe.size(2), "PositionalEncoding: expected x [B, T, ", pe.size(2), "], got ",
        x.shape());
  check(x.size(1) <= pe.size(1), "PositionalEncoding: a sequence of ", x.size(1), " is longer than max_len ",
        pe.size(1));
  return child("dropout")(x + slice(pe, 1, 0, x.size(1)));
}

}  // namespace prenorm::nn
