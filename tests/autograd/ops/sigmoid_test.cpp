#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("sigmoid: gradients, layouts and refusals") { expect_unary("sigmoid", sigmoid, -3, 3); }

TEST_CASE("sigmoid: flat far from 0") {
  for (DType dtype : {float32, float64}) {
    const Tensor x = Tensor::of({0, 1000, -1000, INFINITY, -INFINITY}, {.dtype = dtype, .requires_grad = true});
    expect_close(sigmoid(x), {0.5, 1, 0, 1, 0});
    expect_gradient(sigmoid(x), x, {0.25, 0, 0, 0, 0});
  }
}

}  // namespace
}  // namespace prenorm
