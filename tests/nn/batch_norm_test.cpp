#include "nn/batch_norm.h"

#include <string>
#include <vector>

#include "autograd/ops.h"
#include "layer_checks.h"

namespace prenorm {
namespace {

using nn::BatchNorm1d;

BatchNorm1d norm64(std::int64_t channels, nn::BatchNorm1dOptions options = {}) {
  const BatchNorm1d layer(channels, options);
  layer.to(float64);
  return layer;
}

TEST_CASE("parameters and buffers") {
  const BatchNorm1d layer(3);
  CHECK(paths(layer.parameters()) == std::vector<std::string>{"weight", "bias"});
  CHECK(paths(layer.buffers()) == std::vector<std::string>{"running_mean", "running_var"});
  CHECK(paths(layer.state_dict()) == std::vector<std::string>{"weight", "bias", "running_mean", "running_var"});
  CHECK(path_set(layer.parameters()) == golden_paths("batch_norm.nc"));
  for (const auto& [path, buffer] : layer.buffers()) {
    CHECK_FALSE(buffer.requires_grad());
    expect_close(buffer, std::vector<double>(3, path == "running_mean" ? 0 : 1));
  }
  CHECK(BatchNorm1d(3, {.affine = false}).parameters().empty());
}

TEST_CASE("in training each channel of the batch gets mean 0 and biased std 1") {
  const BatchNorm1d layer = norm64(3);
  const Tensor x = randn64({6, 3}, 0, 5, 4), y = layer(x);
  expect_close(mean(y, {0}), std::vector<double>(3, 0), 1e-12);
  expect_close(std(y, {0}, 0), std::vector<double>(3, 1), 1e-5);
  expect_close(y, (x - mean(x, {0})) / sqrt(var(x, {0}, 0) + 1e-5), 1e-12);

  const Tensor long_x = randn64({2, 3, 5}, 0, 5, 4), long_y = layer(long_x);
  expect_close(mean(long_y, {0, 2}), std::vector<double>(3, 0), 1e-12);
  expect_close(std(long_y, {0, 2}, 0), std::vector<double>(3, 1), 1e-5);
}

TEST_CASE("running statistics move a tenth of the way, the variance with n - 1") {
  const BatchNorm1d layer = norm64(2);
  const Tensor first = randn64({4, 2}, 1), second = randn64({3, 2, 5}, 2);
  layer(first);
  const NamedTensors buffers = layer.buffers();
  expect_close(buffers[0].tensor, 0.1 * mean(first, {0}));
  expect_close(buffers[1].tensor, 0.9 + 0.1 * var(first, {0}, 1));
  layer(second);
  expect_close(buffers[0].tensor, 0.9 * (0.1 * mean(first, {0})) + 0.1 * mean(second, {0, 2}));
  expect_close(buffers[1].tensor, 0.9 * (0.9 + 0.1 * var(first, {0}, 1)) + 0.1 * var(second, {0, 2}, 1));

  const BatchNorm1d quick = norm64(2, {.momentum = 1});
  quick(first);
  expect_close(quick.buffers()[0].tensor, mean(first, {0}));
}

TEST_CASE("in evaluation the running statistics count, and stay as they are") {
  const BatchNorm1d layer = norm64(3);
  for (std::uint64_t i = 0; i < 5; ++i) layer(randn64({6, 3}, i, 2, 3));
  layer.eval();
  const NamedTensors buffers = layer.buffers();
  const Tensor running_mean = clone(buffers[0].tensor), running_var = clone(buffers[1].tensor);
  const Tensor x = randn64({4, 3}, 9);
  expect_close(layer(x), (x - running_mean) / sqrt(running_var + 1e-5), 1e-12);
  CHECK(same_bits(layer.buffers()[0].tensor, running_mean));
  CHECK(same_bits(layer.buffers()[1].tensor, running_var));
  // A sample on its own gives what it gives in a batch; in training it could not.
  expect_close(layer(slice(x, 0, 0, 1)), slice(layer(x), 0, 0, 1), 1e-12);
}

TEST_CASE("samples depend on each other in training only") {
  const BatchNorm1d layer = norm64(3);
  const Tensor x = randn64({4, 3}), changed = concat({slice(x, 0, 0, 1) * 10, slice(x, 0, 1, 4)});
  const auto others = [](const Tensor& y) { return slice(y, 0, 1, 4); };
  CHECK_FALSE(same_bits(others(layer(x)), others(layer(changed))));
  layer.eval();
  CHECK(same_bits(others(layer(x)), others(layer(changed))));
}

TEST_CASE("running statistics hold no graph") {
  const BatchNorm1d layer(3);
  const std::int64_t nodes = Node::live_count();
  {
    const Tensor y = layer(randn({4, 3}, {.requires_grad = true}));
    CHECK(y.requires_grad());
  }
  CHECK(Node::live_count() <= nodes + 2);  // the places of the two parameters
  for (const auto& [path, buffer] : layer.buffers()) CHECK_FALSE(buffer.requires_grad());
}

TEST_CASE("a channel of equal values is finite in both directions") {
  const BatchNorm1d layer(2);
  const Tensor x = full({4, 2}, 7.1).requires_grad_();
  const Tensor y = layer(x);
  expect_close(y, std::vector<double>(8, 0), 1e-6);
  y.backward(randn({4, 2}));
  CHECK(is_finite(x.grad()));
}

TEST_CASE("shapes that do not fit are errors that show them") {
  const BatchNorm1d layer(3);
  expect_error([&] { layer(randn({4, 2})); }, {"BatchNorm1d", "[4, 2]", "[N, 3]"});
  expect_error([&] { layer(randn({3})); }, {"BatchNorm1d", "[3]"});
  expect_error([&] { layer(randn({2, 3, 4, 5})); }, {"BatchNorm1d", "[2, 3, 4, 5]"});
  expect_error([&] { layer(randn({1, 3})); }, {"BatchNorm1d", "more than one", "[1, 3]"});
  CHECK(layer(randn({1, 3, 2})).shape() == Shape{1, 3, 2});
  layer.eval();
  CHECK(layer(randn({1, 3})).shape() == Shape{1, 3});
}

TEST_CASE("a clone has running statistics of its own") {
  const BatchNorm1d layer(3), copy = layer.clone();
  layer(randn({4, 3}));
  expect_close(copy.buffers()[0].tensor, std::vector<double>(3, 0));
}

TEST_CASE("gradients are what differences say, in training and evaluation") {
  const auto call = [](const BatchNorm1d& layer, const Tensors& in) { return layer(in[0]); };
  for (const bool training : {true, false}) {
    for (const bool affine : {true, false}) {
      const BatchNorm1d layer(3, {.affine = affine});
      layer(randn({8, 3}) * 2 + 1);
      layer.train(training);
      expect_layer_gradients(layer, {randn({4, 3})}, call);
      expect_layer_gradients(layer, {randn({2, 3, 3})}, call);
    }
  }
}

}  // namespace
}  // namespace prenorm
