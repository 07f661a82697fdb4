#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("zeros, ones, full: of every shape and dtype, leaves without gradient") {
  for (DType dtype : {float32, float64, int64, boolean}) {
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{2, 3}, Shape{2, 0, 3}}) {
      const std::size_t n = static_cast<std::size_t>(numel(shape));
      CHECK(zeros(shape, dtype).to_vector() == std::vector<double>(n, 0));
      CHECK(ones(shape, dtype).to_vector() == std::vector<double>(n, 1));
      const Tensor x = full(shape, 1, dtype);
      CHECK(x.shape() == shape);
      CHECK(x.dtype() == dtype);
      CHECK(!x.requires_grad());
      for (const Tensor& like : {zeros_like(x), ones_like(x), full_like(x, 1)}) {
        CHECK(like.shape() == shape);
        CHECK(like.dtype() == dtype);
        CHECK(like.storage() != x.storage());
      }
    }
  }
  expect_close(full({2}, -2.5), {-2.5, -2.5});
  CHECK(zeros({2}).dtype() == float32);
  const Tensor strange = transpose(randn64({2, 3}), 0, 1);
  CHECK(zeros_like(strange).is_contiguous());
  CHECK(!zeros_like(strange).requires_grad());
}

TEST_CASE("arange: start, start + step, … below end") {
  expect_close(arange(4), {0, 1, 2, 3});
  CHECK(arange(4).dtype() == int64);
  expect_close(arange(2, 5), {2, 3, 4});
  expect_close(arange(0, 1, 0.25, float64), {0, 0.25, 0.5, 0.75});
  expect_close(arange(5, 0, -2), {5, 3, 1});
  CHECK(arange(0).numel() == 0);
  CHECK(arange(3, 3).numel() == 0);
  // 0.1 is added once for each, not again and again.
  expect_close(arange(0, 100, 0.1, float64).view({1}, {1}, 999), {99.9}, 1e-15);
}

TEST_CASE("creation: refusals") {
  expect_error([] { arange(0, 5, 0); }, {"arange", "steps of 0"});
  expect_error([] { arange(0, 5, -1); }, {"arange", "0", "5", "-1"});
  expect_error([] { arange(0, INFINITY); }, {"arange", "inf"});
  expect_error([] { arange(0, 2, 1, boolean); }, {"arange", "bool"});
  expect_error([] { zeros({2, -1}); }, {"negative", "[2, -1]"});
  expect_error([] { zeros({std::int64_t{1} << 40, std::int64_t{1} << 40}); }, {"int64"});
}

}  // namespace
}  // namespace prenorm
