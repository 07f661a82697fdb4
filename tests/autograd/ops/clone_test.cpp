#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("clone and contiguous: gradients from every layout") {
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{2, 3}, Shape{2, 0, 2}}) {
    const Tensor x = randn64(shape);
    for (const Tensor& layout : {x, strided(x)}) {
      expect_gradients([](const Tensors& in) { return clone(in[0]); }, Tensors{layout}, maybe_vacuous(x));
      expect_gradients([](const Tensors& in) { return contiguous(in[0]) * 2; }, Tensors{layout}, maybe_vacuous(x));
      expect_close(clone(layout), x, 0);
      CHECK(clone(layout).is_contiguous());
    }
  }
  expect_gradients([](const Tensors& in) { return clone(expand(in[0], {2, 3})); }, Tensors{randn64({3})});
  expect_gradients([](const Tensors& in) { return clone(in[0]) * in[0]; }, Tensors{randn64({3})});
}

TEST_CASE("clone: memory of its own, in all dtypes") {
  for (DType dtype : {float32, float64, int64, boolean}) {
    const Tensor x = ones({2, 2}, dtype);
    for (const Tensor& copy : {clone(x), clone(transpose(x, 0, 1)), clone(expand(slice(x, 0, 0, 1), {2, 2}))}) {
      CHECK(copy.storage() != x.storage());
      CHECK(copy.dtype() == dtype);
      fill_(copy, 0);
    }
    expect_close(x, {1, 1, 1, 1});
  }
}

TEST_CASE("contiguous: the same handle where there is nothing to do") {
  const Tensor x = ones({2, 3});
  CHECK(contiguous(x).is(x));
  const Tensor y = contiguous(transpose(x, 0, 1));
  CHECK(y.is_contiguous());
  CHECK(y.storage() != x.storage());
  expect_error([] { clone(Tensor()); }, {"clone", "undefined"});
}

}  // namespace
}  // namespace prenorm
