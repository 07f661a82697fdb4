#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

// The indices that Python's range over [start:end:step] of n elements gives.
std::vector<std::int64_t> places(std::int64_t n, std::int64_t start, std::int64_t end, std::int64_t step) {
  start = std::clamp<std::int64_t>(start < 0 ? start + n : start, 0, n);
  end = std::clamp<std::int64_t>(end < 0 ? end + n : end, 0, n);
  std::vector<std::int64_t> indices;
  for (std::int64_t i = start; i < end; i += step) indices.push_back(i);
  return indices;
}

TEST_CASE("slice: what is taken, and where its gradient goes") {
  for (std::int64_t n : {0, 1, 5}) {
    const Tensor x = randn64({n});
    for (std::int64_t start : {-9, -2, 0, 1, 3, 9}) {
      for (std::int64_t end : {-9, -1, 0, 2, 4, 9}) {
        for (std::int64_t step : {1, 2, 7}) {
          const std::vector<std::int64_t> taken = places(n, start, end, step);
          const Tensor y = slice(x, 0, start, end, step);
          std::vector<double> values, gradient(static_cast<std::size_t>(n), 0);
          for (std::int64_t i : taken) {
            values.push_back(x.to_vector()[static_cast<std::size_t>(i)]);
            gradient[static_cast<std::size_t>(i)] = 1;
          }
          CHECK(y.to_vector() == values);
          CHECK(y.storage() == x.storage());
          expect_gradient(y, x, gradient, 0);
        }
      }
    }
  }
}

TEST_CASE("slice: gradients along every dimension and in every layout") {
  for (std::int64_t dim : {0, 1, 2, -1}) {
    const auto f = [dim](const Tensors& in) { return slice(in[0], dim, 1, 3); };
    expect_gradients(f, Tensors{randn64({3, 3, 4})});
    expect_gradients(f, Tensors{strided(randn64({3, 3, 4}))});
    expect_gradients([dim](const Tensors& in) { return slice(in[0], dim, 0, 4, 2); }, Tensors{randn64({3, 3, 4})});
  }
  expect_gradients([](const Tensors& in) { return slice(in[0], 0, 1, 1); }, Tensors{randn64({3, 2})},
                   {.allow_vacuous = true});
  // Overlapping slices of one tensor, and slices of slices.
  expect_gradients(
      [](const Tensors& in) { return slice(in[0], 0, 0, 3) * slice(in[0], 0, 1, 4) + slice(in[0], 0, 0, 1); },
      Tensors{randn64({4, 2})});
  expect_gradients([](const Tensors& in) { return slice(slice(in[0], 0, 1, 6, 2), 0, 1, 3); }, Tensors{randn64({6})});
}

TEST_CASE("slice: int64, bool, nothing cut off") {
  const Tensor x = Tensor::of({1, 2, 3, 4}, {2, 2}, {.dtype = int64});
  expect_close(slice(x, 1, 1, 2), {2, 4});
  expect_close(slice(to(x, boolean), 0, 0, 1), {1, 1});
  CHECK(slice(x, 0, 0, 2).is(x));
  CHECK(slice(x, 1, -100, 100).is(x));
}

TEST_CASE("select: one element along a dimension, which vanishes") {
  const Tensor x = randn64({2, 3});
  expect_close(select(x, 0, 1), slice(x, 0, 1, 2).to_vector(), 0);
  CHECK(select(x, 0, -1).shape() == Shape{3});
  CHECK(select(x, -1, 0).shape() == Shape{2});
  CHECK(select(select(x, 0, 1), 0, 2).item() == x.to_vector()[5]);
  for (std::int64_t dim : {0, 1}) {
    expect_gradients([dim](const Tensors& in) { return select(in[0], dim, -1) * select(in[0], dim, 0); }, Tensors{x});
  }
}

TEST_CASE("slice and select: refusals") {
  const Tensor x = ones({2, 3});
  expect_error([&] { slice(x, 2, 0, 1); }, {"slice", "dimension 2"});
  for (std::int64_t step : {0, -1}) expect_error([&] { slice(x, 0, 0, 1, step); }, {"slice", "step"});
  expect_error([] { slice(Tensor::scalar(1), 0, 0, 1); }, {"slice", "scalar"});
  for (std::int64_t index : {3, -4}) {
    expect_error([&] { select(x, 1, index); }, {"select", std::to_string(index), "[2, 3]"});
  }
  expect_error([] { select(Tensor::scalar(1), 0, 0); }, {"select", "scalar"});
}

}  // namespace
}  // namespace prenorm
