#include <numeric>

#include "autograd/ops/reduction_checks.h"

namespace prenorm {
namespace {

double naive(const std::vector<double>& group, int correction) {
  const double n = static_cast<double>(group.size());
  const double mean = std::accumulate(group.begin(), group.end(), 0.0) / n;
  double squares = 0;
  for (double x : group) squares += (x - mean) * (x - mean);
  return squares / std::max(n - correction, 0.0);
}

TEST_CASE("var: values, gradients, dimensions and refusals, biased and unbiased") {
  for (int correction : {0, 1, 2}) {
    CAPTURE(correction);
    expect_reduction(
        "var", [=](const Tensor& x, const Dims& dims, bool keepdim) { return var(x, dims, correction, keepdim); },
        [=](const std::vector<double>& group) { return naive(group, correction); }, std::max(correction + 1, 2));
  }
  expect_error([] { var(ones({2}, int64)); }, {"var", "int64"});
}

TEST_CASE("var: unbiased is the default; n - 1 against n") {
  const Tensor x = Tensor::of({1, 2, 3, 4}, {.dtype = float64, .requires_grad = true});
  expect_close(var(x), {5.0 / 3});
  expect_close(var(x, {}, 0), {1.25});
  expect_gradient(var(x), x, {-1, -1.0 / 3, 1.0 / 3, 1});
  expect_gradient(var(x, {}, 0), x, {-0.75, -0.25, 0.25, 0.75});
}

TEST_CASE("var: of one element, or none") {
  const Tensor one = Tensor::of({7.1}, {.requires_grad = true});
  expect_close(var(one), {NAN});
  expect_gradient(var(one), one, {NAN});
  expect_close(var(one, {}, 0), zeros({}));
  expect_gradient(var(one, {}, 0), one, std::vector<double>{0});
  expect_close(var(zeros({0})), {NAN});
  expect_close(var(Tensor::of({1, 3}), {}, 2), {INFINITY});
}

TEST_CASE("var: constant rows give exactly 0, with gradient exactly 0") {
  for (DType dtype : {float32, float64}) {
    for (double constant : {7.1, 1000.1, 0.1, -3e7, 1e-30}) {
      for (std::int64_t n : {2, 8, 768}) {
        const Tensor x = full({2, n}, constant, dtype).requires_grad_();
        expect_close(var(x, {1}), {0, 0}, 0);
        sum(var(x, {1})).backward();
        CHECK(norm(x.grad()).item() == 0);
      }
    }
  }
}

TEST_CASE("var: rows far from 0 keep their digits in float32") {
  const Tensor x = to(randn64({4, 64}, 1, 2000).detach(), float32);
  expect_close(var(x, {1}), var(to(x, float64), {1}), 1e-6);
  const Tensor leaf = x.detach().requires_grad_(), leaf64 = to(x, float64).requires_grad_();
  expect_close(grad({sum(var(leaf, {1}))}, {leaf})[0], grad({sum(var(leaf64, {1}))}, {leaf64})[0], 1e-5);
}

}  // namespace
}  // namespace prenorm
