#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("sin: gradients, layouts and refusals") { expect_unary("sin", sin, -3, 3); }

TEST_CASE("sin: values, and the fourth derivative is the function itself") {
  constexpr double kPi = 3.141592653589793;
  expect_close(sin(Tensor::of({0, kPi / 6, kPi / 2}, {.dtype = float64})), {0, 0.5, 1});
  const Tensor x = Tensor::of({0.3, -1.2}, {.dtype = float64, .requires_grad = true});
  Tensor y = sin(x);
  for (int order = 1; order <= 4; ++order) y = grad({y}, {x}, {ones({2}, float64)}, {.create_graph = true})[0];
  expect_close(y, {std::sin(0.3), std::sin(-1.2)});
}

}  // namespace
}  // namespace prenorm
