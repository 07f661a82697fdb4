// LayerNorm, both forms.

#include <cmath>

#include "autograd/ops.h"
#include "autograd/random.h"
#include "demos/report.h"
#include "nn/norm.h"

namespace prenorm::demos {
namespace {

// Six rows of 8 features, none of which has mean 0 and std 1; the first three are shown.
Tensor uneven_rows() {
  manual_seed(0);
  return randn({2, 3, 8}) * 5 + 3;
}
Tensor first_rows(const Tensor& x) { return select(x, 0, 0); }

void layer_norm_demo(Report& report) {
  report.say(
      "A fresh LayerNorm (a_2 = 1, b_2 = 0) moves every row to mean 0 and stretches it to std 1, whatever it was "
      "before; "
      "rows do not see each other.");
  const Tensor x = uneven_rows();
  const Tensor y = nn::LayerNorm(8)(x);
  report.expect("means of the rows before", "0.59 4.22 2.29", fixed(mean(first_rows(x), {-1}), 2));
  report.expect("means of the rows after", "0.00 0.00 0.00", fixed(mean(first_rows(y), {-1}), 2));
  report.expect("std of the rows after", "1.00 1.00 1.00", fixed(std(first_rows(y), {-1}), 2));
}

void standard_form(Report& report) {
  report.say(
      "The standard form divides by the std that counts n values, the unbiased form by the one that counts n - 1. "
      "Measured "
      "with n - 1, a row of 8 after the standard form has std sqrt(8/7) = 1.069, not 1.");
  const Tensor x = uneven_rows();
  const Tensor y = nn::LayerNorm(8, {.form = nn::Norm::standard})(x);
  report.expect("std with n - 1 after the standard form", "1.069 1.069 1.069", fixed(std(first_rows(y), {-1}, 1), 3));
  report.expect("std with n after the standard form", "1.000 1.000 1.000", fixed(std(first_rows(y), {-1}, 0), 3));
  report.expect("sqrt(8/7)", "1.069", fixed(std::sqrt(8.0 / 7.0), 3));
}

void both_forms(Report& report) {
  report.say(
      "The same row through both: an unlike scale is the whole difference. A constant row gives 0 in both, never NaN.");
  const Tensor row = Tensor::of({1, 0, 0, 0}), constant = full({4}, 7.1);
  const nn::LayerNorm unbiased(4), standard(4, {.form = nn::Norm::standard});
  report.expect("[1, 0, 0, 0], unbiased", "1.500 -0.500 -0.500 -0.500", fixed(unbiased(row), 3));
  report.expect("[1, 0, 0, 0], standard", "1.732 -0.577 -0.577 -0.577", fixed(standard(row), 3));
  report.expect("[7.1, 7.1, 7.1, 7.1], unbiased", "0.000 0.000 0.000 0.000", fixed(unbiased(constant), 3));
  report.expect("[7.1, 7.1, 7.1, 7.1], standard", "0.000 0.000 0.000 0.000", fixed(standard(constant), 3));
}

// The formula with plain loops in double: y = (x - mean) / sqrt(var + eps).
std::vector<double> reference(const std::vector<double>& x, std::size_t n, double eps) {
  std::vector<double> y(x.size());
  for (std::size_t row = 0; row < x.size(); row += n) {
    double mean = 0, var = 0;
    for (std::size_t i = row; i < row + n; ++i) mean += x[i] / static_cast<double>(n);
    for (std::size_t i = row; i < row + n; ++i) var += (x[i] - mean) * (x[i] - mean) / static_cast<double>(n);
    for (std::size_t i = row; i < row + n; ++i) y[i] = (x[i] - mean) / std::sqrt(var + eps);
  }
  return y;
}

void float64_reference(Report& report) {
  report.say(
      "The standard form in float32 against its formula written out with plain loops in float64, 64 rows of 512.");
  manual_seed(0);
  const Tensor x = randn({64, 512}) * 5 + 3;
  const Tensor y = nn::LayerNorm(512, {.form = nn::Norm::standard})(x);
  const Tensor expected = Tensor::of(reference(x.to_vector<double>(), 512, 1e-5), y.shape(), {.dtype = float64});
  report.expect("equal within 1e-5", "yes", yes_no(largest_difference(to(y, float64), expected) < 1e-5));
}

}  // namespace

std::vector<Demo> norm_demos() {
  return {{"layer_norm", "LayerNorm gives every row mean 0 and std 1", layer_norm_demo},
          {"standard_form", "why the standard form's rows have std 1.069", standard_form},
          {"both_forms", "the two LayerNorms side by side", both_forms},
          {"float64_reference", "LayerNorm in float32 is right to 1e-5", float64_reference}};
}

}  // namespace prenorm::demos
