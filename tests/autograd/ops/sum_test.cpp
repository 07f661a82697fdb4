#include <numeric>

#include "autograd/ops/reduction_checks.h"

namespace prenorm {
namespace {

TEST_CASE("sum: values, gradients, dimensions and refusals") {
  expect_reduction("sum", sum,
                   [](const std::vector<double>& group) { return std::accumulate(group.begin(), group.end(), 0.0); });
}

TEST_CASE("sum: int64; nothing to add gives 0") {
  const Tensor big = Tensor::of(std::vector<std::int64_t>{9007199254740993, 1, 1, 1}, {2, 2}, {.dtype = int64});
  CHECK(sum(big, {0}).to_vector<std::int64_t>() == std::vector<std::int64_t>{9007199254740994, 2});
  expect_close(sum(zeros({0})), zeros({}));
  expect_close(sum(zeros({0, 2}), {0}), {0, 0});
}

TEST_CASE("sum: a million float32 numbers keep their digits") {
  const Tensor x = full({1 << 20}, 0.1);
  CHECK(std::fabs(sum(x).item() / (0.1 * (1 << 20)) - 1) < 1e-5);
}

}  // namespace
}  // namespace prenorm
