// A formula's right side as text, and what it comes to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "autograd/tensor.h"

namespace prenorm::view {

struct Expression {
  std::string text;  // "1.2 * 0.5"; empty: there is none
  double value = 0;
  double size = 0;  // of the largest term, by which rounding is measured
};

// Four significant digits.
std::string digits(double value);
// The same in brackets where it is negative, to stand after an operator.
std::string operand(double value);

// Element number `index` of a contiguous tensor, row-major.
double element(const Tensor& tensor, std::int64_t index);

// first + second + … of `count` terms, each with its text and value; the middle of a long sum is left out.
Expression sum_of_terms(std::int64_t count, const std::function<Expression(std::int64_t)>& term);
Expression product(double a, double b);
// f(x), with f by name.
Expression call(const std::string& name, double x, double value);

}  // namespace prenorm::view
