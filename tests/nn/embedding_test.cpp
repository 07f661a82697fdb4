#include "nn/embedding.h"

#include <vector>

#include "autograd/random.h"
#include "support.h"

namespace prenorm::nn {
namespace {

using Doubles = std::vector<double>;

Tensor ids(const std::vector<std::int64_t>& values, const Shape& shape) {
  return Tensor::of(values, shape, {.dtype = int64});
}

TEST_CASE("an embedding gives the row of each id, for ids of any shape") {
  const Embedding table(3, 2);
  table.load_state_dict({{"weight", Tensor::of({0, 1, 10, 11, 20, 21}, {3, 2})}});
  CHECK(table(ids({2, 0}, {2})).to_vector() == Doubles{20, 21, 0, 1});
  CHECK(table(ids({1}, {})).shape() == Shape{2});
  CHECK(table(ids({1, 1, 1, 1, 1, 1}, {3, 1, 2})).shape() == Shape{3, 1, 2, 2});
  CHECK(table(ids({}, {0, 4})).shape() == Shape{0, 4, 2});
}

TEST_CASE("a row collects the gradients of all its uses") {
  const Embedding table(4, 2);
  sum(table(ids({0, 0, 0, 2}, {4}))).backward();
  CHECK(table.weight().grad().to_vector() == Doubles{3, 3, 0, 0, 1, 1, 0, 0});
}

TEST_CASE("weights are standard normals, drawn at once") {
  manual_seed(4);
  const Embedding table(30, 20);
  manual_seed(4);
  CHECK(table.weight().to_vector() == randn({30, 20}).to_vector());
  CHECK(table.parameters().size() == 1);
  CHECK(table.parameters()[0].path == "weight");
}

TEST_CASE("ids outside the table, or of another dtype, are errors") {
  const Embedding table(3, 2);
  expect_error([&] { table(ids({0, 3}, {2})); }, {"embedding", "3"});
  expect_error([&] { table(ids({-1}, {1})); }, {"embedding", "-1"});
  expect_error([&] { table(zeros({2})); }, {"embedding", "int64", "float32"});
  expect_error([] { Embedding(-1, 2); }, {"Embedding", "not negative", "-1 and 2"});
}

TEST_CASE("differences agree, with ids repeated") {
  const Tensor which = ids({1, 0, 1, 3}, {2, 2});
  expect_gradients([&](const Tensors& in) { return embedding(which, in[0]); }, Tensors{randn64({4, 3})});
}

}  // namespace
}  // namespace prenorm::nn
