#include "autograd/view/expression.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace prenorm::view {
namespace {

// A sum of more terms shows its first two and its last.
constexpr std::int64_t kTerms = 4;

}  // namespace

std::string digits(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 32> buffer;
  const auto [end, error] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::general, 4);
  return {buffer.data(), end};
}

std::string operand(double value) {
  const std::string text = digits(value);
  return text.starts_with('-') ? "(" + text + ")" : text;
}

double element(const Tensor& tensor, std::int64_t index) {
  return dispatch(tensor.dtype(), [&](auto t) { return static_cast<double>(tensor.data<decltype(t)>()[index]); });
}

Expression sum_of_terms(std::int64_t count, const std::function<Expression(std::int64_t)>& term) {
  Expression sum;
  for (std::int64_t i = 0; i < count; ++i) {
    const Expression one = term(i);
    sum.value += one.value;
    sum.size = std::max({sum.size, one.size, std::abs(one.value)});
    const bool shown = count <= kTerms || i < 2 || i == count - 1;
    if (!shown && i == 2) sum.text += " + …";
    if (!shown) continue;
    const bool bare = one.text.find_first_of("*/") == std::string::npos && one.text.starts_with('-');
    sum.text += (i > 0 ? " + " : "") + (i > 0 && bare ? "(" + one.text + ")" : one.text);
  }
  if (count > kTerms) sum.text += " (" + std::to_string(count) + " terms)";
  if (count == 0) sum.text = "0";
  return sum;
}

Expression product(double a, double b) { return {digits(a) + " * " + operand(b), a * b, std::abs(a * b)}; }

Expression call(const std::string& name, double x, double value) {
  return {name + "(" + digits(x) + ")", value, std::abs(value)};
}

}  // namespace prenorm::view
