#include <numeric>

#include "autograd/ops/reduction_checks.h"

namespace prenorm {
namespace {

TEST_CASE("mean: values, gradients, dimensions and refusals") {
  expect_reduction("mean", mean, [](const std::vector<double>& group) {
    return std::accumulate(group.begin(), group.end(), 0.0) / static_cast<double>(group.size());
  });
  expect_error([] { mean(ones({2}, int64)); }, {"mean", "int64"});
}

TEST_CASE("mean: every element counts 1 / n; of nothing it is NaN") {
  const Tensor x = randn64({2, 4});
  expect_gradient(mean(x), x, std::vector<double>(8, 0.125));
  expect_gradient(mean(x, {1}), x, std::vector<double>(8, 0.25));
  expect_close(mean(zeros({0})), {NAN});
  expect_close(mean(zeros({2, 0}), {1}), {NAN, NAN});
  CHECK(mean(zeros({0, 2}), {1}).shape() == Shape{0});
}

}  // namespace
}  // namespace prenorm
