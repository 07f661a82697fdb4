#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

Tensor ids(const std::vector<std::int64_t>& values, const Shape& shape) {
  return Tensor::of(values, shape, {.dtype = int64});
}
Tensor ids(const std::vector<std::int64_t>& values) { return ids(values, {static_cast<std::int64_t>(values.size())}); }

constexpr Reduction kReductions[] = {Reduction::none, Reduction::sum, Reduction::mean};

TEST_CASE("nll_loss: gradients; with log_softmax it is cross_entropy") {
  const Tensor x = randn64({5, 4});
  for (Reduction reduction : kReductions) {
    for (const std::optional<std::int64_t>& ignored : {std::optional<std::int64_t>(), {-100}, {255}, {2}}) {
      const CrossEntropyOptions options{.reduction = reduction, .ignore_index = ignored};
      const Tensor target = ids({3, ignored.value_or(1), 0, ignored.value_or(1), 2});
      expect_gradients([&](const Tensors& in) { return nll_loss(in[0], target, options); }, Tensors{x});
      expect_gradients([&](const Tensors& in) { return nll_loss(log_softmax(in[0]), target, options); }, Tensors{x});
      expect_close(nll_loss(log_softmax(x), target, options), cross_entropy(x, target, options));
    }
  }
}

TEST_CASE("nll_loss: shapes and layouts") {
  for (Reduction reduction : kReductions) {
    const CrossEntropyOptions options{.reduction = reduction};
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{2, 3}, Shape{0}}) {
      const Tensor target = zeros(shape, int64);
      Shape with_classes = shape;
      with_classes.push_back(3);
      const Tensor x = randn64(with_classes);
      const auto f = [&](const Tensors& in) { return nll_loss(in[0], target, options); };
      CHECK(f({x}).shape() == (reduction == Reduction::none ? shape : Shape{}));
      if (x.numel() > 0) expect_gradients(f, Tensors{strided(x)});
    }
  }
  expect_close(nll_loss(ones({0, 3}), zeros({0}, int64)), {NAN});
  expect_close(nll_loss(ones({0, 3}), zeros({0}, int64), {.reduction = Reduction::sum}), {0.0});
}

TEST_CASE("nll_loss: values; -inf elsewhere and in ignored rows does no harm") {
  const Tensor x =
      Tensor::of({-1, -INFINITY, -3, -INFINITY, -5, NAN}, {3, 2}, {.dtype = float64, .requires_grad = true});
  const Tensor y = nll_loss(x, ids({0, 0, 9}), {.ignore_index = 9});
  expect_close(y, {2});
  expect_gradient(y, x, {-0.5, 0, -0.5, 0, 0, 0});
  expect_close(nll_loss(x, ids({9, 9, 9}), {.ignore_index = 9}), {NAN});
  expect_gradient(nll_loss(x, ids({9, 9, 9}), {.ignore_index = 9}), x, std::vector<double>(6, 0), 0);
}

TEST_CASE("nll_loss: refusals") {
  const Tensor x = ones({2, 3});
  expect_error([&] { nll_loss(x, ids({0, 3})); }, {"nll_loss", "target 3", "[1]", "[0, 3)"});
  expect_error([&] { nll_loss(x, ids({-1, 0})); }, {"nll_loss", "target -1", "[0]", "[0, 3)"});
  expect_error([&] { nll_loss(x, ids({0})); }, {"nll_loss", "[2, 3]", "int64 [1]"});
  expect_error([&] { nll_loss(x, ids({0, 1}), {.reduction = Reduction::batchmean}); }, {"nll_loss", "batchmean"});
  expect_error([&] { nll_loss(x, ids({0, 1}), {.label_smoothing = 0.1}); }, {"nll_loss", "smoothing"});
  expect_error([&] { nll_loss(ones({2, 3}, int64), ids({0, 1})); }, {"nll_loss", "int64"});
  expect_error([&] { nll_loss(x, Tensor()); }, {"nll_loss", "undefined"});
}

}  // namespace
}  // namespace prenorm
