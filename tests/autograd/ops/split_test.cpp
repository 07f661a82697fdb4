#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("split: parts of x, views, and back together") {
  const Tensor x = randn64({2, 6, 3});
  for (const std::vector<std::int64_t>& sizes :
       std::vector<std::vector<std::int64_t>>{{6}, {1, 2, 3}, {0, 6}, {3, 3}}) {
    for (std::int64_t dim : {1, -2}) {
      const Tensors parts = split(x, sizes, dim);
      REQUIRE(parts.size() == sizes.size());
      for (std::size_t i = 0; i < parts.size(); ++i) {
        CHECK(parts[i].size(1) == sizes[i]);
        CHECK(parts[i].storage() == x.storage());
      }
      expect_close(concat(parts, dim), x, 0);
      expect_gradients([&](const Tensors& in) { return split(in[0], sizes, dim); }, Tensors{x});
    }
  }
  expect_gradients([](const Tensors& in) { return split(in[0], {1, 2}, 0); }, Tensors{strided(randn64({3, 2}))});
}

TEST_CASE("split: only the parts that were used send a gradient back") {
  const Tensor x = randn64({4});
  const Tensors parts = split(x, {1, 2, 1});
  expect_gradient(parts[1] * 3, x, {0, 3, 3, 0});
  expect_gradient(concat({parts[0], parts[0], parts[2]}), x, {2, 0, 0, 1});
}

TEST_CASE("chunk: equal parts, the last one shorter, maybe fewer than asked for") {
  const auto sizes = [](std::int64_t n, std::int64_t chunks) {
    std::vector<std::int64_t> result;
    for (const Tensor& part : chunk(zeros({n}), chunks)) result.push_back(part.numel());
    return result;
  };
  using Sizes = std::vector<std::int64_t>;
  CHECK(sizes(6, 3) == Sizes{2, 2, 2});
  CHECK(sizes(7, 3) == Sizes{3, 3, 1});
  CHECK(sizes(5, 4) == Sizes{2, 2, 1});
  CHECK(sizes(2, 5) == Sizes{1, 1});
  CHECK(sizes(0, 3) == Sizes{0, 0, 0});
  CHECK(sizes(4, 1) == Sizes{4});
  const Tensor x = randn64({2, 6});
  expect_gradients(
      [](const Tensors& in) {
        const Tensors qkv = chunk(in[0], 3, -1);
        return qkv[0] * qkv[1] + qkv[2];
      },
      Tensors{x});
}

TEST_CASE("split and chunk: refusals") {
  const Tensor x = ones({2, 3});
  expect_error([&] { split(x, {1, 1}, 1); }, {"split", "2", "3", "[2, 3]"});
  expect_error([&] { split(x, {4, -1}, 1); }, {"split", "negative"});
  expect_error([&] { split(x, {1}, 2); }, {"split", "dimension 2"});
  expect_error([] { split(Tensor::scalar(1), {1}); }, {"split", "scalar"});
  for (std::int64_t chunks : {0, -1}) expect_error([&] { chunk(x, chunks); }, {"chunk", "at least one"});
  expect_error([] { chunk(Tensor::scalar(1), 1); }, {"chunk", "scalar"});
}

}  // namespace
}  // namespace prenorm
