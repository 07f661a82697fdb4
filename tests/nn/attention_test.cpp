#include "nn/attention.h"

#include <cmath>
#include <vector>

#include "autograd/node.h"
#include "autograd/random.h"
#include "nn/gradcheck.h"
#include "nn/init.h"
#include "nn/linear.h"
#include "support.h"

namespace prenorm::nn {
namespace {

// Head by head, as the papers write it.
Tensor by_hand(const CausalSelfAttention& layer, const Tensor& x, bool causal) {
  const std::int64_t T = x.size(1), C = x.size(2), H = layer.options().n_heads, D = C / H;
  const Tensor qkv = layer.at("qkv")(x);
  const Tensor later = lt(reshape(arange(static_cast<double>(T)), {T, 1}), arange(static_cast<double>(T)));
  Tensors heads;
  for (std::int64_t h = 0; h < H; ++h) {
    const auto part = [&](std::int64_t i) { return slice(qkv, 2, i * C + h * D, i * C + (h + 1) * D); };
    Tensor scores = matmul(part(0), transpose(part(1), 1, 2)) / std::sqrt(static_cast<double>(D));
    if (causal) scores = masked_fill(scores, later, -INFINITY);
    heads.push_back(matmul(softmax(scores), part(2)));
  }
  return layer.at("out")(concat(heads, 2));
}

TEST_CASE("self-attention mixes values by softmax(q k^T / sqrt(d)), head by head") {
  manual_seed(1);
  for (const bool causal : {true, false}) {
    for (const std::int64_t heads : {1, 2, 4}) {
      for (const std::int64_t T : {1, 2, 7, 16, 33}) {
        const CausalSelfAttention layer(8, heads, causal);
        layer.to(float64);
        const Tensor x = randn({2, T, 8}, {.dtype = float64});
        CAPTURE(T);
        expect_close(layer(x), by_hand(layer, x, causal), 1e-12);
      }
    }
  }
}

TEST_CASE("a position sees itself and what came before, and nothing else") {
  manual_seed(2);
  for (const std::int64_t T : {1, 5, 17}) {
    const CausalSelfAttention causal(8, 2), open(8, 2, /*causal=*/false);
    const Tensor x = randn({1, T, 8});
    for (std::int64_t t = 0; t < T; t += 4) {
      const Tensor other = clone(x);
      fill_(select(other, 1, t), 3);
      const auto changed = [&](const CausalSelfAttention& layer, std::int64_t at) {
        return select(layer(x), 1, at).to_vector() != select(layer(other), 1, at).to_vector();
      };
      for (std::int64_t at = 0; at < T; ++at) {
        CHECK(changed(causal, at) == (at >= t));
        CHECK(changed(open, at));
      }
    }
  }
}

TEST_CASE("no gradient flows from a position to a later one") {
  const CausalSelfAttention layer(4, 2);
  Tensor x = randn({1, 5, 4}).requires_grad_();
  sum(select(layer(x), 1, 2)).backward();
  for (std::int64_t t = 0; t < 5; ++t) CHECK((norm(select(x.grad(), 1, t)).item() > 0) == (t <= 2));
}

TEST_CASE("queries, keys and values come from one linear, drawn before the output's") {
  manual_seed(3);
  const CausalSelfAttention layer(4, 2);
  CHECK(layer.at("qkv").as<Linear>().weight().shape() == Shape{12, 4});
  CHECK(layer.at("out").as<Linear>().weight().shape() == Shape{4, 4});
  manual_seed(3);
  for (const auto& [path, parameter] : layer.parameters()) {
    CHECK(parameter.to_vector() == linear_uniform(parameter.shape(), 4).to_vector());
  }
  CHECK(layer.options().causal);
  CHECK(layer(zeros({1, 2, 4})).node()->scope() == "out");
}

TEST_CASE("sizes that do not fit are errors") {
  expect_error([] { CausalSelfAttention(10, 4); }, {"CausalSelfAttention", "d_model 10", "4 heads of equal size"});
  expect_error([] { CausalSelfAttention(4, 0); }, "0 heads");
  expect_error([] { CausalSelfAttention(0, 1); }, "d_model 0");
  const CausalSelfAttention layer(4, 2);
  expect_error([&] { layer(zeros({3, 4})); }, {"CausalSelfAttention", "[B, T, d_model]", "[3, 4]"});
  expect_error([&] { layer(zeros({1, 3, 6})); }, {"linear", "[1, 3, 6]", "[12, 4]"});
}

TEST_CASE("an empty batch, or one of empty sequences, comes out empty") {
  for (const bool causal : {true, false}) {
    const CausalSelfAttention layer(4, 2, causal);
    CHECK(layer(zeros({0, 3, 4})).shape() == Shape{0, 3, 4});
    CHECK(layer(zeros({2, 0, 4})).shape() == Shape{2, 0, 4});
    layer(zeros({2, 0, 4})).backward(zeros({2, 0, 4}));
  }
}

TEST_CASE("differences agree for causal and open self-attention, to order 2") {
  for (const bool causal : {true, false}) {
    const GradcheckReport report = gradcheck(CausalSelfAttention(4, 2, causal), {randn64({2, 3, 4})});
    CHECK_MESSAGE(report.passed, report.message);
  }
}

}  // namespace
}  // namespace prenorm::nn
