#include "autograd/gradcheck/verdict.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace prenorm {
namespace {

constexpr std::size_t kFirstStep = 4;        // the place of 1 in the ladder
constexpr std::size_t kStepsPerHundred = 4;  // down by 100
const double kRatio = std::sqrt(10.0);

double jump(const Difference& d) { return std::abs(d.right - d.left); }

// The step shrinks by 100, and the one-sided derivatives do not come closer.
bool is_kink(const Difference& wide, const Difference& narrow, const Standard& standard) {
  const double negligible = kNoiseMargin * narrow.noise + 1e-2 * standard.tolerance * standard.largest;
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

// To step 0, of an error proportional to the step (Richardson).
Difference extrapolated(const Difference& wide, const Difference& narrow) {
  Difference out = narrow;
  out.central = (kRatio * narrow.central - wide.central) / (kRatio - 1);
  out.noise = (kRatio * narrow.noise + wide.noise) / (kRatio - 1);
  return out;
}

bool agrees(double analytic, const Difference& d, const Standard& standard) {
  const double size = std::max({std::abs(analytic), std::abs(d.central), 1e-2 * standard.largest});
  return first_look(analytic, d, standard).right && d.noise <= standard.tolerance * size;
}

// The first of two neighbours that both give the analytic value; their number where there are none.
std::size_t find_agreement(double analytic, const std::vector<Difference>& steps, const Standard& standard) {
  const auto one = [&](const Difference& d) { return agrees(analytic, d, standard); };
  const auto found = std::adjacent_find(steps.begin(), steps.end(),
                                        [&](const Difference& a, const Difference& b) { return one(a) && one(b); });
  return static_cast<std::size_t>(found - steps.begin());
}

Verdict agreement(double analytic, const std::vector<Difference>& steps, std::size_t at, const Difference& first,
                  const Standard& standard) {
  Verdict verdict = first_look(analytic, standard.adapt_step ? steps[at] : first, standard);
  verdict.reason = steps[at].step > first.step ? GradcheckReason::rounding : GradcheckReason::step_too_large;
  return verdict;
}

std::optional<Verdict> find_kink(double analytic, const std::vector<Difference>& steps, const Standard& standard) {
  for (std::size_t i = kFirstStep; i + kStepsPerHundred < steps.size(); ++i) {
    const Difference& narrow = steps[i + kStepsPerHundred];
    if (!is_kink(steps[i], narrow, standard)) continue;
    Verdict verdict = first_look(analytic, narrow, standard);
    verdict.reason = GradcheckReason::kink;
    const double slack = standard.tolerance * standard.largest;
    const bool between = std::min(narrow.left, narrow.right) - slack <= analytic &&
                         analytic <= std::max(narrow.left, narrow.right) + slack;
    verdict.right = standard.allow_kinks && between;
    if (verdict.right) verdict.error = 0;
    return verdict;
  }
  return std::nullopt;
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

double ladder_step(std::size_t i) { return std::pow(kRatio, static_cast<double>(kFirstStep) - static_cast<double>(i)); }

Verdict second_look(double analytic, const std::vector<Difference>& steps, const Standard& standard) {
  const Difference& first = steps[kFirstStep];
  std::vector<Difference> limits;
  for (std::size_t i = kFirstStep; i + 1 < steps.size(); ++i) limits.push_back(extrapolated(steps[i], steps[i + 1]));
  Verdict verdict;
  if (const std::size_t i = find_agreement(analytic, steps, standard); i < steps.size()) {
    verdict = agreement(analytic, steps, i, first, standard);
  } else if (const std::size_t l = find_agreement(analytic, limits, standard); l < limits.size()) {
    verdict = agreement(analytic, limits, l, first, standard);
  } else if (const std::optional<Verdict> kink = find_kink(analytic, steps, standard)) {
    verdict = *kink;
  } else {
    verdict = first_look(analytic, steadiest(steps), standard);
    verdict.right = false;
    const double error = std::abs(analytic - verdict.numeric.central);
    if (error <= kNoiseMargin * verdict.numeric.noise) verdict.reason = GradcheckReason::rounding;
    if (!std::isfinite(verdict.numeric.central)) verdict.reason = GradcheckReason::not_finite;
  }
  verdict.looked_closer = true;
  return verdict;
}

}  // namespace prenorm
