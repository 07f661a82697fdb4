#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

Tensor scores_mask(std::initializer_list<double> see, const Shape& shape) {
  return Tensor::of(see, shape, {.dtype = boolean});
}

// As the Annotated Transformer writes it; hidden where the mask is false.
Tensor composed(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, double masked_score) {
  Tensor scores = matmul(q, transpose(k, -2, -1)) / std::sqrt(static_cast<double>(q.size(-1)));
  if (mask.defined()) scores = masked_fill(scores, logical_not(mask), masked_score);
  return matmul(softmax(scores), v);
}

TEST_CASE("scaled_dot_product_attention: gradients with all options") {
  const Tensor q = randn64({2, 3, 4}), k = randn64({2, 5, 4}, 1), v = randn64({2, 5, 3}, 2);
  const Tensor square = randn64({2, 3, 4}, 3), key = randn64({2, 3, 4}, 6), values = randn64({2, 3, 2}, 4);
  const Tensor some = scores_mask({1, 0, 1, 1, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1, 1}, {3, 5});
  const Tensor blind_row = scores_mask({1, 0, 1, 0, 0, 0, 1, 1, 1}, {3, 3});
  const auto with = [](const Tensor& mask, const AttentionOptions& options) {
    return [=](const Tensors& in) { return scaled_dot_product_attention(in[0], in[1], in[2], mask, options).y; };
  };
  for (double masked_score : {-static_cast<double>(INFINITY), -1e9}) {
    const AttentionOptions options{.masked_score = masked_score};
    expect_gradients(with({}, options), NamedTensors{{"q", q}, {"k", k}, {"v", v}});
    expect_gradients(with(some, options), NamedTensors{{"q", q}, {"k", k}, {"v", v}});
    AttentionOptions causal = options;
    causal.causal = true;
    expect_gradients(with({}, causal), NamedTensors{{"q", square}, {"k", key}, {"v", values}});
    causal.scale = 0.3;
    for (const AttentionOptions& one : {options, causal}) {
      expect_gradients(with(blind_row, one), NamedTensors{{"q", square}, {"k", key}, {"v", values}});
    }
  }
  const Tensor x = randn64({3, 4}, 5);
  expect_gradients([](const Tensors& in) { return scaled_dot_product_attention(in[0], in[0], in[0]).y; }, Tensors{x});
  expect_gradients(with(some, {}), Tensors{q.detach(), k, v.detach()});
  expect_gradients(with(some, {}), Tensors{q, k.detach(), v.detach()});
  expect_gradients(with(some, {}), Tensors{q.detach(), k.detach(), v});
  expect_gradients(with(some, {}), Tensors{strided(q), strided(k), strided(v)});
}

TEST_CASE("scaled_dot_product_attention: leading dimensions and the mask broadcast") {
  const Tensor q = randn64({2, 1, 3, 2}), k = randn64({3, 4, 2}, 1), v = randn64({4, 2}, 2);
  const Tensor mask = gt(randn64({2, 1, 1, 4}, 3).detach(), zeros({}, float64));
  const auto f = [&](const Tensors& in) { return scaled_dot_product_attention(in[0], in[1], in[2], mask).y; };
  expect_gradients(f, NamedTensors{{"q", q}, {"k", k}, {"v", v}});
  const AttentionResult result = scaled_dot_product_attention(q, k, v, mask);
  CHECK(result.y.shape() == Shape{2, 3, 3, 2});
  CHECK(result.weights.shape() == Shape{2, 3, 3, 4});
  expect_close(result.y, composed(q, expand(k, {2, 3, 4, 2}), v, mask, -INFINITY));
}

TEST_CASE("scaled_dot_product_attention: values; the composed twin") {
  // Scores of zero: the mean of what may be looked at; what may not has weight 0 exactly.
  const Tensor zero = zeros({3, 2}, float64), v = Tensor::of({1, 2, 3, 4, 5, 6}, {3, 2}, {.dtype = float64});
  for (double masked_score : {-static_cast<double>(INFINITY), -1e9}) {
    const AttentionResult masked = scaled_dot_product_attention(
        zero, zero, v, scores_mask({1, 1, 1, 1, 0, 1, 0, 1, 0}, {3, 3}), {.masked_score = masked_score});
    expect_close(masked.y, {3, 4, 3, 4, 3, 4});
    expect_close(masked.weights, {1.0 / 3, 1.0 / 3, 1.0 / 3, 0.5, 0, 0.5, 0, 1, 0});
  }
  expect_close(scaled_dot_product_attention(zero, zero, v, {}, {.causal = true}).y, {1, 2, 2, 3, 3, 4});

  const Tensor q = randn64({2, 3, 4}), k = randn64({2, 5, 4}, 1), w = randn64({2, 5, 3}, 2), dy = randn64({2, 3, 3}, 3);
  const Tensor mask = scores_mask({1, 0, 1, 1, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1, 1}, {3, 5});
  const auto second = [&](const Tensor& y) {
    const Tensors d = grad({y}, {q, k, w}, {dy}, {.create_graph = true});
    return grad({sum(d[0] * d[0]) + sum(d[1] * d[1]) + sum(d[2] * d[2])}, {q, k, w, dy});
  };
  for (double masked_score : {-static_cast<double>(INFINITY), -1e9}) {
    const Tensor y = scaled_dot_product_attention(q, k, w, mask, {.masked_score = masked_score}).y;
    const Tensor twin = composed(q, k, w, mask, masked_score);
    expect_close(y, twin);
    const Tensors fused = second(y), of_twin = second(twin);
    for (std::size_t i = 0; i < 4; ++i) expect_close(fused[i], of_twin[i], 1e-10);
  }
}

