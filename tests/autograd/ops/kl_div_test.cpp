#include "autograd/grad_mode.h"
#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

constexpr Reduction kReductions[] = {Reduction::none, Reduction::sum, Reduction::mean, Reduction::batchmean};

TEST_CASE("kl_div: gradients, every reduction, target as probabilities or logarithms") {
  for (const Shape& shape : {Shape{4}, Shape{2, 3}, Shape{2, 1, 3}, Shape{}}) {
    const Tensor x = randn64(shape), p = uniform64(shape, 0.1, 1, 1).detach();
    for (Reduction reduction : kReductions) {
      if (reduction == Reduction::batchmean && shape.dims() == 0) continue;
      const auto f = [&](const Tensors& in) { return kl_div(in[0], p, reduction); };
      const auto g = [&](const Tensors& in) { return kl_div(in[0], log(p), reduction, true); };
      expect_gradients(f, Tensors{x});
      expect_gradients(g, Tensors{x});
      expect_gradients(f, Tensors{strided(x)});
      expect_close(f({x}), g({x}));
      CHECK(f({x}).shape() == (reduction == Reduction::none ? shape : Shape{}));
    }
  }
}

TEST_CASE("kl_div: values: the divergence of distributions") {
  const Tensor p = Tensor::of({0.5, 0.5, 0.25, 0.75}, {2, 2}, {.dtype = float64});
  const Tensor x = log(Tensor::of({0.25, 0.75, 0.25, 0.75}, {2, 2}, {.dtype = float64})).requires_grad_();
  const double first = 0.5 * std::log(2), second = 0.5 * std::log(2.0 / 3);
  expect_close(kl_div(x, p, Reduction::none), {first, second, 0, 0});
  expect_close(kl_div(x, p, Reduction::sum), {first + second});
  expect_close(kl_div(x, p), {(first + second) / 4});
  expect_close(kl_div(x, p, Reduction::batchmean), {(first + second) / 2});
  expect_gradient(kl_div(x, p, Reduction::batchmean), x, {-0.25, -0.25, -0.125, -0.375});
}

TEST_CASE("kl_div: where the target is 0, terms and gradients are 0, whatever x") {
  for (DType dtype : {float32, float64}) {
    const Tensor x = Tensor::of({-INFINITY, -2, -1}, {.dtype = dtype, .requires_grad = true});
    const Tensor p = Tensor::of({0, 0, 1}, {.dtype = dtype});
    expect_close(kl_div(x, p, Reduction::none), {0, 0, 1});
    expect_gradient(kl_div(x, p, Reduction::sum), x, {0, 0, -1});
    const Tensor log_p = Tensor::of({-INFINITY, -INFINITY, 0}, {.dtype = dtype});
    expect_close(kl_div(x, log_p, Reduction::none, true), {0, 0, 1});
    expect_gradient(kl_div(x, log_p, Reduction::sum, true), x, {0, 0, -1});
  }
}

TEST_CASE("kl_div: no elements") {
  const Tensor x = randn64({0, 3}), p = zeros({0, 3}, float64);
  expect_close(kl_div(x, p), {NAN});
  expect_close(kl_div(x, p, Reduction::sum), {0.0});
  expect_close(kl_div(x, p, Reduction::batchmean), {NAN});
  CHECK(kl_div(x, p, Reduction::none).shape() == Shape{0, 3});
}

TEST_CASE("kl_div: float32 is close to float64") {
  const Tensor x = to(log_softmax(randn64({20, 100})).detach(), float32);
  const Tensor p = to(softmax(randn64({20, 100}, 1)).detach(), float32);
  expect_close(kl_div(x, p, Reduction::sum), kl_div(to(x, float64), to(p, float64), Reduction::sum), 1e-6);
  expect_close(kl_div(x, log(p), Reduction::sum, true), kl_div(to(x, float64), to(p, float64), Reduction::sum), 1e-5);
}

TEST_CASE("kl_div: the target is data; refusals") {
  const Tensor x = randn64({2, 3}), p = uniform64({2, 3}, 0, 1);
  expect_error([&] { kl_div(x, p); }, {"kl_div", "target", "detach()"});
  CHECK(kl_div(x, p.detach()).requires_grad());
  {
    const NoGrad no_grad;
    CHECK_FALSE(kl_div(x, p).requires_grad());
  }
  expect_error([&] { kl_div(x, ones({3}, float64)); }, {"kl_div", "[2, 3]", "[3]", "equal"});
  expect_error([&] { kl_div(x, ones({2, 3})); }, {"kl_div", "float64", "float32"});
  expect_error([&] { kl_div(ones({2}, int64), ones({2}, int64)); }, {"kl_div", "int64"});
  expect_error([&] { kl_div(Tensor::scalar(1), Tensor::scalar(1), Reduction::batchmean); }, {"kl_div", "batchmean"});
  expect_error([&] { kl_div(x, Tensor()); }, {"kl_div", "undefined"});
}

}  // namespace
}  // namespace prenorm
