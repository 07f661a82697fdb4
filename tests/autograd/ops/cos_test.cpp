#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("cos: gradients, layouts and refusals") { expect_unary("cos", cos, -3, 3); }

TEST_CASE("cos: values") {
  constexpr double kPi = 3.141592653589793;
  expect_close(cos(Tensor::of({0, kPi / 3, kPi}, {.dtype = float64})), {1, 0.5, -1});
}

}  // namespace
}  // namespace prenorm
