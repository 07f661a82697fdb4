// A tensor as JSON: all of its values, or what they are like.
#pragma once

#include <cstddef>
#include <string>

#include "autograd/tensor.h"

namespace prenorm::view {

// {"shape", "dtype", "values"}: row-major, each with enough digits to read back as the same value.
std::string full_json(const Tensor& tensor);

// {"shape", "dtype"} and, while it stays within `bytes`: "stats", then "largest" (the four of the largest absolute
// value, with their row-major index), "histogram" (12 bins of what is finite) and "corner" (up to 4 x 4 of the last
// two dimensions). Four significant digits. Where even the statistics do not fit, the norm alone, and then nothing.
std::string summary_json(const Tensor& tensor, std::size_t bytes);

}  // namespace prenorm::view
