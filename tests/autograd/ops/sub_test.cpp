#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("sub: gradients, broadcasting and refusals") { expect_binary("sub", sub, {-2, 2}, {-2, 2}); }

TEST_CASE("sub: values, scalars on either side, int64") {
  const Tensor x = Tensor::of({1, 2, 3});
  expect_close(x - Tensor::of({10, 20, 30}), {-9, -18, -27});
  expect_close(x - 0.5, {0.5, 1.5, 2.5});
  expect_close(0.5 - x, {-0.5, -1.5, -2.5});
  const Tensor big = Tensor::of(std::vector<std::int64_t>{9007199254740993}, {1}, {.dtype = int64});
  CHECK((big - 1).item<std::int64_t>() == 9007199254740992);
  const Tensor a = randn64({2, 3}), b = randn64({3});
  expect_gradient(a - b, b, {-2, -2, -2});
  expect_gradient(a - a, a, std::vector<double>(6, 0));  // NOLINT(misc-redundant-expression)
}

}  // namespace
}  // namespace prenorm
