#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("tanh: gradients, layouts and refusals") { expect_unary("tanh", tanh, -2, 2); }

TEST_CASE("tanh: flat far from 0") {
  for (DType dtype : {float32, float64}) {
    const Tensor x = Tensor::of({0, 100, -100, INFINITY, -INFINITY}, {.dtype = dtype, .requires_grad = true});
    expect_close(tanh(x), {0, 1, -1, 1, -1});
    expect_gradient(tanh(x), x, {1, 0, 0, 0, 0});
  }
}

}  // namespace
}  // namespace prenorm
