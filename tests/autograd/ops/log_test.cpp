#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("log: gradients, layouts and refusals") { expect_unary("log", log, 0.2, 3); }

TEST_CASE("log: values at the ends") {
  const std::vector<double> expected{0, 1, -INFINITY, INFINITY, NAN, NAN};
  const Tensor x = Tensor::of({1, 2.718281828459045, 0, INFINITY, -1, NAN}, {.dtype = float64});
  expect_close(log(x), expected);
  expect_close(log(to(x, float32)), expected, 1e-6);
}

}  // namespace
}  // namespace prenorm
