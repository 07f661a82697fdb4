// Whether an analytic and a numeric derivative agree, and if not, whether it is for the step or a kink.
#pragma once

#include <cstddef>
#include <vector>

#include "autograd/gradcheck.h"
#include "autograd/gradcheck/differences.h"

namespace prenorm {

// The noise of a difference is a typical size, not a bound; so many times as much is still taken for noise.
inline constexpr double kNoiseMargin = 16;

// |a - b| / max(|a|, |b|, 1e-2 * largest): a true zero is judged by the size of other gradients.
double relative_error(double a, double b, double largest);

// One comparison.
struct Verdict {
  bool right = false;
  bool looked_closer = false;
  GradcheckReason reason = GradcheckReason::unknown;
  double analytic = 0, error = 0;
  Difference numeric;  // the one to believe
};

struct Standard {
  double tolerance;
  double largest;  // gradient in the whole check
  bool adapt_step, allow_kinks;
};

Verdict first_look(double analytic, const Difference& numeric, const Standard& standard);

// The steps of a second look as multiples of the first one: sqrt(10) apart, from 100 down to 1e-8.
inline constexpr std::size_t kLadderSteps = 21;
double ladder_step(std::size_t i);

// The verdict from differences with the steps of the ladder, where the first look failed:
// - right, where two neighbouring steps give the analytic value, or two extrapolations to step 0 from neighbours do
//   (next to a constant row the error of layer_norm_std falls only as fast as the step). Before that counts, rounding
//   must be too small to make it so: with a step that changes nothing any function looks constant.
// - a kink, where left and right differences stay apart as the step shrinks.
// - wrong, else, or lost in rounding; `numeric` is then the difference that changes least with the step.
Verdict second_look(double analytic, const std::vector<Difference>& steps, const Standard& standard);

}  // namespace prenorm
