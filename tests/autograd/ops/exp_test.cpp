#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("exp: gradients, layouts and refusals") { expect_unary("exp", exp, -2, 2); }

TEST_CASE("exp: values at the ends") {
  expect_close(exp(Tensor::of({0, 1, -INFINITY, INFINITY, 1000, -1000, NAN})),
               {1, 2.718281828459045, 0, INFINITY, INFINITY, 0, NAN}, 1e-6);
}

TEST_CASE("exp: writing to the output that backward needs is noticed") {
  const Tensor x = randn64({2, 3});
  const Tensor y = exp(x);
  add_(y.detach(), ones({3}, float64));
  expect_error([&] { sum(y).backward(); }, {"exp", "[2, 3]", "version"});
}

}  // namespace
}  // namespace prenorm
