#include <numeric>

#include "autograd/ops/reduction_checks.h"

namespace prenorm {
namespace {

double naive(const std::vector<double>& group, int correction) {
  const double n = static_cast<double>(group.size());
  const double mean = std::accumulate(group.begin(), group.end(), 0.0) / n;
  double squares = 0;
  for (double x : group) squares += (x - mean) * (x - mean);
  return std::sqrt(squares / std::max(n - correction, 0.0));
}

TEST_CASE("std: values, gradients, dimensions and refusals, biased and unbiased") {
  for (int correction : {0, 1}) {
    CAPTURE(correction);
    expect_reduction(
        "std", [=](const Tensor& x, const Dims& dims, bool keepdim) { return std(x, dims, correction, keepdim); },
        [=](const std::vector<double>& group) { return naive(group, correction); }, 2);
  }
  expect_error([] { std(ones({2}, int64)); }, {"std", "int64"});
}

TEST_CASE("std: unbiased is the default; n - 1 against n") {
  const Tensor x = Tensor::of({1, 2, 3, 4}, {.dtype = float64, .requires_grad = true});
  expect_close(std(x), {std::sqrt(5.0 / 3)});
  expect_close(std(x, {}, 0), {std::sqrt(1.25)});
  expect_gradient(std(x, {}, 0), x,
                  {-0.75 / std::sqrt(5.0), -0.25 / std::sqrt(5.0), 0.25 / std::sqrt(5.0), 0.75 / std::sqrt(5.0)});
}

TEST_CASE("std: the gradient of a constant row is 0, in second order too") {
  for (DType dtype : {float32, float64}) {
    for (double constant : {0.0, 1.0, 7.1, 1000.1}) {
      const Tensor x = full({3, 4}, constant, dtype).requires_grad_();
      expect_close(std(x, {1}), {0, 0, 0}, 0);
      expect_gradient(std(x, {1}), x, std::vector<double>(12, 0), 0);
      const Tensor first = grad({sum(std(x, {1}))}, {x}, {}, {.create_graph = true})[0];
      expect_close(grad({sum(first * arange(0, 12, 1, dtype).view({3, 4}, {4, 1}))}, {x})[0],
                   std::vector<double>(12, 0), 0);
    }
  }
  // Constant and other rows side by side.
  const Tensor x = Tensor::of({5, 5, 1, 3}, {2, 2}, {.dtype = float64, .requires_grad = true});
  expect_gradient(std(x, {1}), x, {0, 0, -std::sqrt(0.5), std::sqrt(0.5)});
  expect_gradient(std(x, {1}) + 1e-6, x, {0, 0, -std::sqrt(0.5), std::sqrt(0.5)});
}

TEST_CASE("std: of one element, or none") {
  const Tensor one = Tensor::of({7.1}, {.requires_grad = true});
  expect_close(std(one), {NAN});
  expect_gradient(std(one), one, {NAN});
  expect_gradient(std(one, {}, 0), one, std::vector<double>{0});
  expect_close(std(zeros({0})), {NAN});
}

}  // namespace
}  // namespace prenorm
