// How small LayerNorm's eps may be in 16-bit formats.

#include <algorithm>
#include <cmath>
#include <string>

#include "demos/report.h"

namespace prenorm::demos {
namespace {

// A binary floating-point format, imitated in double: every step is computed in double, then rounded to the format. For
// the four operations and the square root this gives what the format's own arithmetic gives, since double has more than
// twice as many digits.
struct Format {
  const char* name;
  int digits;        // binary, of the significand
  int min_exponent;  // of the smallest normal number; below it, digits are lost (subnormal numbers)
  double largest;

  // To the nearest, ties to the even one.
  double round(double x) const {
    if (x == 0 || !std::isfinite(x)) return x;
    const double quantum = std::ldexp(1.0, std::max(std::ilogb(x), min_exponent) - (digits - 1));
    const double rounded = std::nearbyint(x / quantum) * quantum;
    return std::abs(rounded) > largest ? std::copysign(INFINITY, x) : rounded;
  }
  double smallest() const { return std::ldexp(1.0, min_exponent - (digits - 1)); }
};

const Format kFloat16{"float16", 11, -14, 65504};
const Format kBfloat16{"bfloat16", 8, -126, std::ldexp(255.0, 120)};

// y = (x - mean) / sqrt(var + eps), each step in the format.
std::vector<double> layer_norm_in(const Format& f, std::vector<double> x, double eps) {
  const auto n = static_cast<double>(x.size());
  eps = f.round(eps);
  for (double& value : x) value = f.round(value);
  double sum = 0, squares = 0;
  for (double value : x) sum = f.round(sum + value);
  const double mean = f.round(sum / n);
  for (double& value : x) value = f.round(value - mean);
  for (double d : x) squares = f.round(squares + f.round(d * d));
  const double divisor = f.round(std::sqrt(f.round(f.round(squares / n) + eps)));
  for (double& value : x) value = f.round(value / divisor);
  return x;
}

// The largest element, to show what became of a row: about 1.5 for one that was normalised.
std::string outcome(const std::vector<double>& y) {
  double result = 0;
  for (double value : y) {
    if (std::isnan(value)) return "NaN";
    result = std::max(result, std::abs(value));
  }
  return std::isinf(result) ? "inf" : fixed(result, 2);
}

struct Row {
  const char* name;
  std::vector<double> values;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all{
      {"constant, 0.5", std::vector<double>(8, 0.5)},
      {"constant, 7.1", std::vector<double>(8, 7.1)},
      {"tiny, -7e-5 to 7e-5", {-7e-5, -5e-5, -3e-5, -1e-5, 1e-5, 3e-5, 5e-5, 7e-5}},
      {"ordinary, -7 to 7", {-7, -5, -3, -1, 1, 3, 5, 7}},
  };
  return all;
}

std::string outcomes(const Format& format, const Row& row) {
  std::string text;
  for (double eps : {1e-12, 1e-8, 1e-6, 1e-5}) {
    text += (text.empty() ? "" : " ") + outcome(layer_norm_in(format, row.values, eps));
  }
  return text;
}

void eps_in_16_bits(Report& report) {
  report.say(
      "The largest element of a row after LayerNorm, all steps rounded to the format, for eps = 1e-12, 1e-8, 1e-6, "
      "1e-5. "
      "A normalised row shows about 1.5, a constant row should show 0.");
  report.expect("float16: smallest number above 0", "5.96e-08", scientific(kFloat16.smallest()));
  report.expect("float16: eps of 2.9e-8 becomes", "0", exactly_zero(kFloat16.round(2.9e-8)));
  report.expect("float16: eps of 3.0e-8 becomes", "5.96e-08", exactly_zero(kFloat16.round(3.0e-8)));
  const char* const in_float16[] = {"NaN NaN 0.00 0.00", "1.00 1.00 0.97 0.78", "inf inf 0.07 0.02",
                                    "1.53 1.53 1.53 1.53"};
  for (std::size_t i = 0; i < rows().size(); ++i) {
    report.expect("float16, " + std::string(rows()[i].name), in_float16[i], outcomes(kFloat16, rows()[i]));
  }
  const char* const in_bfloat16[] = {"0.00 0.00 0.00 0.00", "1.00 1.00 1.00 1.00", "1.52 0.64 0.07 0.02",
                                     "1.52 1.52 1.52 1.52"};
  for (std::size_t i = 0; i < rows().size(); ++i) {
    report.expect("bfloat16, " + std::string(rows()[i].name), in_bfloat16[i], outcomes(kBfloat16, rows()[i]));
  }
  report.say(
      "In float16 an eps below about 3e-8, half the smallest number, is rounded to 0: then a constant row is 0/0 = NaN "
      "and a "
      "tiny one infinite; 1e-5 holds. bfloat16 has the range of float32, and 1e-12 survives. The usual advice to take "
      "1e-6 "
      "or more is about rounding there, not underflow: with few digits the mean of a constant row may be rounded, as "
      "that "
      "of 7.1, and the residue, divided by its own size, becomes 1. In bfloat16 no eps of the table hides it, so mean "
      "and "
      "variance are better computed in float32.");
}

}  // namespace

std::vector<Demo> precision_demos() {
  return {{"eps", "how small eps may be in float16 and bfloat16", eps_in_16_bits}};
}

}  // namespace prenorm::demos
