#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("neg: gradients, layouts and refusals") { expect_unary("neg", neg, -2, 2); }

TEST_CASE("neg: values, int64") {
  expect_close(-Tensor::of({1, -2, 0, INFINITY}), {-1, 2, 0, -INFINITY});
  const Tensor n = -Tensor::of({1, -2}, {.dtype = int64});
  CHECK(n.dtype() == int64);
  expect_close(n, {-1, 2});
}

}  // namespace
}  // namespace prenorm
