#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("argmax: the first of the largest, along any dimension") {
  const Tensor x = Tensor::of({1, 5, 5, 7, 2, -1}, {2, 3});
  expect_close(argmax(x), {1, 0});
  expect_close(argmax(x, 0), {1, 0, 0});
  CHECK(argmax(x).dtype() == int64);
  CHECK(argmax(x, 0, true).shape() == Shape{1, 3});
  CHECK(argmax(x, -1, true).shape() == Shape{2, 1});
  expect_close(argmax(strided(x)), {1, 0});
  expect_close(argmax(Tensor::scalar(3)), zeros({}));
  expect_close(argmax(Tensor::of({3, 4, 1}, {.dtype = int64})), {1});
  expect_close(argmax(Tensor::of({3, NAN, INFINITY, NAN})), {1});
  expect_close(argmax(Tensor::of({NAN, 4})), zeros({}));
  CHECK(!argmax(randn64({3})).requires_grad());
}

TEST_CASE("argmax: refusals") {
  expect_error([] { argmax(zeros({2, 0})); }, {"argmax", "[2, 0]"});
  expect_error([] { argmax(zeros({2, 2}), 2); }, {"argmax", "dimension 2"});
  expect_error([] { argmax(zeros({2}, boolean)); }, {"bool"});
  CHECK(argmax(zeros({0, 3})).shape() == Shape{0});
}

}  // namespace
}  // namespace prenorm
