#include "nn/linear.h"

#include <vector>

#include "autograd/random.h"
#include "nn/gradcheck.h"
#include "nn/init.h"
#include "support.h"

namespace prenorm::nn {
namespace {

using Doubles = std::vector<double>;

TEST_CASE("a linear layer computes x W^T + b over any leading dimensions") {
  const Linear linear(2, 3);
  linear.load_state_dict({{"weight", Tensor::of({1, 2, 3, 4, 5, 6}, {3, 2})}, {"bias", Tensor::of({10, 20, 30})}});
  CHECK(linear(Tensor::of({1, -1})).to_vector() == Doubles{9, 19, 29});
  CHECK(linear(Tensor::of({1, 0, 0, 1}, {2, 2})).to_vector() == Doubles{11, 23, 35, 12, 24, 36});
  CHECK(linear(zeros({4, 1, 5, 2})).shape() == Shape{4, 1, 5, 3});
  CHECK(linear(zeros({0, 2})).shape() == Shape{0, 3});
}

TEST_CASE("without a bias there is none to train") {
  const Linear linear(2, 1, {.bias = false});
  CHECK(linear.parameters().size() == 1);
  CHECK_FALSE(linear.bias().defined());
  linear.load_state_dict({{"weight", Tensor::of({3, 4}, {1, 2})}});
  CHECK(linear(ones({2})).to_vector() == Doubles{7});
}

TEST_CASE("weight and bias are drawn in this order") {
  manual_seed(3);
  const Linear linear(4, 3);
  manual_seed(3);
  CHECK(linear.weight().to_vector() == linear_uniform({3, 4}, 4).to_vector());
  CHECK(linear.bias().to_vector() == linear_uniform({3}, 4).to_vector());
  CHECK(linear.parameters()[0].path == "weight");
  CHECK(linear.parameters()[1].path == "bias");
}

TEST_CASE("sizes that do not fit are errors") {
  expect_error([] { Linear(-1, 2); }, {"Linear", "not negative", "-1 and 2"});
  const Linear linear(2, 3);
  expect_error([&] { linear(zeros({4, 3})); }, {"linear", "[4, 3]", "[3, 2]"});
  expect_error([&] { linear(zeros({})); }, {"linear", "[]"});
  expect_error([&] { linear(zeros({4, 2}, float64)); }, {"linear", "float32", "float64"});
}

TEST_CASE("differences agree with and without a bias") {
  for (const bool bias : {true, false}) {
    for (const Shape& shape : {Shape{2, 3, 4}, Shape{4}}) {
      const GradcheckReport report = gradcheck(Linear(4, 3, {.bias = bias}), {randn64(shape)});
      CHECK_MESSAGE(report.passed, report.message);
    }
  }
}

}  // namespace
}  // namespace prenorm::nn
