#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("max: gradients along every dimension, and of all elements") {
  struct Case {
    Shape shape;
    std::int64_t dim;
  };
  for (const auto& [shape, dim] :
       std::vector<Case>{{{}, 0}, {{1}, 0}, {{5}, -1}, {{2, 3}, 0}, {{2, 3}, 1}, {{2, 3, 4}, 1}, {{2, 0, 3}, 2}}) {
    for (bool keepdim : {false, true}) {
      const Tensor x = randn64(shape, 1);
      const auto f = [&, d = dim](const Tensors& in) { return max(in[0], d, keepdim).values; };
      expect_gradients(f, Tensors{x}, maybe_vacuous(x));
      Shape kept = shape;
      if (shape.dims() > 0 && keepdim) kept[dim < 0 ? dim + shape.dims() : dim] = 1;
      if (shape.dims() > 0 && !keepdim) kept.erase(dim < 0 ? dim + shape.dims() : dim);
      CHECK(f({x}).shape() == kept);
      CHECK(max(x, dim, keepdim).indices.shape() == kept);
    }
  }
  expect_gradients([](const Tensors& in) { return max(in[0]); }, Tensors{randn64({2, 3})});
  expect_gradients([](const Tensors& in) { return max(in[0]); }, Tensors{strided(randn64({2, 3}))});
  expect_gradients([](const Tensors& in) { return max(in[0], 0).values; }, Tensors{strided(randn64({3, 4}))});
  expect_gradients([](const Tensors& in) { return in[0] * max(in[0], 1, true).values; }, Tensors{randn64({3, 4})});
}

TEST_CASE("max: values and indices, int64 too") {
  const Tensor x = Tensor::of({1, 5, 2, 7, 7, -1}, {2, 3});
  const auto [values, indices] = max(x, 1);
  expect_close(values, {5, 7});
  CHECK(indices.dtype() == int64);
  expect_close(indices, {1, 0});
  expect_close(max(x, 0).indices, {1, 1, 0});
  const Tensor big = Tensor::of(std::vector<std::int64_t>{9007199254740992, 9007199254740993}, {2}, {.dtype = int64});
  CHECK(max(big).item<std::int64_t>() == 9007199254740993);
}

TEST_CASE("max: a tie, and a near tie, have one winner") {
  const Tensor x = Tensor::of({2, 3, 3, 3}, {.dtype = float64, .requires_grad = true});
  expect_gradient(max(x), x, {0, 1, 0, 0});
  const Tensor near = Tensor::of({1, 1.001}, {.dtype = float64, .requires_grad = true});
  expect_gradient(max(near), near, {0, 1});
}

TEST_CASE("max: NaN is larger than all, the first one wins") {
  const Tensor x = Tensor::of({1, NAN, INFINITY, NAN}, {.dtype = float64, .requires_grad = true});
  expect_close(max(x), {NAN});
  expect_close(max(x, 0).indices, {1});
  expect_gradient(max(x), x, {0, 1, 0, 0});
  expect_close(max(Tensor::of({-INFINITY, -INFINITY})), {-INFINITY});
}

TEST_CASE("max: refusals") {
  expect_error([] { max(zeros({2, 0}), 1); }, {"max", "[2, 0]", "dimension 1"});
  expect_error([] { max(zeros({0, 3})); }, {"max", "[0, 3]"});
  expect_error([] { max(zeros({2, 3}), 2); }, {"max", "dimension 2"});
  expect_error([] { max(zeros({2}, boolean), 0); }, {"bool"});
  CHECK(max(zeros({0, 3}), 1).values.shape() == Shape{0});
}

}  // namespace
}  // namespace prenorm
