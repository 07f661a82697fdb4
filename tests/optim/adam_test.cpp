#include "optim/adam.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/ops.h"
#include "autograd/random.h"
#include "support.h"

namespace prenorm::optim {
namespace {

using Doubles = std::vector<double>;

const Doubles kGradients = {1, -2, 0.5, 0.1};

// The paper's algorithm for one number.
struct ByHand {
  AdamOptions options;
  bool decoupled = false;
  double w = 1, m = 0, v = 0, largest = 0;
  int t = 0;

  void step(double g) {
    ++t;
    if (decoupled) w *= 1 - options.lr * options.weight_decay;
    if (!decoupled) g += options.weight_decay * w;
    m = options.beta1 * m + (1 - options.beta1) * g;
    v = options.beta2 * v + (1 - options.beta2) * g * g;
    largest = std::max(largest, v);
    const double m_hat = m / (1 - std::pow(options.beta1, t));
    const double v_hat = (options.amsgrad ? largest : v) / (1 - std::pow(options.beta2, t));
    w -= options.lr * m_hat / (std::sqrt(v_hat) + options.eps);
  }
};

void expect_steps(Optimizer& optimizer, const Tensor& w, ByHand by_hand) {
  for (double g : kGradients) {
    w.set_grad(full_like(w, g));
    optimizer.step();
    by_hand.step(g);
    CHECK(w.to_vector().front() == doctest::Approx(by_hand.w).epsilon(1e-13));
    CHECK(w.to_vector().back() == w.to_vector().front());
  }
}
Tensor weight(std::int64_t n = 1) { return ones({n}, float64).requires_grad_(); }

TEST_CASE("Adam follows the paper's algorithm") {
  for (const double weight_decay : {0.0, 0.3}) {
    for (const bool amsgrad : {false, true}) {
      const AdamOptions options{
          .lr = 0.1, .beta1 = 0.8, .beta2 = 0.6, .weight_decay = weight_decay, .amsgrad = amsgrad};
      const Tensor w = weight(37);
      Adam adam({{"w", w}}, options);
      expect_steps(adam, w, {options});
    }
  }
}

TEST_CASE("AdamW shrinks the weights instead of adding to the gradient") {
  for (const bool amsgrad : {false, true}) {
    const Tensor w = weight();
    AdamW adamw({{"w", w}}, {.lr = 0.1, .beta1 = 0.8, .beta2 = 0.6, .weight_decay = 0.3, .amsgrad = amsgrad});
    expect_steps(adamw, w, {{.lr = 0.1, .beta1 = 0.8, .beta2 = 0.6, .weight_decay = 0.3, .amsgrad = amsgrad}, true});
  }
}

TEST_CASE("amsgrad remembers the largest second moment: the step stays small after a large gradient") {
  const Tensor plain = weight(), ams = weight();
  Adam a({{"w", plain}}, {.lr = 0.1, .beta1 = 0, .beta2 = 0.5}),
      b({{"w", ams}}, {.lr = 0.1, .beta1 = 0, .beta2 = 0.5, .amsgrad = true});
  for (double g : {100.0, 1.0, 1.0, 1.0}) {
    for (const Tensor& w : {plain, ams}) w.set_grad(full_like(w, g));
    a.step();
    b.step();
  }
  CHECK(ams.item() > plain.item());
}

TEST_CASE("the defaults are PyTorch's") {
  CHECK(AdamOptions{}.lr == 1e-3);
  CHECK(AdamOptions{}.beta1 == 0.9);
  CHECK(AdamOptions{}.beta2 == 0.999);
  CHECK(AdamOptions{}.eps == 1e-8);
  CHECK(AdamOptions{}.weight_decay == 0);
  CHECK(AdamWOptions{}.weight_decay == 0.01);
}

TEST_CASE("eps stands beside the corrected root: with g = 1 and eps = 1 the first step is lr / 2") {
  for (const double beta2 : {0.999, 0.5}) {
    const Tensor w = weight();
    Adam adam({{"w", w}}, {.lr = 0.1, .beta2 = beta2, .eps = 1});
    w.set_grad(ones({1}, float64));
    adam.step();
    CHECK(1 - w.item() == doctest::Approx(0.05).epsilon(1e-12));
  }
}

TEST_CASE("a zero gradient leaves Adam's weight and shrinks AdamW's to w (1 - lr lambda)") {
  const Tensor a = weight(), b = weight();
  Adam adam({{"w", a}}, {.lr = 0.1});
  AdamW adamw({{"w", b}}, {.lr = 0.1, .weight_decay = 0.5});
  for (const Tensor& w : {a, b}) w.set_grad(zeros({1}, float64));
  adam.step();
  adamw.step();
  CHECK(a.item() == 1);
  CHECK(b.item() == 0.95);
}

TEST_CASE("each element is updated alone: its place in a large tensor does not matter") {
  const std::int64_t n = 200'003;  // several blocks, and a tail of no vector's length
  manual_seed(1);
  const Tensor start = randn({n});
  Tensor large = clone(start).requires_grad_();
  Adam adam({{"w", large}});
  const Tensor g = randn({n});
  for (int step = 0; step < 2; ++step) {
    large.set_grad(g);
    adam.step();
  }
  const Doubles result = large.to_vector();
  for (const std::int64_t i : {std::int64_t{0}, std::int64_t{5}, std::int64_t{65'536}, n - 2, n - 1}) {
    const Tensor one = clone(slice(start, 0, i, i + 1)).requires_grad_();
    Adam alone({{"w", one}});
    for (int step = 0; step < 2; ++step) {
      one.set_grad(slice(g, 0, i, i + 1));
      alone.step();
    }
    CHECK(one.item() == doctest::Approx(result[static_cast<std::size_t>(i)]).epsilon(1e-6));
  }
}

TEST_CASE("groups bring their own weight decay") {
  const Tensor a = weight(), b = weight();
  AdamW adamw({{.parameters = {{"a", a}}, .lr = 0.1, .weight_decay = 0.5}, {.parameters = {{"b", b}}, .lr = 0.2}});
  for (const Tensor& w : {a, b}) w.set_grad(zeros({1}, float64));
  adamw.step();
  CHECK(a.item() == 0.95);
  CHECK(b.item() == 1);
}

TEST_CASE("options out of range are errors") {
  const Tensor w = weight();
  expect_error([&] { Adam({{"w", w}}, {.beta1 = 1}); }, {"Adam", "betas are in [0, 1)", "1 and 0.999"});
  expect_error([&] { AdamW({{"w", w}}, {.beta2 = -0.1}); }, {"AdamW", "-0.1"});
  expect_error([&] { Adam({{"w", w}}, {.eps = -1}); }, {"eps is not negative", "-1"});
}

}  // namespace
}  // namespace prenorm::optim
