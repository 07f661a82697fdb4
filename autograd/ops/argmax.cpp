// argmax: the position of the largest element along a dimension, the first of equal ones. NaN counts as larger than
// all. Positions jump, so there is no derivative.

#include <cmath>

#include "autograd/observer.h"
#include "autograd/ops/reduce.h"

namespace prenorm {

Tensor argmax(const Tensor& x, std::int64_t dim, bool keepdim) {
  const Reduced reduced("argmax", x.shape(), {dim});
  check(reduced.n > 0, "argmax: x ", x.shape(), " has no element along dimension ", dim, ", expected at least 1");
  Tensor y = dispatch_number("argmax", x.dtype(), [&](auto t) {
    using T = decltype(t);
    return reduce_as<T>(x, reduced, keepdim, [](const T* row, std::int64_t n) {
      std::int64_t best = 0;
      for (std::int64_t i = 1; i < n && !std::isnan(row[best]); ++i) {
        if (row[i] > row[best] || std::isnan(row[i])) best = i;
      }
      return best;
    });
  });
  if (Observer::any_for_unrecorded()) Observer::tell_unrecorded("argmax", {x}, {y});
  return y;
}

}  // namespace prenorm
