#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("gelu: gradients of both forms, layouts and refusals") {
  for (Gelu form : {Gelu::exact, Gelu::tanh}) {
    expect_unary(
        "gelu", [form](const Tensor& x) { return gelu(x, form); }, -3, 3);
  }
}

TEST_CASE("gelu: values and slopes") {
  // x Phi(x) and Phi(x) + x phi(x), computed with the complementary error function.
  const Tensor x = Tensor::of({-2, -1, 0, 1, 3}, {.dtype = float64, .requires_grad = true});
  const std::vector<double> y{-0.04550026389635844, -0.15865525393145707, 0, 0.8413447460685429, 2.99595030590511};
  const std::vector<double> slope{-0.0852318010781969, -0.08331547058768629, 0.5, 1.0833154705876864,
                                  1.011945647204184};
  expect_close(gelu(x), y);
  expect_gradient(gelu(x), x, slope);
  expect_close(gelu(x, Gelu::tanh), y, 1e-3);  // an approximation
  expect_gradient(gelu(x, Gelu::tanh), x, slope, 1e-2);
  for (Gelu form : {Gelu::exact, Gelu::tanh}) {
    const Tensor far = Tensor::of({-30, -8, 8, 30, NAN}, {.requires_grad = true});
    expect_close(gelu(far, form), {0, 0, 8, 30, NAN}, 1e-6);
    expect_gradient(gelu(far, form), far, {0, 0, 1, 1, NAN}, 1e-6);
  }
}

TEST_CASE("gelu: float32 gradients are close to float64 ones") {
  for (Gelu form : {Gelu::exact, Gelu::tanh}) {
    const Tensor x = to(uniform64({2000}, -6, 6).detach(), float32).requires_grad_();
    const Tensor x64 = to(x.detach(), float64).requires_grad_();
    const Tensor dx = grad({sum(gelu(x, form))}, {x})[0], dx64 = grad({sum(gelu(x64, form))}, {x64})[0];
    expect_close(dx, dx64, 2e-6);
  }
}

}  // namespace
}  // namespace prenorm
