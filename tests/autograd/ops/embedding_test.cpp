#include "autograd/ops/op_checks.h"
#include "autograd/parallel.h"

namespace prenorm {
namespace {

Tensor ids(const std::vector<std::int64_t>& values, const Shape& shape) {
  return Tensor::of(values, shape, {.dtype = int64});
}

TEST_CASE("embedding: gradients for ids of all shapes, repeated ones too") {
  const Tensor weight = randn64({5, 3});
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{4}, Shape{2, 3}, Shape{2, 1, 2}, Shape{0}, Shape{2, 0}}) {
    const Tensor which = mod(reshape(arange(static_cast<double>(numel(shape))), shape), 3);  // 3 and 4 are not used
    const auto f = [&](const Tensors& in) { return embedding(which, in[0]); };
    Shape with_features = shape;
    with_features.push_back(3);
    CHECK(f({weight}).shape() == with_features);
    expect_gradients(f, Tensors{weight}, {.allow_vacuous = numel(shape) == 0});
    expect_gradients(f, Tensors{strided(weight)}, {.allow_vacuous = numel(shape) == 0});
    // Not linear in the weight, so that second derivatives are not all zero.
    expect_gradients([&](const Tensors& in) { return f(in) * f(in); }, Tensors{weight},
                     {.allow_vacuous = numel(shape) == 0});
  }
}

TEST_CASE("embedding: values; the gradients of repeated ids add up, unused rows have 0") {
  const Tensor weight = Tensor::of({1, 2, 3, 4, 5, 6}, {3, 2}, {.dtype = float64, .requires_grad = true});
  expect_close(embedding(ids({2, 0, 2}, {3}), weight), {5, 6, 1, 2, 5, 6});
  expect_gradient(embedding(ids({0, 0, 0}, {3}), weight), weight, {3, 3, 0, 0, 0, 0});
  expect_gradient(embedding(ids({2, 0, 2}, {3}), weight), weight, {1, 1, 0, 0, 2, 2});
  const Tensor which = select(ids({2, 9, 0, 9}, {2, 2}), 1, 0);  // every second element
  expect_close(embedding(which, weight), {5, 6, 1, 2});
}

TEST_CASE("embedding: the weight may be used elsewhere too") {
  const Tensor weight = randn64({4, 3});
  const Tensor which = ids({1, 3, 1}, {3});
  expect_gradients([&](const Tensors& in) { return linear(embedding(which, in[0]), in[0]); }, Tensors{weight});
  const auto add_up = [&](const Tensor& y) { y.backward(ones_like(y)); };
  add_up(embedding(which, weight));
  add_up(embedding(which, weight));
  expect_close(weight.grad(), {0, 0, 0, 4, 4, 4, 0, 0, 0, 2, 2, 2});
}

TEST_CASE("embedding: no rows, no features") {
  CHECK(embedding(zeros({0}, int64), ones({0, 3})).shape() == Shape{0, 3});
  const Tensor weight = zeros({3, 0}, float64).requires_grad_();
  CHECK(embedding(ids({2, 1}, {2}), weight).shape() == Shape{2, 0});
  expect_gradients(
      [](const Tensors& in) {
        return embedding(ids({2, 1}, {2}), in[0]);
      },
      Tensors{weight}, {.allow_vacuous = true});
}

TEST_CASE("embedding: the same bits each time and with any number of threads; float32 is close to float64") {
  const std::int64_t R = 3000, V = 17, D = 40;
  const Tensor weight = to(randn64({V, D}).detach(), float32).requires_grad_();
  const Tensor weight64 = to(weight.detach(), float64).requires_grad_();
  const Tensor which = mod(arange(R) * arange(R), V), dy = to(randn64({R, D}, 1).detach(), float32);
  const auto dw = [&] { return grad({embedding(which, weight)}, {weight}, {dy})[0]; };
  const Tensor first = dw();
  expect_close(first, grad({embedding(which, weight64)}, {weight64}, {to(dy, float64)})[0], 1e-4);
  const int before = num_threads();
  for (int threads : {1, 2, 3}) {
    set_num_threads(threads);
    expect_close(dw(), first, 0);
  }
  set_num_threads(before);
}

TEST_CASE("embedding: refusals") {
  const Tensor weight = ones({5, 2});
  expect_error([&] { embedding(ids({0, 1, 2, 5}, {2, 2}), weight); }, {"embedding", "id 5", "[1, 1]", "[0, 5)"});
  expect_error([&] { embedding(ids({0, -1}, {2}), weight); }, {"embedding", "id -1", "[1]", "[0, 5)"});
  expect_error([&] { embedding(ids({0}, {1}), ones({0, 2})); }, {"embedding", "id 0", "[0, 0)"});
  expect_error([&] { embedding(ones({2}), weight); }, {"embedding", "int64", "float32"});
  expect_error([&] { embedding(ids({0}, {1}), ones({5})); }, {"embedding", "[V, D]", "[5]"});
  expect_error([&] { embedding(ids({0}, {1}), ones({5, 2}, int64)); }, {"embedding", "int64"});
  expect_error([&] { embedding(Tensor(), weight); }, {"embedding", "undefined"});
  expect_error([&] { embedding(ids({0}, {1}), Tensor()); }, {"embedding", "undefined"});
}

}  // namespace
}  // namespace prenorm
