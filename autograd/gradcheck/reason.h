// Why a gradient is probably wrong: patterns in analytic and numeric values side by side.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "autograd/gradcheck.h"
#include "autograd/gradcheck/verdict.h"

namespace prenorm {

// The gradient of one input, as far as it was compared element by element.
struct Evidence {
  Shape shape;                              // of the input
  std::vector<double> x;                    // its values
  std::vector<std::int64_t> sizes;          // that occur in the check, to put a name to a ratio
  bool undefined = false;                   // backward gives nothing for this input
  std::vector<std::int64_t> elements = {};  // row-major, in rising order
  std::vector<double> analytic = {}, numeric = {};
  std::vector<bool> wrong = {};

  void add(std::int64_t element, const Verdict& verdict);
  std::int64_t wrong_count() const;
};

// Fills in the values of the worst comparison, and the reason with its detail and ratio.
void diagnose(const Evidence& evidence, const Verdict& worst, GradcheckFailure& failure);

// The failure in words, several lines.
std::string describe(const GradcheckFailure& failure, double tolerance);

// The index of a row-major element.
Shape coordinate_of(const Shape& shape, std::int64_t element);

}  // namespace prenorm
