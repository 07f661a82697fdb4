// Where a value's gradient comes together from several uses.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "autograd/view/record.h"
#include "autograd/view/trace.h"

namespace prenorm::view {

struct ForkPart {
  std::int64_t consumer = 0, input = 0;
  std::string_view role;  // "skip" or "branch" where the value goes into a residual sum both ways, else ""
  double norm = 0;
  Tensor gradient;
};

// Whether a value's cotangent is the sum of what its uses gave and of what backward began with.
struct Sum {
  Ref value;
  double error = 0;  // of the difference's norm to the sum of the parts' norms
  bool ok = true;
  bool known = true;  // false: a gradient hook may have changed it, or a use is outside of the recording
};

// A value that backward reached and more than one use of which had a gradient to give.
struct Fork {
  Ref value;
  Tensor total;                  // the value's cotangent
  std::vector<ForkPart> parts;   // skip first, then branch
  std::optional<double> cosine;  // of two parts, neither of them zero
  Sum sum = {};
};

std::vector<Fork> find_forks(const Record& record, const Trace& trace);
// One a value that backward reached and that has at least one part.
std::vector<Sum> check_sums(const Record& record, const Trace& trace);

double norm_of(const Tensor& tensor);
double dot_product(const Tensor& a, const Tensor& b);  // of all elements, in float64

}  // namespace prenorm::view
