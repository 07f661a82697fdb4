#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("abs: gradients on either side of 0, layouts and refusals") {
  expect_unary("abs", abs, 0.1, 2);
  expect_unary("abs", abs, -2, -0.1);
}

TEST_CASE("abs: the gradient at 0 is 0, NaN stays") {
  const Tensor x = Tensor::of({-2, 0, 3, NAN, -INFINITY}, {.dtype = float64, .requires_grad = true});
  expect_close(abs(x), {2, 0, 3, NAN, INFINITY});
  expect_gradient(abs(x), x, {-1, 0, 1, NAN, -1});
}

}  // namespace
}  // namespace prenorm
