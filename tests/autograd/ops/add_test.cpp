#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("add: gradients, broadcasting and refusals") { expect_binary("add", add, {-2, 2}, {-2, 2}); }

TEST_CASE("add: new dimensions in front of one that stretches") {
  const Tensor a = randn64({3, 1, 5}), b = randn64({2, 3, 4, 5}, 1);
  CHECK((a + b).shape() == Shape{2, 3, 4, 5});
  CHECK((a + b).to_vector()[2 * 20 + 3 * 5 + 4] == a.to_vector()[2 * 5 + 4] + b.to_vector()[2 * 20 + 3 * 5 + 4]);
  const Tensors d = grad({a + b}, {a, b}, {ones({2, 3, 4, 5}, float64)});
  expect_close(d[0], full({3, 1, 5}, 8, float64));
  expect_close(d[1], ones({2, 3, 4, 5}, float64));
}

TEST_CASE("add: values, scalars on either side, int64") {
  const Tensor x = Tensor::of({1, 2, 3});
  expect_close(x + Tensor::of({10, 20, 30}), {11, 22, 33});
  expect_close(x + 0.5, {1.5, 2.5, 3.5});
  expect_close(0.5 + x, {1.5, 2.5, 3.5});
  const Tensor big = Tensor::of(std::vector<std::int64_t>{9007199254740993}, {1}, {.dtype = int64});
  CHECK((big + big).item<std::int64_t>() == 18014398509481986);
}

TEST_CASE("add: a value used several times collects all of its gradients") {
  const Tensor x = Tensor::of({3}, {.dtype = float64, .requires_grad = true});
  const Tensor y = x * x, z = y + y * x;
  expect_gradient(z, x, {2 * 3 + 3 * 9});
  expect_gradient(x + x + x, x, {3});
}

}  // namespace
}  // namespace prenorm
