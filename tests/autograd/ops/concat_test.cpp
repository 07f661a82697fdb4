#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("concat: gradients along every dimension, empty parts too") {
  for (std::int64_t dim : {0, 1, -1}) {
    const auto f = [dim](const Tensors& in) { return concat(in, dim); };
    Tensors parts;
    for (std::int64_t size : {2, 0, 1, 3}) {
      Shape shape{2, 3, 2};
      shape[dim < 0 ? dim + 3 : dim] = size;
      parts.push_back(randn64(shape, static_cast<std::uint64_t>(size)));
    }
    expect_gradients(f, parts);
    expect_gradients(f, Tensors{strided(parts[0]), parts[2].detach(), parts[3]});
    const Tensor y = f(parts);
    std::int64_t begin = 0;
    for (const Tensor& part : parts) {
      const std::int64_t n = part.size(dim);
      expect_close(slice(y, dim, begin, begin + n), part, 0);
      begin += n;
    }
    CHECK(y.size(dim) == begin);
  }
  expect_gradients([](const Tensors& in) { return concat(in, 0); }, Tensors{randn64({0}), randn64({0})},
                   {.allow_vacuous = true});
}

TEST_CASE("concat: one part, one tensor several times") {
  const Tensor x = randn64({2, 3});
  expect_gradients([](const Tensors& in) { return concat(in, 1); }, Tensors{x});
  expect_gradients([](const Tensors& in) { return concat({in[0], in[0] * in[0], in[0]}, 0); }, Tensors{x});
  expect_gradient(concat({x, x}), x, std::vector<double>(6, 2));
}

TEST_CASE("concat: the result is a copy, also of a single part") {
  const Tensor x = ones({2});
  const Tensor y = concat({x});
  fill_(x, 5);
  expect_close(y, {1, 1});
}

TEST_CASE("concat: more parts than bits in a word") {
  Tensors parts;
  for (int i = 0; i < 100; ++i) parts.push_back(randn64({1, 2}, static_cast<std::uint64_t>(i)));
  const Tensor y = concat(parts, 0);
  CHECK(y.shape() == Shape{100, 2});
  const Tensor weights = reshape(arange(0, 200, 1, float64), {100, 2});
  const Tensors dx = grad({y * weights}, parts, {ones({100, 2}, float64)});
  for (std::size_t i = 0; i < 100; ++i) {
    expect_close(dx[i], {2.0 * static_cast<double>(i), 2.0 * static_cast<double>(i) + 1});
  }
}

TEST_CASE("concat: int64 and bool") {
  expect_close(concat({arange(2), arange(3)}), {0, 1, 0, 1, 2});
  CHECK(concat({ones({1}, boolean), zeros({1}, boolean)}).dtype() == boolean);
}

TEST_CASE("concat: refusals") {
  const Tensor x = ones({2, 3});
  expect_error([] { concat({}); }, {"concat", "at least one"});
  expect_error([&] { concat({x, ones({2, 4})}, 0); }, {"concat", "[2, 3]", "[2, 4]"});
  expect_error([&] { concat({x, ones({3})}, 0); }, {"concat", "[2, 3]", "[3]"});
  expect_error([&] { concat({x, ones({2, 3}, float64)}); }, {"concat", "float32", "float64"});
  expect_error([&] { concat({x}, 2); }, {"concat", "dimension 2"});
  expect_error([] { concat({Tensor::scalar(1)}); }, {"concat", "scalar"});
  expect_error([&] { concat({x, Tensor()}); }, {"concat", "undefined"});
}

}  // namespace
}  // namespace prenorm
