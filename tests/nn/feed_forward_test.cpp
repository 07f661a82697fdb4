#include "nn/feed_forward.h"

#include <string>
#include <vector>

#include "autograd/random.h"
#include "nn/gradcheck.h"
#include "nn/init.h"
#include "nn/linear.h"
#include "support.h"

namespace prenorm::nn {
namespace {

using Doubles = std::vector<double>;

TEST_CASE("a feed-forward is w2(gelu(w1(x)))") {
  const FeedForward layer(3, 2);
  const auto w1 = layer.at("w1").as<Linear>(), w2 = layer.at("w2").as<Linear>();
  CHECK(w1.weight().shape() == Shape{6, 3});
  CHECK(w2.weight().shape() == Shape{3, 6});
  const Tensor x = randn({2, 4, 3});
  const Tensor hidden = gelu(matmul(x, transpose(w1.weight(), 0, 1)) + w1.bias());
  expect_close(layer(x), matmul(hidden, transpose(w2.weight(), 0, 1)) + w2.bias(), 1e-6);
  CHECK(FeedForward(3).at("w1").as<Linear>().weight().shape() == Shape{12, 3});
}

TEST_CASE("it works on each position alone") {
  const FeedForward layer(4);
  const Tensor x = randn({1, 3, 4}), other = clone(x);
  fill_(select(other, 1, 1), 100);
  const Tensor y = layer(x), z = layer(other);
  for (const std::int64_t t : {0, 2}) CHECK(select(y, 1, t).to_vector() == select(z, 1, t).to_vector());
  CHECK(select(y, 1, 1).to_vector() != select(z, 1, 1).to_vector());
}

TEST_CASE("w1 is drawn before w2") {
  manual_seed(5);
  const FeedForward layer(2, 3);
  manual_seed(5);
  for (const auto& [path, parameter] : layer.parameters()) {
    CHECK(parameter.to_vector() == linear_uniform(parameter.shape(), path.starts_with("w1") ? 2 : 6).to_vector());
  }
}

TEST_CASE("sizes are at least 1") {
  expect_error([] { FeedForward(0); }, {"FeedForward", "d_model 0", "at least 1"});
  expect_error([] { FeedForward(3, 0); }, {"expansion 0"});
}

TEST_CASE("differences agree for a feed-forward") {
  const GradcheckReport report = gradcheck(FeedForward(3, 2), {randn64({2, 2, 3})});
  CHECK_MESSAGE(report.passed, report.message);
}

}  // namespace
}  // namespace prenorm::nn
