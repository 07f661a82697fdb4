// eq, ne, lt, le, gt, ge, logical_not, mod, allclose: answers that jump, so there is no derivative.
// A NaN compares as false with everything, itself too, except that ne is true.

#include <algorithm>
#include <cmath>
#include <functional>

#include "autograd/observer.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

// f(a, b), or f(b, a): three kernels serve six comparisons, and messages still show the operands in order.
template <class F>
Tensor compare(std::string_view op, const Tensor& a, const Tensor& b, bool swapped, F f) {
  check_same_dtype(op, a, b);
  broadcast_shapes(op, a.shape(), b.shape());
  Tensor y = dispatch(a.dtype(), [&](auto t) { return zip_as<decltype(t)>(op, swapped ? b : a, swapped ? a : b, f); });
  if (Observer::any_for_unrecorded()) Observer::tell_unrecorded(op, {a, b}, {y});
  return y;
}

}  // namespace

Tensor eq(const Tensor& a, const Tensor& b) { return compare("eq", a, b, false, std::equal_to<>()); }
Tensor ne(const Tensor& a, const Tensor& b) { return logical_not(compare("ne", a, b, false, std::equal_to<>())); }
Tensor lt(const Tensor& a, const Tensor& b) { return compare("lt", a, b, false, std::less<>()); }
Tensor le(const Tensor& a, const Tensor& b) { return compare("le", a, b, false, std::less_equal<>()); }
Tensor gt(const Tensor& a, const Tensor& b) { return compare("gt", a, b, true, std::less<>()); }
Tensor ge(const Tensor& a, const Tensor& b) { return compare("ge", a, b, true, std::less_equal<>()); }

Tensor logical_not(const Tensor& x) {
  Tensor y = dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    return map_as<T>(x, [](T v) { return v == T{0}; });
  });
  if (Observer::any_for_unrecorded()) Observer::tell_unrecorded("logical_not", {x}, {y});
  return y;
}

Tensor mod(const Tensor& a, std::int64_t divisor) {
  check(a.dtype() == int64, "mod: expected int64, got ", a.dtype());
  check(divisor != 0, "mod: the divisor is 0");
  if (divisor == -1) return zeros_like(a);  // the quotient of the smallest int64 would overflow
  return map_as<std::int64_t>(a, [divisor](std::int64_t v) {
    const std::int64_t rest = v % divisor;
    return rest != 0 && (rest < 0) != (divisor < 0) ? rest + divisor : rest;
  });
}

bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol) {
  const Tensor close = zip("allclose", a, b, [rtol, atol](auto p, auto q) {
    const double x = static_cast<double>(p), y = static_cast<double>(q);
    return p == q || (std::isfinite(y) && std::fabs(x - y) <= atol + rtol * std::fabs(y));  // p == q: infinities too
  });
  const bool* all = close.data<bool>();
  return std::all_of(all, all + close.numel(), [](bool near) { return near; });
}

}  // namespace prenorm
