// Learning-rate schedules: what to multiply the learning rate by at a step, for Optimizer::set_lr_factor. Steps count
// from 1.
#pragma once

#include <cstdint>

namespace prenorm::optim {

// factor * d_model^-0.5 * min(step^-0.5, step * warmup^-1.5) (Vaswani et al. 2017, section 5.3): for a learning rate
// of 1.
double noam(std::int64_t step, std::int64_t d_model, std::int64_t warmup, double factor = 1);

// Rises linearly to 1 at step `warmup`, and stays there. 1 throughout without warm-up.
double linear_warmup(std::int64_t step, std::int64_t warmup);

// Linear warm-up, then half a cosine wave from 1 down to `floor` at step `total` (Loshchilov, Hutter 2017), and stays
// there.
double cosine(std::int64_t step, std::int64_t total, std::int64_t warmup = 0, double floor = 0);

inline double constant(std::int64_t /*step*/) { return 1; }

}  // namespace prenorm::optim
