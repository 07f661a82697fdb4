#include "autograd/gradcheck_verdict.h"

#include <algorithm>
#include <cmath>

namespace prenorm {
namespace {

constexpr std::size_t kFirstStep = 2;  // the place of 1 in kLadder

double jump(const Difference& d) { return std::abs(d.right - d.left); }

// A step shrinks by 100, and the one-sided derivatives do not come closer.
bool is_kink(const Difference& wide, const Difference& narrow, const Standard& standard) {
  const double negligible = 16 * narrow.noise + 1e-2 * standard.tolerance * standard.largest;
  return jump(narrow) > 0.5 * jump(wide) && jump(narrow) > negligible;
}

const Difference& steadiest(const std::vector<Difference>& steps) {
  const Difference* best = &steps[kFirstStep];
  double least = INFINITY;
  for (std::size_t i = kFirstStep; i + 1 < steps.size(); ++i) {
    const double change = std::abs(steps[i].central - steps[i + 1].central) + steps[i].noise;
    if (!(change < least)) continue;
    least = change;
    best = &steps[i];
  }
  return *best;
}

}  // namespace

double relative_error(double a, double b, double largest) {
  if (a == b) return 0;
  return std::abs(a - b) / std::max({std::abs(a), std::abs(b), 1e-2 * largest});
}

Verdict first_look(double analytic, const Difference& numeric, const Standard& standard) {
  Verdict verdict{.analytic = analytic, .numeric = numeric};
  verdict.error = relative_error(analytic, numeric.central, standard.largest);
  verdict.right = verdict.error <= standard.tolerance;  // not so for NaN
  if (!std::isfinite(analytic)) verdict.reason = GradcheckReason::not_finite;
  return verdict;
}

Verdict second_look(double analytic, const std::vector<Difference>& steps, const Standard& standard) {
  const double largest = standard.largest;
  const auto agrees = [&](const Difference& d) {
    const double size = std::max({std::abs(analytic), std::abs(d.central), 1e-2 * largest});
    return relative_error(analytic, d.central, largest) <= standard.tolerance && d.noise <= standard.tolerance * size;
  };
  Verdict verdict = first_look(analytic, steps[kFirstStep], standard);
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    if (!agrees(steps[i]) || !agrees(steps[i + 1])) continue;
    if (standard.adapt_step) verdict = first_look(analytic, steps[i], standard);
    verdict.reason = i < kFirstStep ? GradcheckReason::rounding : GradcheckReason::step_too_large;
    return verdict;
  }
  for (std::size_t i = kFirstStep; i + 2 < steps.size(); ++i) {
    const Difference& narrow = steps[i + 2];
    if (!is_kink(steps[i], narrow, standard)) continue;
    verdict = first_look(analytic, narrow, standard);
    verdict.reason = GradcheckReason::kink;
    const double slack = standard.tolerance * largest;
    const bool between = std::min(narrow.left, narrow.right) - slack <= analytic &&
                         analytic <= std::max(narrow.left, narrow.right) + slack;
    verdict.right = standard.allow_kinks && between;
    if (verdict.right) verdict.error = 0;
    return verdict;
  }
  verdict = first_look(analytic, steadiest(steps), standard);
  verdict.right = false;
  if (!std::isfinite(verdict.numeric.central)) verdict.reason = GradcheckReason::not_finite;
  return verdict;
}

}  // namespace prenorm
