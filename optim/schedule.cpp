#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "autograd/check.h"

namespace prenorm::optim {

double noam(std::int64_t step, std::int64_t d_model, std::int64_t warmup, double factor) {
  check(step >= 1 && d_model >= 1 && warmup >= 1, "noam: step ", step, ", d_model ", d_model, " and warmup ", warmup,
        " are at least 1");
  const double s = static_cast<double>(step), w = static_cast<double>(warmup);
  return factor / std::sqrt(static_cast<double>(d_model)) * std::min(1 / std::sqrt(s), s * std::pow(w, -1.5));
}

double linear_warmup(std::int64_t step, std::int64_t warmup) {
  check(step >= 1 && warmup >= 0, "linear_warmup: step ", step, " is at least 1 and warmup ", warmup, " not negative");
  if (warmup == 0) return 1;
  return std::min(1.0, static_cast<double>(step) / static_cast<double>(warmup));
}

double cosine(std::int64_t step, std::int64_t total, std::int64_t warmup, double floor) {
  check(total > warmup, "cosine: ", total, " steps in all leave none after a warm-up of ", warmup);
  if (step <= warmup) return linear_warmup(step, warmup);
  const double done = std::min(1.0, static_cast<double>(step - warmup) / static_cast<double>(total - warmup));
  return floor + (1 - floor) * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

}  // namespace prenorm::optim
