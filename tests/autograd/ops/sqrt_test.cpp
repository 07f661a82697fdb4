#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("sqrt: gradients, layouts and refusals") { expect_unary("sqrt", sqrt, 0.2, 3); }

TEST_CASE("sqrt: values at the ends") {
  expect_close(sqrt(Tensor::of({0, 4, INFINITY, -1, NAN}, {.dtype = float64})), {0, 2, INFINITY, NAN, NAN});
}

TEST_CASE("sqrt: the gradient at 0 is 0, that of second order too") {
  const Tensor x = Tensor::of({0, 4}, {.dtype = float64, .requires_grad = true});
  expect_gradient(sqrt(x), x, {0, 0.25});
  const Tensor first = grad({sqrt(x)}, {x}, {ones({2}, float64)}, {.create_graph = true})[0];
  expect_close(grad({first}, {x}, {ones({2}, float64)})[0], {0, -1.0 / 32});
  // The length of a zero vector, written out.
  const Tensor v = zeros({3}, float64).requires_grad_();
  expect_gradient(sqrt(sum(v * v)), v, {0, 0, 0});
}

}  // namespace
}  // namespace prenorm
