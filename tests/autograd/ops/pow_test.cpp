#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

Tensor leaf(std::initializer_list<double> values) {
  return Tensor::of(values, {.dtype = float64, .requires_grad = true});
}

TEST_CASE("pow: gradients of base and exponent, broadcasting and refusals") {
  const auto power = [](const Tensor& base, const Tensor& exponent) { return pow(base, exponent); };
  expect_binary("pow", power, {0.5, 2}, {-2, 3});
  expect_error([] { pow(ones({2}, int64), ones({2}, int64)); }, {"pow", "int64"});
}

TEST_CASE("pow: a number as exponent, negative bases too") {
  for (double exponent : {-2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0}) {
    CAPTURE(exponent);
    const Tensor x = leaf({-1.5, -0.5, 0.7, 2});
    const auto power = [&](const Tensors& in) { return pow(in[0], exponent); };
    expect_gradients(power, Tensors{x}, {.allow_vacuous = exponent == 0});
    const Tensor x32 = to(x.detach(), float32);
    expect_close(pow(x32, exponent), pow(to(x32, float64), exponent), 1e-6);
  }
  for (double exponent : {0.5, 1.5, 2.5}) {
    expect_gradients([&](const Tensors& in) { return pow(in[0], exponent); }, Tensors{uniform64({4}, 0.5, 2)});
  }
  // Whole exponents in a tensor: the base has its gradients although the exponent has none there.
  const Tensor exponents = Tensor::of({3, 2, -1, 0}, {.dtype = float64});
  expect_gradients([&](const Tensors& in) { return pow(in[0], exponents); }, Tensors{leaf({-1.5, -0.5, -2, -1})});
}

TEST_CASE("pow: base 0") {
  const Tensor b = leaf({0, 0, 0, 0}), e = leaf({0, 1, 2, 3});
  const Tensor y = pow(b, e);
  expect_close(y, {1, 0, 0, 0});
  expect_gradient(y, b, {0, 1, 0, 0});
  expect_gradient(y, e, {0, 0, 0, 0});
  const Tensors first = grad({y}, {b, e}, {ones_like(y)}, {.create_graph = true});
  expect_close(grad({first[0]}, {b}, {ones_like(y)}, {.keep_graph = true})[0], {0, 0, 2, 0});
  for (const Tensor& with : {b, e}) {
    for (const Tensor& second : grad({first[0] + first[1]}, {with}, {ones_like(y)}, {.keep_graph = true})) {
      for (double value : second.to_vector()) CHECK(std::isfinite(value));
    }
  }
  // Fractional powers: flat in the exponent, infinitely steep in the base.
  const Tensor zero = leaf({0}), half = leaf({0.5});
  expect_gradient(pow(zero, half), zero, {INFINITY});
  const Tensor slope = grad({pow(zero, half)}, {half}, {ones({1}, float64)}, {.create_graph = true})[0];
  expect_close(slope, zeros({1}));
  for (const Tensor& second : grad({slope}, {zero, half}, {ones({1}, float64)})) expect_close(second, zeros({1}));
}

TEST_CASE("pow: exponent 0 away from 0 has its mixed derivative 1 / b") {
  const Tensor b = leaf({2}), e = leaf({0});
  const Tensor slope = grad({pow(b, e)}, {b}, {ones({1}, float64)}, {.create_graph = true})[0];
  expect_close(slope, zeros({1}));
  expect_close(grad({slope}, {e}, {ones({1}, float64)})[0], {0.5});
}

TEST_CASE("pow: a negative base has no derivative by its exponent") {
  const Tensor b = leaf({-2}), e = leaf({3});
  expect_close(pow(b, e), {-8});
  expect_gradient(pow(b, e), b, {12});
  expect_gradient(pow(b, e), e, {NAN});
  expect_close(pow(b, 0.5), {NAN});
}

}  // namespace
}  // namespace prenorm
