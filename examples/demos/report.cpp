#include "demos/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "autograd/ops.h"

namespace prenorm::demos {

void Report::say(std::string_view text) const {
  constexpr std::size_t kWidth = 110;
  std::istringstream words{std::string(text)};
  std::string word, line;
  while (words >> word) {
    if (!line.empty() && line.size() + 1 + word.size() > kWidth) {
      std::printf("  %s\n", line.c_str());
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  if (!line.empty()) std::printf("  %s\n", line.c_str());
}

void Report::expect(std::string_view what, std::string_view expected, std::string_view got) {
  const bool same = expected == got;
  ++compared_;
  different_ += same ? 0 : 1;
  std::printf("    %-48.*s  expected %-26.*s  got %-26.*s  %s\n", static_cast<int>(what.size()), what.data(),
              static_cast<int>(expected.size()), expected.data(), static_cast<int>(got.size()), got.data(),
              same ? "equal" : "DIFFERENT");
}

std::string fixed(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  // What rounds to zero has no sign.
  return std::string(text).find_first_of("123456789ni") == std::string::npos && text[0] == '-' ? text + 1 : text;
}

std::string fixed(const std::vector<double>& values, int decimals) {
  std::string text;
  for (double value : values) text += (text.empty() ? "" : " ") + fixed(value, decimals);
  return text;
}

std::string fixed(const Tensor& values, int decimals) { return fixed(values.to_vector<double>(), decimals); }

std::string scientific(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2e", value);
  return text;
}

std::string grouped(std::int64_t value) {
  std::string text = std::to_string(value);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<std::size_t>(at), ",");
  }
  return text;
}

std::string shape_text(const Tensor& x) {
  std::ostringstream text;
  text << x.shape();
  return text.str();
}

std::string yes_no(bool value) { return value ? "yes" : "no"; }

std::string exactly_zero(double value) { return value == 0 ? "0" : scientific(value); }

double largest(const Tensor& x) {
  double result = 0;
  for (double value : x.to_vector<double>()) {
    if (std::isnan(value)) return value;
    result = std::max(result, std::abs(value));
  }
  return result;
}

double largest_difference(const Tensor& a, const Tensor& b) { return largest(a.detach() - b.detach()); }

}  // namespace prenorm::demos
