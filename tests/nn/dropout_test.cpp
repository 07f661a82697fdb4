#include "nn/dropout.h"

#include <algorithm>
#include <vector>

#include "autograd/random.h"
#include "support.h"

namespace prenorm::nn {
namespace {

using Doubles = std::vector<double>;

Doubles generator_state() { return default_generator().state().to_vector(); }

TEST_CASE("in training each element is dropped with probability p or enlarged by 1 / (1 - p)") {
  manual_seed(0);
  const Dropout dropout(0.1);
  const Tensor y = dropout(ones({1000, 1000}));
  CHECK(mean(y).item() == doctest::Approx(1).epsilon(0.002));
  const Doubles values = y.to_vector();
  const auto dropped = std::count(values.begin(), values.end(), 0.0);
  CHECK(static_cast<double>(dropped) / 1e6 == doctest::Approx(0.1).epsilon(0.02));
  const double kept = static_cast<double>(1.0F / 0.9F);
  CHECK(std::all_of(values.begin(), values.end(),
                    [kept](double v) { return v == 0 || v == doctest::Approx(kept).epsilon(1e-6); }));
}

TEST_CASE("the mask follows from the generator, and goes back the way it came") {
  const Dropout dropout(0.5);
  Tensor x = randn({4, 5}).requires_grad_();
  manual_seed(7);
  const Tensor y = dropout(x);
  manual_seed(7);
  const Tensor mask = to(dropout_mask({4, 5}, 0.5), float32);
  CHECK(y.to_vector() == (x.detach() * mask * 2).to_vector());
  y.backward(ones({4, 5}));
  CHECK(x.grad().to_vector() == (mask * 2).to_vector());
  CHECK(dropout(x).to_vector() != y.to_vector());
}

TEST_CASE("in evaluation, and at p = 0, x itself comes out and nothing is drawn") {
  const Doubles before = generator_state();
  const Tensor x = ones({2, 3});
  const Dropout dropout(0.5), none(0);
  dropout.eval();
  CHECK(dropout(x).is(x));
  CHECK(none(x).is(x));
  CHECK(generator_state() == before);
  dropout.train();
  dropout(x);
  CHECK(generator_state() != before);
}

TEST_CASE("at p = 1 all is zero, gradients too") {
  const Dropout dropout(1);
  Tensor x = randn({2, 3}).requires_grad_();
  const Tensor y = dropout(x);
  CHECK(y.to_vector() == Doubles(6, 0.0));
  y.backward(ones({2, 3}));
  CHECK(x.grad().to_vector() == Doubles(6, 0.0));
}

TEST_CASE("a probability is between 0 and 1") {
  CHECK(Dropout().options().p == 0.5);
  expect_error([] { Dropout(1.5); }, {"Dropout", "[0, 1]", "1.5"});
  expect_error([] { Dropout(-0.1); }, "-0.1");
  expect_error([] { Dropout(std::nan("")); }, "nan");
}

}  // namespace
}  // namespace prenorm::nn
