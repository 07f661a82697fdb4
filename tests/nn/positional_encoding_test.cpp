#include <cmath>
#include <string>
#include <vector>

#include "autograd/ops.h"
#include "layer_checks.h"
#include "nn/embedding.h"

namespace prenorm {
namespace {

using nn::Embeddings;
using nn::PositionalEncoding;

double encoding(std::int64_t p, std::int64_t feature, std::int64_t d_model) {
  const std::int64_t even = feature - feature % 2;
  const long double angle = static_cast<long double>(p) * std::pow(10000.0L, -static_cast<long double>(even) / d_model);
  return static_cast<double>(feature % 2 == 0 ? std::sin(angle) : std::cos(angle));
}

TEST_CASE("sine in even features, cosine in odd ones, also where their number is odd") {
  for (const std::int64_t d_model : {1, 2, 5, 16}) {
    const Tensor table = PositionalEncoding::table(100, d_model, float64);
    CHECK(table.shape() == Shape{1, 100, d_model});
    const std::vector<double> values = table.to_vector();
    for (std::int64_t p = 0; p < 100; ++p) {
      for (std::int64_t c = 0; c < d_model; ++c) {
        CHECK(std::abs(values[static_cast<std::size_t>(p * d_model + c)] - encoding(p, c, d_model)) < 1e-13);
      }
    }
  }
}

TEST_CASE("float32 tables are the float64 ones, rounded once, far positions too") {
  const Tensor exact = PositionalEncoding::table(5000, 7, float64),
               rounded = PositionalEncoding::table(5000, 7, float32);
  CHECK(same_bits(rounded, to(exact, float32)));
  CHECK(std::abs(exact.to_vector()[4999 * 7] - std::sin(4999.0)) < 1e-12);
}

TEST_CASE("the encoding is added to each sequence") {
  const PositionalEncoding layer(6, 0, 20);
  const Tensor x = randn({2, 5, 6});
  const Tensor y = layer(x);
  expect_close(y - x, expand(slice(PositionalEncoding::table(20, 6, float32), 1, 0, 5), {2, 5, 6}), 1e-6);
}

TEST_CASE("the table is a buffer named pe: saved, not trained") {
  const PositionalEncoding layer(6, 0.1, 20);
  CHECK(layer.parameters().empty());
  CHECK(paths(layer.buffers()) == std::vector<std::string>{"pe"});
  CHECK(paths(layer.state_dict()) == std::vector<std::string>{"pe"});
  CHECK(layer.buffers()[0].tensor.shape() == Shape{1, 20, 6});
  CHECK_FALSE(layer.buffers()[0].tensor.requires_grad());
  CHECK(PositionalEncoding(6, 0).buffers()[0].tensor.size(1) == 5000);
}

TEST_CASE("a sequence as long as the table fits, a longer one is an error that shows both lengths") {
  const PositionalEncoding layer(6, 0, 20);
  CHECK(layer(randn({1, 20, 6})).shape() == Shape{1, 20, 6});
  CHECK(layer(randn({2, 0, 6})).shape() == Shape{2, 0, 6});
  expect_error([&] { layer(randn({1, 21, 6})); }, {"PositionalEncoding", "21", "20"});
}

TEST_CASE("shapes that do not fit are errors that show them") {
  const PositionalEncoding layer(6, 0, 20);
  expect_error([&] { layer(randn({5, 6})); }, {"PositionalEncoding", "[5, 6]"});
  expect_error([&] { layer(randn({2, 5, 4})); }, {"PositionalEncoding", "[2, 5, 4]", "6"});
  expect_error([] { PositionalEncoding(0, 0); }, {"PositionalEncoding", "0"});
  expect_error([] { PositionalEncoding(4, 0, 0); }, {"PositionalEncoding", "0"});
  expect_error([] { PositionalEncoding(4, -0.1); }, {"Dropout", "-0.1"});
}

TEST_CASE("dropout in training, none in evaluation, and then nothing is drawn") {
  const PositionalEncoding layer(6, 0.5, 20);
  const Tensor x = randn({2, 5, 6});
  CHECK_FALSE(same_bits(layer(x), layer(x)));
  layer.eval();
  const auto before = generator_state();
  CHECK(same_bits(layer(x), x + slice(layer.buffers()[0].tensor, 1, 0, 5)));
  CHECK(generator_state() == before);
}

TEST_CASE("the gradient passes as it is") {
  const PositionalEncoding layer(6, 0, 20);
  const Tensor x = randn({2, 5, 6}, {.requires_grad = true}), dy = randn({2, 5, 6});
  layer(x).backward(dy);
  CHECK(same_bits(x.grad(), dy));
  expect_layer_gradients(PositionalEncoding(5, 0.3, 8), {randn({2, 3, 5})},
                         [](const PositionalEncoding& pe, const Tensors& in) { return pe(in[0]); });
}

TEST_CASE("embeddings are rows times the root of their size") {
  const Embeddings layer(16, 7);
  CHECK(paths(layer.parameters()) == std::vector<std::string>{"lut.weight"});
  CHECK(layer.parameters()[0].tensor.shape() == Shape{7, 16});
  const Tensor ids = Tensor::of({0, 6, 6}, {1, 3}, {.dtype = int64});
  CHECK(same_bits(layer(ids), embedding(ids, layer.parameters()[0].tensor) * 4));
  expect_error([&] { layer(Tensor::of({7}, {.dtype = int64})); }, {"7"});
  expect_layer_gradients(Embeddings(4, 5), {Tensor::of({1, 1, 0, 4}, {2, 2}, {.dtype = int64})},
                         [](const Embeddings& e, const Tensors& in) { return e(in[0]); });
}

}  // namespace
}  // namespace prenorm
