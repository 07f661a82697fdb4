// Why a gradient is probably wrong: patterns in analytic and numeric values side by side.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "autograd/gradcheck.h"

namespace prenorm {

// The gradient of one input, as far as it was compared.
struct Evidence {
  Shape shape;                         // of the input
  std::vector<double> x;               // its values
  std::vector<std::int64_t> elements;  // which were compared, row-major; in rising order
  std::vector<double> analytic, numeric;
  std::vector<bool> wrong;
  std::vector<std::int64_t> sizes;  // that occur in the check, to put a name to a ratio

  std::int64_t wrong_count() const;
};

// Fills in reason, detail and ratio.
void diagnose(const Evidence& evidence, GradcheckFailure& failure);

// The failure in words, several lines.
std::string describe(const GradcheckFailure& failure, double tolerance);

// The index of a row-major element.
Shape coordinate_of(const Shape& shape, std::int64_t element);

}  // namespace prenorm
