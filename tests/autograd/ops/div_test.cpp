#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("div: gradients, broadcasting and refusals") { expect_binary("div", div, {-2, 2}, {0.5, 2}); }

TEST_CASE("div: values, scalars on either side; integers are refused") {
  const Tensor x = Tensor::of({1, 2, 4});
  expect_close(x / Tensor::of({4, 4, -8}), {0.25, 0.5, -0.5});
  expect_close(x / 2, {0.5, 1, 2});
  expect_close(2 / x, {2, 1, 0.5});
  expect_close(Tensor::of({1, -1, 0}) / 0.0, {INFINITY, -INFINITY, NAN});
  expect_error([] { div(ones({2}, int64), ones({2}, int64)); }, {"div", "int64"});
}

TEST_CASE("div: one over a square, negative divisors") {
  const Tensor a = Tensor::of({3}, {.dtype = float64, .requires_grad = true});
  const Tensor b = Tensor::of({-2}, {.dtype = float64, .requires_grad = true});
  expect_gradient(a / b, a, {-0.5});
  expect_gradient(a / b, b, {-0.75});
  expect_gradient(a / a, a, {0});  // NOLINT(misc-redundant-expression)
}

}  // namespace
}  // namespace prenorm