TEST_CASE("scaled_dot_product_attention: a row with nothing to look at") {
  const Tensor mask = scores_mask({0, 0, 0, 1, 1, 0}, {2, 3});
  for (DType dtype : {float32, float64}) {
    const auto leaf = [dtype](const Tensor& x) { return to(x.detach(), dtype).requires_grad_(); };
    const Tensor q = leaf(randn64({2, 4})), k = leaf(randn64({3, 4}, 1)), v = leaf(randn64({3, 2}, 2));
    const Tensor dy = to(Tensor::of({1, 2, 0, 0}, {2, 2}), dtype);  // from the blind row alone
    const AttentionResult hidden = scaled_dot_product_attention(q, k, v, mask);
    expect_close(slice(hidden.y, 0, 0, 1), {0, 0}, 0);
    expect_close(slice(hidden.weights, 0, 0, 1), {0, 0, 0}, 0);
    const AttentionResult equal = scaled_dot_product_attention(q, k, v, mask, {.masked_score = -1e9});
    expect_close(slice(equal.y, 0, 0, 1), mean(v, {0}, true), 1e-6);
    expect_close(slice(equal.weights, 0, 0, 1), {1.0 / 3, 1.0 / 3, 1.0 / 3}, 1e-7);
    for (bool create_graph : {false, true}) {
      const Tensors none = grad({hidden.y}, {q, k, v}, {dy}, {.create_graph = create_graph, .keep_graph = true});
      for (const Tensor& gradient : none) expect_close(gradient, zeros_like(gradient), 0);
      const Tensors some = grad({equal.y}, {q, k, v}, {dy}, {.create_graph = create_graph, .keep_graph = true});
      expect_close(some[0], zeros_like(q), 0);
      expect_close(some[1], zeros_like(k), 0);
      expect_close(some[2], {1.0 / 3, 2.0 / 3, 1.0 / 3, 2.0 / 3, 1.0 / 3, 2.0 / 3}, 1e-6);
    }
  }
}

TEST_CASE("scaled_dot_product_attention: what is masked is not seen, bit for bit, and gets no gradient") {
  const Tensor q = randn64({3, 4}), k = randn64({3, 4}, 1), v = randn64({3, 2}, 2);
  const Tensor noise = Tensor::of({0, 0, 1}, {3, 1}, {.dtype = float64}) * 1e3;
  const Tensor mask = scores_mask({1, 1, 0}, {3});
  for (double masked_score : {-static_cast<double>(INFINITY), -1e9}) {
    const AttentionOptions options{.masked_score = masked_score};
    const Tensor y = scaled_dot_product_attention(q, k, v, mask, options).y;
    expect_close(scaled_dot_product_attention(q, k + noise, v + noise, mask, options).y, y, 0);
    for (const Tensor& d : grad({y}, {k, v}, {ones_like(y)}))
      expect_close(slice(d, 0, 2, 3), zeros_like(slice(d, 0, 2, 3)), 0);
  }
  // Causal: position t moves what stands at t and later.
  const AttentionOptions causal{.causal = true};
  const Tensor y = scaled_dot_product_attention(q, k, v, {}, causal).y;
  const Tensor moved = scaled_dot_product_attention(q, k + noise, v + noise, {}, causal).y;
  expect_close(slice(moved, 0, 0, 2), slice(y, 0, 0, 2), 0);
  CHECK_FALSE(allclose(slice(moved, 0, 2, 3), slice(y, 0, 2, 3)));
}

