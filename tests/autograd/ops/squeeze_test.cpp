#include "autograd/node.h"
#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("unsqueeze and squeeze: shapes, values and gradients at every place") {
  for (const Shape& shape : {Shape{}, Shape{3}, Shape{0}, Shape{2, 3}, Shape{2, 1, 3}}) {
    const Tensor x = randn64(shape);
    for (std::int64_t dim = -shape.dims() - 1; dim <= shape.dims(); ++dim) {
      CAPTURE(dim);
      const std::int64_t place = dim < 0 ? dim + shape.dims() + 1 : dim;
      Shape expected = shape;
      expected.insert(place, 1);
      const Tensor y = unsqueeze(x, dim);
      CHECK(y.shape() == expected);
      CHECK(y.is_contiguous());
      CHECK(y.storage() == x.storage());
      expect_close(y, x.to_vector(), 0);
      CHECK(squeeze(y, dim).shape() == shape);
      expect_gradients([&](const Tensors& in) { return unsqueeze(in[0], dim) * 2; }, Tensors{x}, maybe_vacuous(x));
      expect_gradients([&](const Tensors& in) { return squeeze(in[0], dim) * 2; }, Tensors{y.detach().requires_grad_()},
                       maybe_vacuous(x));
    }
  }
  const Tensor x = strided(randn64({2, 3}));
  expect_close(unsqueeze(x, 1), x.to_vector(), 0);
  expect_gradients([](const Tensors& in) { return unsqueeze(in[0], 1) * unsqueeze(in[0], 1); }, Tensors{x});
}

TEST_CASE("squeeze: only a size of 1 vanishes") {
  const Tensor x = randn64({2, 1});
  CHECK(squeeze(x, 0).is(x));
  CHECK(squeeze(x, -1).shape() == Shape{2});
  CHECK(squeeze(Tensor::scalar(1), -1).shape() == Shape{});
  CHECK(squeeze(x, 1).node()->info().name == "squeeze");
  CHECK(unsqueeze(x, 1).node()->info().name == "unsqueeze");
}

TEST_CASE("unsqueeze and squeeze: refusals") {
  expect_error([] { unsqueeze(ones({2}), 2); }, {"unsqueeze", "dimension 2"});
  expect_error([] { unsqueeze(ones({1, 1, 1, 1, 1, 1, 1, 1}), 0); }, {"8"});
  expect_error([] { squeeze(ones({2}), 1); }, {"squeeze", "dimension 1"});
}

}  // namespace
}  // namespace prenorm
