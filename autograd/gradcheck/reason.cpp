#include "autograd/gradcheck/reason.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <sstream>

namespace prenorm {
namespace {

// How exactly a pattern has to hold, relative to the largest value. Differences are far better than this.
constexpr double kExact = 1e-4;

double largest(const std::vector<double>& values) {
  double most = 0;
  for (double value : values) most = std::max(most, std::abs(value));
  return most;
}

template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  out.precision(6);
  (out << ... << parts);
  return out.str();
}

// "9 / 8: n + 1 for n?" where a size of the check explains the ratio, else empty.
std::string explain_ratio(double ratio, const std::vector<std::int64_t>& sizes) {
  const auto is = [ratio](double value) { return std::abs(ratio - value) <= kExact * std::abs(value); };
  if (is(2)) return " (counted twice?)";
  for (std::int64_t size : sizes) {
    const auto n = static_cast<double>(size);
    if (size < 2) continue;
    if (is(n)) return text(" (a division by ", size, " missing?)");
    if (is(1 / n)) return text(" (divided by ", size, " too often?)");
    if (size > 2 && (is(n / (n - 1)) || is((n - 1) / n))) return text(" (n and n - 1 exchanged, n = ", size, "?)");
    if (size > 2 && (is(std::sqrt(n / (n - 1))) || is(std::sqrt((n - 1) / n)))) {
      return text(" (n and n - 1 exchanged under a root, n = ", size, "?)");
    }
    if (is(std::sqrt(n)) || is(1 / std::sqrt(n))) return text(" (a factor sqrt(", size, ")?)");
  }
  return "";
}

// Calls f(analytic, numeric) for each wrong element.
template <class F>
void for_each_wrong(const Evidence& e, F f) {
  for (std::size_t i = 0; i < e.wrong.size(); ++i) {
    if (e.wrong[i]) f(e.analytic[i], e.numeric[i]);
  }
}

// analytic = ratio * numeric at all wrong elements.
std::optional<double> constant_ratio(const Evidence& e) {
  double product = 0, squares = 0, most = 0;
  for_each_wrong(e, [&](double analytic, double numeric) {
    product += analytic * numeric;
    squares += numeric * numeric;
    most = std::max(most, std::abs(numeric));
  });
  if (squares == 0) return std::nullopt;
  const double ratio = product / squares;
  bool constant = true;
  for_each_wrong(e, [&](double analytic, double numeric) {
    constant = constant && std::abs(analytic - ratio * numeric) <= kExact * most;
  });
  return constant ? std::optional(ratio) : std::nullopt;
}

// Whether the right elements are zero, to which any factor applies.
bool others_are_zero(const Evidence& e) {
  for (std::size_t i = 0; i < e.wrong.size(); ++i) {
    if (!e.wrong[i] && std::abs(e.numeric[i]) > kExact * largest(e.numeric)) return false;
  }
  return true;
}

// Whether at each wrong element one of both is zero.
bool is_mask(const Evidence& e) {
  const double zero = 1e-3 * kExact * std::max(largest(e.analytic), largest(e.numeric));
  bool mask = true;
  for_each_wrong(e, [&](double a, double n) { mask = mask && (std::abs(a) <= zero || std::abs(n) <= zero); });
  return mask;
}

bool is_full(const Evidence& e) {
  return static_cast<std::int64_t>(e.elements.size()) == numel(e.shape) && !e.elements.empty();
}

// Either as a matrix, or written down column by column.
bool is_transposed(const Evidence& e) {
  if (!is_full(e) || e.shape.dims() < 2) return false;
  const std::int64_t columns = e.shape.back(), rows = e.shape[e.shape.dims() - 2];
  if (rows < 2 || columns < 2) return false;
  const double allowed = kExact * largest(e.numeric);
  for (std::size_t i = 0; i < e.analytic.size(); ++i) {
    const auto matrix = static_cast<std::int64_t>(i) / (rows * columns),
               place = static_cast<std::int64_t>(i) % (rows * columns);
    const std::int64_t swapped = matrix * rows * columns + place % rows * columns + place / rows;
    if (std::abs(e.analytic[i] - e.numeric[static_cast<std::size_t>(swapped)]) > allowed) return false;
  }
  return true;
}

std::vector<double> errors(const Evidence& e) {
  std::vector<double> out(e.analytic.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = e.analytic[i] - e.numeric[i];
  return out;
}

// Calls f(first element, stride) for each row along dimension d.
void for_each_row(const Shape& shape, std::int64_t d, const std::function<void(std::int64_t, std::int64_t)>& f) {
  const std::int64_t stride = contiguous_strides(shape)[d];
  for (std::int64_t first = 0; first < numel(shape); ++first) {
    if (first / stride % shape[d] == 0) f(first, stride);
  }
}

// A dimension along which the error does not change, the last such.
std::optional<std::int64_t> constant_dimension(const Evidence& e) {
  if (!is_full(e)) return std::nullopt;
  const std::vector<double> error = errors(e);
  const double allowed = kExact * largest(error);
  for (std::int64_t d = e.shape.dims() - 1; d >= 0; --d) {
    if (e.shape[d] < 2) continue;
    bool constant = true;
    for_each_row(e.shape, d, [&](std::int64_t first, std::int64_t stride) {
      for (std::int64_t i = 1; i < e.shape[d]; ++i) {
        const double step =
            error[static_cast<std::size_t>(first + i * stride)] - error[static_cast<std::size_t>(first)];
        constant = constant && std::abs(step) <= allowed;
      }
    });
    if (constant) return d;
  }
  return std::nullopt;
}

// Whether in each row along the last dimension the error is a + b x.
bool is_along_x(const Evidence& e) {
  if (!is_full(e) || e.shape.dims() == 0 || e.shape.back() < 4) return false;
  const std::vector<double> error = errors(e);
  const double allowed = kExact * largest(error);
  const auto n = static_cast<std::size_t>(e.shape.back());
  for (std::size_t row = 0; row < error.size(); row += n) {
    double mean_x = 0, mean_e = 0, products = 0, squares = 0;
    for (std::size_t i = row; i < row + n; ++i) {
      mean_x += e.x[i] / static_cast<double>(n);
      mean_e += error[i] / static_cast<double>(n);
    }
    for (std::size_t i = row; i < row + n; ++i) {
      products += (e.x[i] - mean_x) * (error[i] - mean_e);
      squares += (e.x[i] - mean_x) * (e.x[i] - mean_x);
    }
    const double slope = squares == 0 ? 0 : products / squares;
    for (std::size_t i = row; i < row + n; ++i) {
      if (std::abs(error[i] - mean_e - slope * (e.x[i] - mean_x)) > allowed) return false;
    }
  }
  return true;
}

void set(GradcheckFailure& failure, GradcheckReason reason, std::string detail) {
  failure.reason = reason;
  failure.detail = std::move(detail);
}

// From the most to the least telling pattern.
void find_pattern(const Evidence& e, GradcheckFailure& failure) {
  using enum GradcheckReason;
  const std::optional<double> ratio = constant_ratio(e);
  const std::int64_t wrong = e.wrong_count(), total = static_cast<std::int64_t>(e.elements.size());
  const std::string factor_text =
      ratio.has_value() ? text("analytic = ", *ratio, " * numeric", explain_ratio(*ratio, e.sizes)) : "";
  if (ratio.has_value()) failure.ratio = *ratio;
  if (largest(e.analytic) == 0) return set(failure, mask, "backward gives zero");
  if (ratio.has_value() && others_are_zero(e)) {
    if (std::abs(*ratio + 1) <= kExact) return set(failure, sign, "the sign: analytic = -numeric");
    return set(failure, factor, "a factor: " + factor_text);
  }
  if (is_transposed(e)) {
    return set(failure, transposed, "transposed: analytic is numeric with the last two dimensions swapped");
  }
  if (wrong * 8 <= total || (wrong == 1 && total > 1)) {
    const std::string there = ratio.has_value() ? ", there " + factor_text : "";
    return set(failure, few_elements, "a few elements: all others are right" + there);
  }
  if (is_mask(e)) return set(failure, mask, "a mask: at each wrong element either analytic or numeric is zero");
  if (ratio.has_value()) return set(failure, factor, "a factor at these elements: " + factor_text);
  if (const auto d = constant_dimension(e)) {
    return set(
        failure, missing_in_row,
        text("a missing term: the error is constant along dimension ", *d, " (a sum or mean over it left out?)"));
  }
  if (is_along_x(e)) {
    return set(failure, missing_along_x,
               "a missing term: the error is a multiple of x - mean(x) in each row (the derivative of a spread?)");
  }
  set(failure, unknown, "unknown: no pattern in the errors");
}

}  // namespace

void Evidence::add(std::int64_t element, const Verdict& verdict) {
  elements.push_back(element);
  analytic.push_back(verdict.analytic);
  numeric.push_back(verdict.numeric.central);
  wrong.push_back(!verdict.right);
}

std::int64_t Evidence::wrong_count() const { return std::count(wrong.begin(), wrong.end(), true); }

void diagnose(const Evidence& evidence, const Verdict& worst, GradcheckFailure& failure) {
  using enum GradcheckReason;
  failure.analytic = worst.analytic;
  failure.numeric = worst.numeric.central;
  failure.left = worst.numeric.left;
  failure.right = worst.numeric.right;
  failure.relative_error = worst.error;
  failure.step = worst.numeric.step;
  if (evidence.undefined) {
    return set(failure, undefined,
               "an undefined gradient: no path in the graph leads to this input, and the function depends on it");
  }
  switch (worst.reason) {
    case not_finite:
      return set(failure, not_finite, "a value that is not finite");
    case kink:
      return set(failure, kink,
                 text("a kink: the left derivative is ", worst.numeric.left, ", the right one ", worst.numeric.right));
    case step_too_large:
      return set(failure, step_too_large, "step too large: a smaller one gives the analytic value");
    case rounding:
      return set(failure, rounding,
                 "rounding: the outputs are large for a step that small, see whether a larger one tells");
    default:
      return find_pattern(evidence, failure);
  }
}

std::string describe(const GradcheckFailure& f, double tolerance) {
  if (f.reason == GradcheckReason::vacuous) return f.detail;
  std::ostringstream out;
  out.precision(10);
  out << "the " << (f.order == 1 ? "first" : "second") << " derivative with respect to " << f.input << ' ' << f.shape;
  if (f.reason == GradcheckReason::disagreement) {
    out << " at " << f.coordinate << ": " << f.detail << ": " << f.analytic << " and " << f.numeric;
  } else if (f.along_direction) {
    out << " along a random direction";
  } else {
    out << " at " << f.coordinate;
  }
  if (f.reason != GradcheckReason::disagreement) {
    out << ": analytic " << f.analytic << ", numeric " << f.numeric;
    out.precision(3);
    out << ", relative error " << f.relative_error << " (at most " << tolerance << "), step " << f.step;
  }
  out << "; " << f.wrong << " of " << f.total << " elements wrong";
  if (f.backward == GradcheckBackward::plain) out << ", without create_graph only";
  if (f.backward == GradcheckBackward::create_graph) out << ", with create_graph only";
  if (f.reason != GradcheckReason::disagreement) out << "; likely reason: " << f.detail;
  return out.str();
}

Shape coordinate_of(const Shape& shape, std::int64_t element) {
  Shape index = shape;
  for (std::int64_t d = shape.dims() - 1; d >= 0; --d) {
    index[d] = element % shape[d];
    element /= shape[d];
  }
  return index;
}

std::string_view name(GradcheckReason reason) {
  constexpr std::array<std::string_view, 15> names = {
      "unknown",         "sign",         "factor",    "mask",       "transposed", "missing in row",
      "missing along x", "few elements", "undefined", "not finite", "kink",       "step too large",
      "rounding",        "disagreement", "vacuous"};
  return names[static_cast<std::size_t>(reason)];
}

}  // namespace prenorm
