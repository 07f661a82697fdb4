#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("mul: gradients, broadcasting and refusals") { expect_binary("mul", mul, {-2, 2}, {-2, 2}); }

TEST_CASE("mul: values, scalars on either side, int64") {
  const Tensor x = Tensor::of({1, 2, 3});
  expect_close(x * Tensor::of({10, 20, 30}), {10, 40, 90});
  expect_close(x * 0.5, {0.5, 1, 1.5});
  expect_close(0.5 * x, {0.5, 1, 1.5});
  const Tensor big = Tensor::of(std::vector<std::int64_t>{9007199254740993}, {1}, {.dtype = int64});
  CHECK((big * 2).item<std::int64_t>() == 18014398509481986);
}

TEST_CASE("mul: a factor is kept only if the other one needs its gradient") {
  Tensor x = Tensor::of({1, 2}, {.dtype = float64, .requires_grad = true});
  const Tensor w = Tensor::of({3, 4}, {.dtype = float64});
  const Tensor y = x * w;
  fill_(x.detach(), 7);  // nobody asks for x: only w, which has no gradient, would need it
  expect_gradient(y, x, {3, 4});
  const Tensor z = x * w;
  fill_(w, 0);
  expect_error([&] { z.backward(ones_like(z)); }, {"mul", "[2]", "version"});
}

}  // namespace
}  // namespace prenorm
