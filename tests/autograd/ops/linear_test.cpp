#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

Tensor call(const Tensors& in) { return in.size() > 2 ? linear(in[0], in[1], in[2]) : linear(in[0], in[1]); }

TEST_CASE("linear: gradients with and without bias, for all numbers of dimensions") {
  for (const Shape& batch : {Shape{}, Shape{1}, Shape{3}, Shape{2, 3}, Shape{2, 1, 2}, Shape{0}, Shape{2, 0}}) {
    Shape shape = batch;
    shape.push_back(4);
    const Tensor x = randn64(shape), weight = randn64({5, 4}, 1), bias = randn64({5}, 2);
    const GradcheckOptions options = maybe_vacuous(x);
    expect_gradients(call, NamedTensors{{"x", x}, {"weight", weight}, {"bias", bias}}, options);
    expect_gradients(call, NamedTensors{{"x", x}, {"weight", weight}}, options);
    shape.back() = 5;
    CHECK(linear(x, weight, bias).shape() == shape);
  }
}

TEST_CASE("linear: no features in, none out") {
  for (const auto& [in, out] : {std::pair{0, 3}, std::pair{3, 0}, std::pair{0, 0}}) {
    const Tensor x = randn64({2, in}), weight = randn64({out, in}), bias = randn64({out});
    expect_gradients(call, Tensors{x, weight, bias}, {.allow_vacuous = true});
    expect_gradients(call, Tensors{x, weight}, {.allow_vacuous = true});
  }
  expect_close(linear(ones({2, 0}), ones({3, 0}), Tensor::of({1, 2, 3})), {1, 2, 3, 1, 2, 3});
  expect_close(linear(ones({2, 0}), ones({3, 0})), std::vector<double>(6, 0));
}

TEST_CASE("linear: what is frozen, strided, used twice") {
  const Tensor x = randn64({3, 4}), weight = randn64({4, 4}, 1), bias = randn64({4}, 2);
  expect_gradients(call, Tensors{x, weight.detach(), bias.detach()});
  expect_gradients(call, Tensors{x.detach(), weight, bias.detach()});
  expect_gradients(call, Tensors{x.detach(), weight.detach(), bias});
  expect_gradients(call, Tensors{strided(x), strided(weight), strided(bias)});
  expect_close(linear(strided(x), strided(weight), strided(bias)), linear(x, weight, bias));
  expect_gradients([](const Tensors& in) { return linear(linear(in[0], in[1], in[2]), in[1], in[2]); },
                   Tensors{x, weight, bias});
  expect_gradients([](const Tensors& in) { return linear(in[0], in[0], in[1]); }, Tensors{weight, bias});
}

TEST_CASE("linear: values, and the gradients of all rows add up") {
  const Tensor x = Tensor::of({1, 2, 3, 4}, {2, 2}, {.dtype = float64, .requires_grad = true});
  const Tensor weight = Tensor::of({1, 0, 2, -1, 0, 3}, {3, 2}, {.dtype = float64, .requires_grad = true});
  const Tensor bias = Tensor::of({10, 20, 30}, {.dtype = float64, .requires_grad = true});
  const Tensor y = linear(x, weight, bias);
  expect_close(y, {11, 20, 36, 13, 22, 42});
  expect_gradient(y, x, {3, 2, 3, 2});
  expect_gradient(y, weight, {4, 6, 4, 6, 4, 6});
  expect_gradient(y, bias, {2, 2, 2});
}

TEST_CASE("linear: float32 is close to float64, the twin in ops too") {
  const Tensor x = to(randn64({9, 33}).detach(), float32).requires_grad_();
  const Tensor weight = to(randn64({17, 33}, 1).detach(), float32).requires_grad_();
  const Tensor bias = to(randn64({17}, 2).detach(), float32).requires_grad_();
  const Tensor dy = to(randn64({9, 17}, 3).detach(), float32);
  const auto double_of = [](const Tensor& t) { return to(t.detach(), float64).requires_grad_(); };
  const Tensors inputs{x, weight, bias}, inputs64{double_of(x), double_of(weight), double_of(bias)};
  const Tensor twin = matmul(inputs64[0], transpose(inputs64[1], 0, 1)) + inputs64[2];
  expect_close(call(inputs), twin, 1e-5);
  const Tensors d = grad({call(inputs)}, inputs, {dy}), d64 = grad({twin}, inputs64, {to(dy, float64)});
  for (std::size_t i = 0; i < 3; ++i) expect_close(d[i], d64[i], 1e-5);
}

TEST_CASE("linear: refusals") {
  const Tensor weight = ones({5, 4});
  expect_error([&] { linear(ones({2, 3}), weight); }, {"linear", "[2, 3]", "[5, 4]", "[..., 4]"});
  expect_error([&] { linear(Tensor::scalar(1), weight); }, {"linear", "[]", "[5, 4]"});
  expect_error([&] { linear(ones({2, 4}), weight, ones({4})); }, {"linear", "[4]", "[5]"});
  expect_error([&] { linear(ones({4}), ones({4})); }, {"linear", "[out, in]", "[4]"});
  expect_error([&] { linear(ones({2, 4}, float64), weight); }, {"linear", "float64", "float32"});
  expect_error([&] { linear(ones({2, 4}), weight, ones({5}, float64)); }, {"linear", "float64", "float32"});
  expect_error([&] { linear(ones({2, 4}, int64), ones({5, 4}, int64)); }, {"linear", "int64"});
  expect_error([&] { linear(ones({2, 4}), Tensor()); }, {"linear", "undefined"});
}

}  // namespace
}  // namespace prenorm
