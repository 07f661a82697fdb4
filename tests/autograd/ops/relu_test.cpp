#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("relu: gradients on either side of 0, layouts and refusals") {
  expect_unary("relu", relu, 0.1, 2);
  const Tensor x = Tensor::of({-2, -0.5, 0.5, 2}, {.dtype = float64, .requires_grad = true});
  expect_gradients([](const Tensors& in) { return relu(in[0]) * in[0]; }, Tensors{x});
  expect_gradient(relu(x), x, {0, 0, 1, 1});
  expect_error([] { relu(ones({2}, int64)); }, {"relu", "int64"});
}

TEST_CASE("relu: the gradient at 0 is 0; NaN stays visible in both directions") {
  for (DType dtype : {float32, float64}) {
    const Tensor x = Tensor::of({0, -0.0, -1, 2, NAN, INFINITY}, {.dtype = dtype, .requires_grad = true});
    const Tensor y = relu(x);
    expect_close(y, {0, 0, 0, 2, NAN, INFINITY});
    expect_gradient(y, x, {0, 0, 0, 1, 1, 1});
    expect_gradient(y * y, x, {0, 0, 0, 4, NAN, INFINITY});
  }
}

TEST_CASE("relu: the checker finds the kink at 0") {
  const Tensor zero = zeros({1}, float64).requires_grad_();
  const GradcheckReport report = gradcheck([](const Tensors& in) { return relu(in[0]); }, Tensors{zero});
  REQUIRE(report.failures.size() == 1);
  CHECK(name(report.failures[0].reason) == name(GradcheckReason::kink));
}

}  // namespace
}  // namespace prenorm
