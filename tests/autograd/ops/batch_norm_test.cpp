#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

Tensor call(const Tensors& in) {
  return batch_norm(in[0], in.size() > 1 ? in[1] : Tensor(), in.size() > 2 ? in[2] : Tensor()).y;
}

TEST_CASE("batch_norm: gradients of [N, C] and [N, C, L], with and without weight and bias") {
  for (const Shape& shape : {Shape{5, 3}, Shape{3, 1}, Shape{2, 3, 4}, Shape{1, 2, 3}, Shape{3, 2, 1}, Shape{4, 0}}) {
    const Tensor x = randn64(shape), weight = randn64({shape[1]}, 1), bias = randn64({shape[1]}, 2);
    const GradcheckOptions options = maybe_vacuous(x);
    expect_gradients(call, NamedTensors{{"x", x}, {"weight", weight}, {"bias", bias}}, options);
    expect_gradients(call, NamedTensors{{"x", x}, {"weight", weight}}, options);
    expect_gradients(call, NamedTensors{{"x", x}}, options);
    expect_gradients([](const Tensors& in) { return batch_norm(in[0], {}, in[1]).y; }, Tensors{x, bias}, options);
    expect_gradients(call, Tensors{x.detach(), weight, bias}, options);
    CHECK(call({x, weight, bias}).shape() == shape);
  }
  const Tensor x = randn64({4, 3}), weight = randn64({3}, 1);
  expect_gradients(call, Tensors{strided(x), strided(weight)});
  expect_gradients([](const Tensors& in) { return call({call(in), in[1]}) + in[0]; }, Tensors{x, weight});
}

TEST_CASE("batch_norm: statistics are those of the channel, detached; y is layer_norm down the batch") {
  const Tensor x = randn64({5, 3}, 0, 2, 3), weight = randn64({3}, 1), bias = randn64({3}, 2);
  const BatchNormResult result = batch_norm(x, weight, bias);
  expect_close(result.mean, mean(x, {0}));
  expect_close(result.var, var(x, {0}, 0));
  CHECK_FALSE(result.mean.requires_grad());
  CHECK_FALSE(result.var.requires_grad());
  expect_close(result.y, weight * transpose(layer_norm(transpose(x, 0, 1)), 0, 1) + bias);
  const Tensor wide = randn64({2, 3, 4});
  const BatchNormResult of_wide = batch_norm(wide, weight, bias);
  expect_close(of_wide.mean, mean(wide, {0, 2}));
  expect_close(of_wide.var, var(wide, {0, 2}, 0));
  const Tensor flat = reshape(permute(wide, {0, 2, 1}), {8, 3});
  expect_close(permute(of_wide.y, {0, 2, 1}), reshape(call({flat, weight, bias}), {2, 4, 3}));
}

TEST_CASE("batch_norm: every sample depends on all others") {
  const Tensor x = randn64({4, 2});
  const Tensor first = select(batch_norm(x).y, 0, 0);
  const Tensor dx = grad({sum(first * first)}, {x})[0];
  for (double value : dx.to_vector()) CHECK(value != 0);
}

TEST_CASE("batch_norm: constant channels give the bias exactly; channels far from zero keep their digits") {
  for (double value : {7.1, 1000.1, 0.0}) {
    const Tensor x = full({8, 2}, value).requires_grad_(), bias = Tensor::of({0.5, -3});
    const BatchNormResult result = batch_norm(x, ones({2}), bias);
    expect_close(result.y, expand(bias, {8, 2}), 0);
    expect_close(result.mean, full({2}, value), 0);
    expect_close(result.var, {0, 0}, 0);
    for (double slope : grad({result.y}, {x}, {to(randn64({8, 2}).detach(), float32)})[0].to_vector()) {
      CHECK(std::isfinite(slope));
    }
  }
  const Tensor x = to(randn64({50, 3}).detach() + 2000, float32);
  expect_close(batch_norm(x).y, batch_norm(to(x, float64)).y, 1e-5);
}

TEST_CASE("batch_norm_with: gradients; given statistics are constants") {
  for (const Shape& shape : {Shape{5, 3}, Shape{1, 3}, Shape{2, 3, 4}, Shape{0, 3}}) {
    const Tensor x = randn64(shape), weight = randn64({3}, 1), bias = randn64({3}, 2);
    const Tensor mean = randn64({3}, 3).detach(), var = uniform64({3}, 0.5, 2, 4).detach();
    const auto with = [&](const Tensors& in) {
      return batch_norm_with(in[0], mean, var, in.size() > 1 ? in[1] : Tensor(), in.size() > 2 ? in[2] : Tensor());
    };
    const GradcheckOptions options = maybe_vacuous(x);
    expect_gradients(with, NamedTensors{{"x", x}, {"weight", weight}, {"bias", bias}}, options);
    expect_gradients(with, NamedTensors{{"x", x}, {"weight", weight}}, options);
    expect_gradients(with, NamedTensors{{"x", x}}, options);
    CHECK(with({x, weight, bias}).shape() == shape);
  }
  const Tensor x = randn64({5, 3}), weight = randn64({3}, 1), bias = randn64({3}, 2);
  const BatchNormResult batch = batch_norm(x, weight, bias);
  expect_close(batch_norm_with(x, batch.mean, batch.var, weight, bias), batch.y);
  // One sample alone: x does not move its own statistics.
  const Tensor one = Tensor::of({3, 5}, {1, 2}, {.dtype = float64, .requires_grad = true});
  const Tensor zero = zeros({2}, float64), four = full({2}, 4, float64);
  expect_close(batch_norm_with(one, zero, four, {}, {}, 0), {1.5, 2.5});
  expect_gradient(batch_norm_with(one, zero, four, {}, {}, 0), one, {0.5, 0.5});
}

TEST_CASE("batch_norm: refusals") {
  const Tensor x = ones({4, 3}), c = ones({3});
  expect_error([&] { batch_norm(ones({1, 3})); }, {"batch_norm", "[1, 3]", "two values"});
  expect_error([&] { batch_norm(ones({1, 3, 1})); }, {"batch_norm", "[1, 3, 1]", "two values"});
  expect_error([&] { batch_norm(ones({0, 3})); }, {"batch_norm", "[0, 3]"});
  expect_error([&] { batch_norm(ones({3})); }, {"batch_norm", "[N, C]", "[3]"});
  expect_error([&] { batch_norm(ones({2, 3, 4, 5})); }, {"batch_norm", "[N, C, L]", "[2, 3, 4, 5]"});
  expect_error([&] { batch_norm(x, ones({4})); }, {"batch_norm", "[4]", "[3]"});
  expect_error([&] { batch_norm(x, c, ones({1})); }, {"batch_norm", "[1]", "[3]"});
  expect_error([&] { batch_norm(x, ones({3}, float64)); }, {"batch_norm", "float32", "float64"});
  expect_error([&] { batch_norm(x, c, c, -1); }, {"batch_norm", "eps", "-1"});
  expect_error([&] { batch_norm(Tensor()); }, {"batch_norm", "undefined"});
  expect_error([&] { batch_norm(ones({4, 3}, int64)); }, "int64");
  expect_error([&] { batch_norm_with(x, ones({2}), c); }, {"batch_norm", "[2]", "[3]"});
  expect_error([&] { batch_norm_with(x, Tensor(), c); }, {"batch_norm_with", "undefined"});
}

}  // namespace
}  // namespace prenorm
