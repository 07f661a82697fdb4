#include <cmath>
#include <string>
#include <vector>

#include "autograd/ops.h"
#include "layer_checks.h"
#include "nn/attention.h"
#include "nn/container.h"
#include "nn/linear.h"

namespace prenorm {
namespace {

using nn::MultiHeadedAttention;

Tensor mask_of(std::initializer_list<double> values, const Shape& shape) {
  return Tensor::of(values, shape, {.dtype = boolean});
}
Tensor self(const MultiHeadedAttention& mha, const Tensor& x, const Tensor& mask = {}) { return mha(x, x, x, mask); }

TEST_CASE("attention: softmax of scaled scores, applied to the values") {
  const Tensor q = randn64({2, 3, 4}, 1), k = randn64({2, 5, 4}, 2), v = randn64({2, 5, 6}, 3);
  const auto [y, weights] = nn::attention(q, k, v);
  const Tensor expected = softmax(matmul(q, transpose(k, -2, -1)) / 2);
  expect_close(weights, expected);
  expect_close(y, matmul(expected, v));
}

TEST_CASE("attention: a masked position gets weight exactly 0, whatever the scores") {
  const Tensor mask = mask_of({1, 1, 0, 1}, {1, 4});
  for (const double scale : {0.0, 1.0, 1e4}) {  // zero scores: -1e-9 in place of -1e9 would show
    const Tensor q = randn({3, 8}) * scale, k = randn({4, 8}), v = randn({4, 8});
    const Tensor weights = nn::attention(q, k, v, mask).weights;
    CHECK(is_finite(weights));
    CHECK(same_bits(select(weights, 1, 2), zeros({3})));
    expect_close(sum(weights, {-1}), std::vector<double>(3, 1), 1e-6);
  }
}

TEST_CASE("attention: dropout falls on the weights that meet the values, not on those that are returned") {
  const Tensor q = randn({3, 4}), k = randn({5, 4}), v = randn({5, 4});
  const auto plain = nn::attention(q, k, v), dropped = nn::attention(q, k, v, {}, 0.5);
  expect_close(dropped.weights, plain.weights, 1e-6);
  CHECK_FALSE(same_bits(dropped.y, plain.y));
  CHECK(same_bits(nn::attention(q, k, v, {}, 1).y, zeros({3, 4})));
  // On average over many draws nothing changes: what stays is scaled up.
  const Tensor many =
      mean(nn::attention(expand(q, {20000, 3, 4}), expand(k, {20000, 5, 4}), expand(v, {20000, 5, 4}), {}, 0.1).y, {0});
  expect_close(many, plain.y, 0.02);
}

TEST_CASE("attention: with dropout and a mask the masked positions still get nothing") {
  const Tensor mask = mask_of({1, 1, 0, 0, 1, 0, 1, 1}, {2, 1, 4});
  const Tensor q = randn({2, 3, 4}), k = randn({2, 4, 4});
  const Tensor v = randn({2, 4, 4}), noisy = where(expand(transpose(mask, 1, 2), {2, 4, 4}), v, v + 100);
  manual_seed(3);
  const Tensor y = nn::attention(q, k, v, mask, 0.3).y;
  manual_seed(3);
  CHECK(same_bits(nn::attention(q, k, noisy, mask, 0.3).y, y));
}

TEST_CASE("subsequent_mask: a position sees itself and what came before") {
  CHECK(same_bits(nn::subsequent_mask(3), mask_of({1, 0, 0, 1, 1, 0, 1, 1, 1}, {1, 3, 3})));
  CHECK(same_bits(nn::subsequent_mask(1), mask_of({1}, {1, 1, 1})));
  CHECK(nn::subsequent_mask(4).dtype() == boolean);
}

TEST_CASE("four linears of equal size, copies of one") {
  manual_seed(0);
  const MultiHeadedAttention mha(2, 8);
  const NamedTensors parameters = mha.parameters();
  CHECK(paths(parameters) == std::vector<std::string>{"linears.0.weight", "linears.0.bias", "linears.1.weight",
                                                      "linears.1.bias", "linears.2.weight", "linears.2.bias",
                                                      "linears.3.weight", "linears.3.bias"});
  CHECK(path_set(parameters) == golden_paths("multi_headed_attention.none"));
  const auto after = generator_state();
  manual_seed(0);
  const nn::Linear linear(8, 8);
  CHECK(generator_state() == after);  // the copies drew nothing
  for (std::size_t i = 0; i < parameters.size(); i += 2) {
    CHECK(same_bits(parameters[i].tensor, linear.weight()));
    CHECK(same_bits(parameters[i + 1].tensor, linear.bias()));
  }
}

TEST_CASE("each head attends with its own features; the heads are put back side by side") {
  const std::int64_t d_model = 6, h = 3, d = 2;
  const MultiHeadedAttention mha(h, d_model, 0);
  mha.to(float64);
  std::uint64_t seed = 10;
  for (const NamedTensor& named : mha.parameters()) {
    const Tensor& parameter = named.tensor;
    const NoGrad no_grad;
    copy_(parameter, randn64(parameter.shape(), seed++));
  }
  const nn::ModuleList linears = mha.at("linears").as<nn::ModuleList>();
  const Tensor query = randn64({2, 3, d_model}, 1), key = randn64({2, 4, d_model}, 2),
               value = randn64({2, 4, d_model}, 3);
  const Tensor mask = mask_of({1, 1, 1, 0, 1, 0, 1, 1}, {2, 1, 4});
  const Tensor q = linears.get<nn::Linear>(0)(query), k = linears.get<nn::Linear>(1)(key),
               v = linears.get<nn::Linear>(2)(value);
  Tensors heads;
  for (std::int64_t i = 0; i < h; ++i) {
    const auto part = [&](const Tensor& x) { return slice(x, 2, i * d, (i + 1) * d); };
    heads.push_back(nn::attention(part(q), part(k), part(v), mask).y);
  }
  expect_close(mha(query, key, value, mask), linears.get<nn::Linear>(3)(concat(heads, 2)), 1e-10);
}

TEST_CASE("the weights of the last call are kept, detached") {
  const MultiHeadedAttention mha(2, 8);
  CHECK_FALSE(mha.weights().defined());
  const Tensor query = randn({3, 4, 8}, {.requires_grad = true}), memory = randn({3, 5, 8});
  const Tensor mask = mask_of({1, 1, 1, 1, 0}, {1, 1, 5});
  mha(query, memory, memory, expand(mask, {3, 1, 5}));
  const Tensor weights = mha.weights();
  CHECK(weights.shape() == Shape{3, 2, 4, 5});
  CHECK_FALSE(weights.requires_grad());
  expect_close(sum(weights, {-1}), std::vector<double>(24, 1), 1e-6);
  CHECK(same_bits(select(weights, 3, 4), zeros({3, 2, 4})));
  self(mha, query);
  CHECK(mha.weights().shape() == Shape{3, 2, 4, 4});
  const std::int64_t nodes = Node::live_count();
  self(mha, query);
  CHECK(Node::live_count() == nodes);  // they hold no graph
}

TEST_CASE("masks of [B, 1, Tk] and [B, Tq, Tk] mean the same for all heads") {
  const MultiHeadedAttention mha(2, 8, 0);
  const Tensor x = randn({2, 3, 8});
  const Tensor narrow = mask_of({1, 1, 0, 1, 1, 1}, {2, 1, 3});
  const Tensor y = self(mha, x, narrow);
  CHECK(same_bits(self(mha, x, expand(narrow, {2, 3, 3})), y));
  CHECK(same_bits(self(mha, x, ones({1, 1, 3}, boolean)), self(mha, x)));
  expect_error([&] { self(mha, x, ones({2, 1, 4}, boolean)); }, {"4", "[2, 2, 3, 3]"});
}

TEST_CASE("a row that may look at nothing has equal weights, and finite gradients") {
  const MultiHeadedAttention mha(2, 8, 0);
  const Tensor x = randn({1, 4, 8}, {.requires_grad = true});
  Tensor mask = ones({1, 4, 4}, boolean);
  fill_(select(mask, 1, 2), 0);
  const Tensor y = self(mha, x, mask);
  expect_close(select(mha.weights(), 2, 2), std::vector<double>(8, 0.25), 1e-7);
  y.backward(randn({1, 4, 8}));
  CHECK(is_finite(x.grad()));
  for (const NamedTensor& p : mha.parameters()) CHECK_MESSAGE(is_finite(p.tensor.grad()), p.path);

  // All rows so.
  CHECK(is_finite(self(mha, x, zeros({1, 1, 4}, boolean))));
  expect_close(mha.weights(), std::vector<double>(32, 0.25), 1e-7);
}

TEST_CASE("under -inf such a row gives 0, with finite gradients") {
  const Tensor q = randn({3, 4}, {.requires_grad = true}), k = randn({5, 4}, {.requires_grad = true}),
               v = randn({5, 4}, {.requires_grad = true});
  Tensor mask = ones({3, 5}, boolean);
  fill_(select(mask, 0, 1), 0);
  const Tensor y = scaled_dot_product_attention(q, k, v, mask).y;
  CHECK(same_bits(select(y, 0, 1), zeros({4})));
  y.backward(randn({3, 4}));
  for (const Tensor& x : {q, k, v}) CHECK(is_finite(x.grad()));
}

TEST_CASE("what is masked is not seen, by a single bit") {
  const MultiHeadedAttention mha(4, 16, 0);
  const Tensor x = randn({2, 6, 16});
  const Tensor mask = expand(mask_of({1, 1, 1, 1, 0, 0}, {1, 1, 6}), {2, 1, 6});
  const Tensor noisy = concat({slice(x, 1, 0, 4), randn({2, 2, 16}) * 100}, 1);
  const auto real = [](const Tensor& y) { return slice(y, 1, 0, 4); };
  CHECK(same_bits(real(self(mha, noisy, mask)), real(self(mha, x, mask))));
  CHECK_FALSE(same_bits(real(self(mha, noisy)), real(self(mha, x))));
}

TEST_CASE("under the causal mask a token changes itself and what comes after") {
  const MultiHeadedAttention mha(4, 16, 0);
  for (const std::int64_t T : {1, 2, 7}) {
    const Tensor x = randn({2, T, 16}), mask = nn::subsequent_mask(T);
    const Tensor y = self(mha, x, mask);
    for (std::int64_t t = 0; t < T; ++t) {
      const Tensor changed = concat({slice(x, 1, 0, t), randn({2, 1, 16}), slice(x, 1, t + 1, T)}, 1);
      const Tensor z = self(mha, changed, mask);
      CHECK(same_bits(slice(z, 1, 0, t), slice(y, 1, 0, t)));
      for (std::int64_t later = t; later < T; ++later) {
        CHECK_FALSE(same_bits(select(z, 1, later), select(y, 1, later)));
      }
    }
  }
}

TEST_CASE("dropout is off in evaluation and draws nothing") {
  const MultiHeadedAttention mha(2, 8, 0.5);
  const Tensor x = randn({2, 3, 8});
  CHECK_FALSE(same_bits(self(mha, x), self(mha, x)));
  mha.eval();
  const auto before = generator_state();
  const Tensor y = self(mha, x);
  CHECK(same_bits(self(mha, x), y));
  CHECK(generator_state() == before);
  mha.train();
  self(mha, x);
  CHECK(generator_state() != before);
}

TEST_CASE("the gradient of the key's bias is zero: softmax ignores what all scores share") {
  const MultiHeadedAttention mha(2, 4, 0);
  mha.to(float64);
  self(mha, randn64({2, 3, 4})).backward(randn64({2, 3, 4}, 5).detach());
  for (const NamedTensor& named : mha.parameters()) {
    const std::string& path = named.path;
    const Tensor& parameter = named.tensor;
    if (path == "linears.1.bias") {
      expect_close(parameter.grad(), std::vector<double>(4, 0), 1e-14);
    } else {
      CHECK_MESSAGE(norm(parameter.grad()).item() > 1e-3, path);
    }
  }
}

TEST_CASE("sizes that do not fit are errors that show them") {
  expect_error([] { MultiHeadedAttention(3, 8); }, {"MultiHeadedAttention", "8", "3"});
  expect_error([] { MultiHeadedAttention(0, 8); }, {"MultiHeadedAttention"});
  expect_error([] { MultiHeadedAttention(2, 8, 1.5); }, {"MultiHeadedAttention", "1.5"});
  const MultiHeadedAttention mha(2, 8);
  expect_error([&] { self(mha, randn({3, 8})); }, {"MultiHeadedAttention", "[3, 8]"});
  expect_error([&] { self(mha, randn({2, 3, 6})); }, {"[2, 3, 6]"});
  expect_error([&] { mha(randn({2, 3, 8}), randn({2, 4, 8}), randn({2, 5, 8})); }, {"4", "5"});
}

TEST_CASE("a clone has parameters of its own, and starts with the same values") {
  const MultiHeadedAttention mha(2, 8, 0);
  const Tensor x = randn({2, 3, 8});
  const Tensor y = self(mha, x);
  const auto before = generator_state();
  const MultiHeadedAttention copy = mha.clone();
  CHECK(generator_state() == before);
  CHECK(share_no_memory(mha, copy));
  CHECK(same_bits(self(copy, x), y));
  self(copy, randn({1, 2, 8}));
  CHECK(mha.weights().shape() == Shape{2, 2, 3, 3});  // the original's are those of its own last call
}

TEST_CASE("the linears run under their paths") {
  nn::ModuleList list{MultiHeadedAttention(2, 4, 0)};
  Scopes scopes;
  self(list.get<MultiHeadedAttention>(0), randn({1, 2, 4}));
  CHECK(scopes.of("linear") == std::vector<std::string>{"0.linears.0", "0.linears.1", "0.linears.2", "0.linears.3"});
}

TEST_CASE("gradients are what differences say") {
  const auto over_memory = [](const Tensor& mask) {
    return [mask](const MultiHeadedAttention& mha, const Tensors& in) { return mha(in[0], in[1], in[1], mask); };
  };
  const Tensor mask = mask_of({1, 1, 0, 1, 1, 1}, {2, 1, 3});
  expect_layer_gradients(MultiHeadedAttention(2, 4, 0), {randn({2, 2, 4}), randn({2, 3, 4})}, over_memory(mask));
  expect_layer_gradients(MultiHeadedAttention(2, 4, 0.3), {randn({2, 2, 4}), randn({2, 3, 4})}, over_memory({}));
  const auto to_itself = [](const MultiHeadedAttention& mha, const Tensors& in) {
    return self(mha, in[0], nn::subsequent_mask(3));
  };
  expect_layer_gradients(MultiHeadedAttention(1, 4, 0), {randn({2, 3, 4})}, to_itself);
}

}  // namespace
}  // namespace prenorm
