// What var and std share.
#pragma once

#include "autograd/ops/reduce.h"

namespace prenorm {

// x - mean(x) over dims, as ops. The first element of each group is taken off before its mean is formed: it changes
// nothing in exact arithmetic (so it counts as a constant for derivatives), and a constant group gives exactly 0.
Tensor centred(const Tensor& x, const Dims& dims);

// What the sum of squares is divided by: n - correction, at least 0.
double degrees_of_freedom(const Reduced& reduced, int correction);

}  // namespace prenorm
