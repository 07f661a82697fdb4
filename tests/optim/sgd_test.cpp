#include "optim/sgd.h"

#include <vector>

#include "autograd/ops.h"
#include "support.h"

namespace prenorm::optim {
namespace {

using Doubles = std::vector<double>;

// The weight after each step from 1, with these gradients.
Doubles steps(const SGDOptions& options, const Doubles& gradients) {
  const Tensor w = ones({21}, float64).requires_grad_();
  SGD sgd({{"w", w}}, options);
  Doubles after;
  for (double g : gradients) {
    w.set_grad(full_like(w, g));
    sgd.step();
    after.push_back(w.to_vector().front());
    CHECK(w.to_vector() == Doubles(21, after.back()));
  }
  return after;
}
void expect_values(const Doubles& actual, const Doubles& expected) {
  expect_close(Tensor::of(actual, {static_cast<std::int64_t>(actual.size())}, {.dtype = float64}), expected);
}

TEST_CASE("plain descent subtracts lr * g") { expect_values(steps({.lr = 0.1}, {1, -2, 3}), {0.9, 1.1, 0.8}); }

TEST_CASE("weight decay adds lambda * w to the gradient") {
  // 1 - 0.1 (1 + 0.5), 0.85 - 0.1 (0 + 0.425)
  expect_values(steps({.lr = 0.1, .weight_decay = 0.5}, {1, 0}), {0.85, 0.8075});
}

TEST_CASE("momentum adds up gradients, the first one whole") {
  // m = 1, 0.5 + 2, 1.25 - 1
  expect_values(steps({.lr = 0.1, .momentum = 0.5}, {1, 2, -1}), {0.9, 0.65, 0.625});
}

TEST_CASE("dampening takes a part of each gradient but the first") {
  // m = 1, 0.5 + 0.75 * 2, 1 - 0.75
  expect_values(steps({.lr = 0.1, .momentum = 0.5, .dampening = 0.25}, {1, 2, -1}), {0.9, 0.7, 0.675});
}

TEST_CASE("nesterov looks a step ahead: g + momentum * m") {
  // m = 1, 2.5; u = 1 + 0.5, 2 + 1.25
  expect_values(steps({.lr = 0.1, .momentum = 0.5, .nesterov = true}, {1, 2}), {0.85, 0.525});
}

TEST_CASE("weight decay goes through momentum") {
  // g = 1 + 0.5, m = 1.5, w = 0.85; g = 0.425, m = 1.175
  expect_values(steps({.lr = 0.1, .momentum = 0.5, .weight_decay = 0.5}, {1, 0}), {0.85, 0.7325});
}

TEST_CASE("float32 weights are updated in float32") {
  const Tensor w = Tensor::of({1, 2}, {.requires_grad = true});
  SGD sgd({{"w", w}}, {.lr = 0.1});
  w.set_grad(ones({2}));
  sgd.step();
  CHECK(w.data<float>()[0] == 1.0F - 0.1F);
  CHECK(w.dtype() == float32);
}

TEST_CASE("options that make no sense are errors") {
  const Tensor w = ones({1}).requires_grad_();
  expect_error([&] { SGD({{"w", w}}, {.momentum = -1}); }, {"SGD", "momentum is not negative", "-1"});
  expect_error([&] { SGD({{"w", w}}, {.nesterov = true}); }, {"nesterov needs momentum and no dampening"});
  expect_error([&] { SGD({{"w", w}}, {.momentum = 0.9, .dampening = 0.1, .nesterov = true}); }, "nesterov");
}

}  // namespace
}  // namespace prenorm::optim
