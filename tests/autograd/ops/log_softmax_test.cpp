#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("log_softmax: gradients along every dimension, all layouts") {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{5}, Shape{2, 3}, Shape{3, 1}, Shape{2, 3, 4}}) {
    for (std::int64_t dim = -shape.dims(); dim < std::max<std::int64_t>(shape.dims(), 1); ++dim) {
      const Tensor x = randn64(shape);
      const bool constant = shape.dims() == 0 || x.size(dim) == 1;  // always 0
      expect_gradients([dim](const Tensors& in) { return log_softmax(in[0], dim); }, Tensors{x},
                       {.allow_vacuous = constant});
      CHECK(log_softmax(x, dim).shape() == shape);
    }
  }
  expect_gradients([](const Tensors& in) { return log_softmax(in[0]); }, Tensors{strided(randn64({3, 4}))});
  expect_gradients([](const Tensors& in) { return log_softmax(in[0]) * in[0]; }, Tensors{randn64({2, 3})});
  for (const Shape& shape : {Shape{0}, Shape{0, 3}, Shape{3, 0}, Shape{2, 0, 3}}) {
    const Tensor x = randn64(shape);
    CHECK(log_softmax(x).shape() == shape);
    expect_gradients([](const Tensors& in) { return log_softmax(in[0]); }, Tensors{x}, {.allow_vacuous = true});
  }
}

TEST_CASE("log_softmax: the logarithm of softmax") {
  const Tensor x = randn64({4, 7}), dy = randn64({4, 7}, 1).detach();
  const Tensor y = log_softmax(x), composed = log(softmax(x));
  expect_close(y, composed);
  expect_close(grad({y}, {x}, {dy})[0], grad({composed}, {x}, {dy})[0]);
  expect_close(sum(grad({log_softmax(x)}, {x}, {dy})[0], {1}), std::vector<double>(4, 0), 1e-14);
}

TEST_CASE("log_softmax: huge logits, -inf and NaN") {
  for (DType dtype : {float32, float64}) {
    const Tensor x = Tensor::of({1e4, -1e4, 0}, {.dtype = dtype, .requires_grad = true});
    expect_close(log_softmax(x), {0, -2e4, -1e4});
    expect_close(grad({log_softmax(x)}, {x}, {Tensor::of({1, 2, 3}, {.dtype = dtype})})[0], {-5, 2, 3});
    const Tensor hidden = Tensor::of({0, -INFINITY, 0}, {.dtype = dtype, .requires_grad = true});
    expect_close(log_softmax(hidden), {-std::log(2), -INFINITY, -std::log(2)}, 1e-7);
    expect_close(grad({log_softmax(hidden)}, {hidden}, {Tensor::of({1, 0, 3}, {.dtype = dtype})})[0], {-1, 0, 1}, 1e-6);
    expect_close(log_softmax(full({2}, -INFINITY, dtype)), {NAN, NAN});
    expect_close(log_softmax(Tensor::of({1, NAN}, {.dtype = dtype})), {NAN, NAN});
  }
}

TEST_CASE("log_softmax: float32 is close to float64, whatever the row length") {
  for (std::int64_t n : {1, 2, 7, 16, 17, 50, 1000}) {
    const Tensor x = to(randn64({3, n}, 5).detach(), float32).requires_grad_();
    const Tensor x64 = to(x.detach(), float64).requires_grad_();
    const Tensor dy = to(randn64({3, n}, 6).detach(), float32);
    expect_close(log_softmax(x), log_softmax(x64), 5e-7);
    expect_close(grad({log_softmax(x)}, {x}, {dy})[0], grad({log_softmax(x64)}, {x64}, {to(dy, float64)})[0], 2e-6);
  }
}

TEST_CASE("log_softmax: refusals") {
  expect_error([] { log_softmax(ones({2, 3}), 2); }, {"log_softmax", "2"});
  expect_error([] { log_softmax(ones({2, 3}, int64)); }, {"log_softmax", "int64"});
  expect_error([] { log_softmax(Tensor()); }, {"log_softmax", "undefined"});
}

}  // namespace
}  // namespace prenorm
