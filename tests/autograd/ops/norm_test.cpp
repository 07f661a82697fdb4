#include "autograd/ops/reduction_checks.h"

namespace prenorm {
namespace {

TEST_CASE("norm: values, gradients, dimensions and refusals") {
  expect_reduction("norm", norm, [](const std::vector<double>& group) {
    double squares = 0;
    for (double x : group) squares += x * x;
    return std::sqrt(squares);
  });
  expect_error([] { norm(ones({2}, int64)); }, {"norm", "int64"});
}

TEST_CASE("norm: the gradient is the direction, and 0 for the zero vector") {
  const Tensor x = Tensor::of({3, -4, 0, 0}, {2, 2}, {.dtype = float64, .requires_grad = true});
  expect_close(norm(x, {1}), {5, 0});
  expect_gradient(norm(x, {1}), x, {0.6, -0.8, 0, 0});
  const Tensor zero = zeros({3}, float64).requires_grad_();
  const Tensor first = grad({norm(zero)}, {zero}, {}, {.create_graph = true})[0];
  expect_close(grad({sum(first)}, {zero})[0], {0, 0, 0}, 0);
}

TEST_CASE("norm: squares of float32 numbers neither overflow nor vanish") {
  expect_close(norm(Tensor::of({3e30, 4e30})), {5e30}, 1e-6);
  CHECK(norm(Tensor::of({3e-30, 4e-30})).item() == doctest::Approx(5e-30));
  expect_close(norm(Tensor::of({1, NAN})), {NAN});
  expect_close(norm(Tensor::of({1, -INFINITY})), {INFINITY});
}

}  // namespace
}  // namespace prenorm
