#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("softmax: gradients along every dimension, all layouts") {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{5}, Shape{2, 3}, Shape{3, 1}, Shape{2, 3, 4}}) {
    for (std::int64_t dim = -shape.dims(); dim < std::max<std::int64_t>(shape.dims(), 1); ++dim) {
      const Tensor x = randn64(shape);
      const bool constant = shape.dims() == 0 || x.size(dim) == 1;  // always 1
      expect_gradients([dim](const Tensors& in) { return softmax(in[0], dim); }, Tensors{x},
                       {.allow_vacuous = constant});
      CHECK(softmax(x, dim).shape() == shape);
    }
  }
  expect_gradients([](const Tensors& in) { return softmax(in[0]); }, Tensors{strided(randn64({3, 4}))});
  expect_gradients([](const Tensors& in) { return softmax(in[0]) * in[0]; }, Tensors{randn64({2, 3})});
  for (const Shape& shape : {Shape{0}, Shape{0, 3}, Shape{3, 0}, Shape{2, 0, 3}}) {
    const Tensor x = randn64(shape);
    CHECK(softmax(x).shape() == shape);
    expect_gradients([](const Tensors& in) { return softmax(in[0]); }, Tensors{x}, {.allow_vacuous = true});
  }
}

TEST_CASE("softmax: values; rows sum to 1 and their gradients to 0") {
  expect_close(softmax(Tensor::of({0, std::log(2), std::log(3)}, {.dtype = float64})), {1.0 / 6, 2.0 / 6, 3.0 / 6});
  const Tensor x = randn64({4, 7}), dy = randn64({4, 7}, 1).detach(), y = softmax(x);
  expect_close(sum(y, {1}), std::vector<double>(4, 1));
  expect_close(sum(grad({y}, {x}, {dy})[0], {1}), std::vector<double>(4, 0), 1e-15);
  expect_close(softmax(x + 1000), y, 1e-12);
}

TEST_CASE("softmax: huge logits, -inf and NaN") {
  for (DType dtype : {float32, float64}) {
    const Tensor x = Tensor::of({1e4, -1e4, 0, -1e4, -1e4, -1e4}, {2, 3}, {.dtype = dtype, .requires_grad = true});
    const double third = dtype == float32 ? 1.0F / 3.0F : 1.0 / 3.0;
    expect_close(softmax(x), {1, 0, 0, third, third, third}, 1e-7);
    const Tensor dx = grad({softmax(x)}, {x}, {Tensor::of({1, 2, 3, 1, 2, 3}, {2, 3}, {.dtype = dtype})})[0];
    expect_close(dx, {0, 0, 0, -third, 0, third}, 1e-7);
    const Tensor hidden = Tensor::of({0, -INFINITY, 0}, {.dtype = dtype, .requires_grad = true});
    expect_close(softmax(hidden), {0.5, 0, 0.5});
    expect_close(grad({softmax(hidden)}, {hidden}, {Tensor::of({1, 5, 3}, {.dtype = dtype})})[0], {-0.5, 0, 0.5});
    expect_close(softmax(full({2}, -INFINITY, dtype)), {NAN, NAN});
    expect_close(softmax(Tensor::of({1, NAN}, {.dtype = dtype})), {NAN, NAN});
  }
}

TEST_CASE("softmax: float32 is close to float64, whatever the row length") {
  for (std::int64_t n : {1, 2, 7, 16, 17, 50, 1000}) {
    const Tensor x = to(randn64({3, n}, 5).detach(), float32).requires_grad_();
    const Tensor x64 = to(x.detach(), float64).requires_grad_();
    const Tensor dy = to(randn64({3, n}, 6).detach(), float32);
    expect_close(softmax(x), softmax(x64), 5e-7);
    expect_close(grad({softmax(x)}, {x}, {dy})[0], grad({softmax(x64)}, {x64}, {to(dy, float64)})[0], 5e-7);
  }
}

TEST_CASE("softmax: refusals") {
  expect_error([] { softmax(ones({2, 3}), 2); }, {"softmax", "2"});
  expect_error([] { softmax(ones({2, 3}, int64)); }, {"softmax", "int64"});
  expect_error([] { softmax(Tensor()); }, {"softmax", "undefined"});
}

}  // namespace
}  // namespace prenorm