TEST_CASE("scaled_dot_product_attention: weights are detached and rows of them sum to 1") {
  const AttentionResult result =
      scaled_dot_product_attention(randn64({2, 3, 4}), randn64({2, 5, 4}, 1), randn64({2, 5, 1}));
  CHECK_FALSE(result.weights.requires_grad());
  CHECK(result.y.requires_grad());
  expect_close(sum(result.weights, {-1}), std::vector<double>(6, 1));
}

TEST_CASE("scaled_dot_product_attention: huge scores; float32 is close to float64") {
  const Tensor q = Tensor::of({100, -100}, {2, 1}), k = Tensor::of({100, 0, -100}, {3, 1});
  expect_close(scaled_dot_product_attention(q, k, Tensor::of({1, 2, 3}, {3, 1})).y, {1, 3}, 1e-7);
  const Tensor x = to(randn64({2, 40, 16}).detach(), float32).requires_grad_();
  const Tensor x64 = to(x.detach(), float64).requires_grad_(), dy = to(randn64({2, 40, 16}, 1).detach(), float32);
  const auto f = [](const Tensor& t) { return scaled_dot_product_attention(t, t, t, {}, {.causal = true}).y; };
  expect_close(f(x), f(x64), 2e-6);
  expect_close(grad({f(x)}, {x}, {dy})[0], grad({f(x64)}, {x64}, {to(dy, float64)})[0], 1e-5);
}

TEST_CASE("scaled_dot_product_attention: empty dimensions") {
  const auto shape_of = [](const Shape& q, const Shape& k, const Shape& v) {
    const Tensors in{randn64(q), randn64(k), randn64(v)};
    const auto f = [](const Tensors& t) { return scaled_dot_product_attention(t[0], t[1], t[2]).y; };
    expect_gradients(f, in, {.allow_vacuous = true});
    return f(in).shape();
  };
  CHECK(shape_of({0, 2, 3}, {0, 4, 3}, {0, 4, 5}) == Shape{0, 2, 5});
  CHECK(shape_of({0, 3}, {4, 3}, {4, 5}) == Shape{0, 5});
  CHECK(shape_of({2, 3}, {0, 3}, {0, 5}) == Shape{2, 5});
  CHECK(shape_of({2, 0}, {4, 0}, {4, 5}) == Shape{2, 5});
  CHECK(shape_of({2, 3}, {4, 3}, {4, 0}) == Shape{2, 0});
  expect_close(scaled_dot_product_attention(ones({2, 3}), ones({0, 3}), ones({0, 1})).y, {0, 0}, 0);
  expect_close(scaled_dot_product_attention(ones({1, 0}), ones({2, 0}), Tensor::of({1, 3}, {2, 1})).y, {2}, 1e-7);
}

TEST_CASE("scaled_dot_product_attention: refusals") {
  const Tensor q = ones({2, 3, 4}), k = ones({2, 5, 4}), v = ones({2, 5, 6});
  const std::string_view op = "scaled_dot_product_attention";
  expect_error([&] { scaled_dot_product_attention(q, ones({2, 5, 3}), v); }, {op, "[2, 3, 4]", "[2, 5, 3]"});
  expect_error([&] { scaled_dot_product_attention(q, k, ones({2, 4, 6})); }, {op, "[2, 5, 4]", "[2, 4, 6]"});
  expect_error([&] { scaled_dot_product_attention(q, k, ones({3, 5, 6})); }, {op, "[2]", "[3]"});
  expect_error([&] { scaled_dot_product_attention(ones({4}), k, v); }, {op, "[4]"});
  expect_error([&] { scaled_dot_product_attention(q, k, ones({2, 5, 6}, float64)); }, {op, "float32", "float64"});
  expect_error([&] { scaled_dot_product_attention(q, k, v, ones({3, 5})); }, {op, "bool", "float32 [3, 5]"});
  expect_error([&] { scaled_dot_product_attention(q, k, v, ones({3, 4}, boolean)); }, {op, "[2, 3, 5]", "[3, 4]"});
  expect_error([&] { scaled_dot_product_attention(q, k, v, ones({7, 2, 3, 5}, boolean)); }, {op, "[7, 2, 3, 5]"});
  expect_error([&] { scaled_dot_product_attention(q, k, v, {}, {.causal = true}); }, {op, "causal", "3", "5"});
  for (double score : {static_cast<double>(INFINITY), static_cast<double>(NAN)}) {
    expect_error([&] { scaled_dot_product_attention(q, k, v, {}, {.masked_score = score}); }, {op, "masked score"});
  }
  expect_error([&] { scaled_dot_product_attention(q, k, Tensor()); }, {op, "undefined"});
  const Tensor whole = ones({2, 3, 4}, int64);
  expect_error([&] { scaled_dot_product_attention(whole, whole, whole); }, "int64");
}

}  // namespace
}  // namespace prenorm
