// LayerNorm's own gradient: what it takes away, and how exactly differences confirm it.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "autograd/gradcheck.h"
#include "autograd/ops.h"
#include "autograd/random.h"
#include "facts/report.h"

namespace prenorm::facts {
namespace {

double largest(const Tensor& x) { return max(abs(x.detach())).item(); }

void layer_norm_gradient(Report& report) {
  report.setting("float64, x and dy [8, 64] from N(0, 1), gamma 1, beta 0, eps 0, seed 0");
  report.say(
      "x_hat does not change when a constant is added to a row or when the row is stretched. So dx has no part along "
      "either direction, and twice the x gets half the gradient.");
  manual_seed(0);
  const Tensor x = randn({8, 64}, {.dtype = float64, .requires_grad = true});
  const Tensor dy = randn({8, 64}, {.dtype = float64});
  const auto gradient = [&dy](const Tensor& at) { return grad({layer_norm(at, {}, {}, /*eps=*/0)}, {at}, {dy})[0]; };
  const Tensor dx = gradient(x), x_hat = layer_norm(x.detach(), {}, {}, 0);
  const Tensor twice = (2 * x).detach().requires_grad_();
  report.at_least("largest |dx|, for comparison", largest(dx), 0.1);
  report.at_most("largest |sum of dx over a row|", largest(sum(dx, {-1})), 1e-12);
  report.at_most("largest |dx . x_hat| of a row", largest(sum(dx * x_hat, {-1})), 1e-12);
  report.at_most("largest |dx(2x) - dx(x) / 2|", largest(gradient(twice) - 0.5 * dx), 1e-12);
}

void step_size(Report& report) {
  report.setting("layer_norm of x [1, 8] from N(0, 1) in float64, gamma 1, beta 0, eps 1e-5, seed 0; worst of the 8");
  report.say(
      "A central difference is off by about h^2 (truncation) and by about 1e-16 / h (rounding): the error against the "
      "step h is a V, and a check stands at its bottom.");
  manual_seed(0);
  const Tensor x = randn({1, 8}, {.dtype = float64, .requires_grad = true});
  double best = std::numeric_limits<double>::infinity(), best_step = 0, left = 0, right = 0;
  for (const auto& [step, worst] : sweep([](const Tensors& in) { return layer_norm(in[0]); }, Tensors{x})) {
    report.tell("worst relative error at h = " + number(step), number(worst));
    if (worst < best) best = worst, best_step = step;
    if (std::abs(std::log10(step) + 2) < 0.5) left = worst;
    if (std::abs(std::log10(step) + 8) < 0.5) right = worst;
  }
  report.at_most("the smallest of them", best, 1e-8);
  report.expect("log10 of the step where it is", std::round(std::log10(best_step)), -5, -3);
  report.at_least("worse than that by a factor of, at h = 1e-2", left / best, 10);
  report.at_least("worse than that by a factor of, at h = 1e-8", right / best, 10);
}

}  // namespace

std::vector<Fact> layer_norm_facts() {
  return {{"layer_norm_gradient", "what LayerNorm takes from a gradient", "algebra (autograd/ops/layer_norm.cpp)",
           layer_norm_gradient},
          {"step_size", "the error of a finite difference against its step", "numerical analysis", step_size}};
}

}  // namespace prenorm::facts
