#include "autograd/view/json_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

namespace prenorm::view {
namespace {

template <class... How>
std::string digits_of(How... how) {
  std::array<char, 64> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), how...);
  return {buffer.data(), end};
}

std::optional<std::string> not_finite(double value) {
  if (std::isfinite(value)) return std::nullopt;
  return std::isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"";
}

}  // namespace

std::string json_string(std::string_view text) {
  const std::string quoted = nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string out;
  out.reserve(quoted.size());
  for (char c : quoted) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

std::string json_number(double value) { return not_finite(value).value_or(digits_of(value)); }
std::string json_number(float value) { return not_finite(value).value_or(digits_of(value)); }
std::string json_number(double value, int digits) {
  return not_finite(value).value_or(digits_of(value, std::chars_format::general, digits));
}

std::string json_shape(const Shape& shape) {
  JsonList list('[');
  for (std::int64_t size : shape) list.add(std::to_string(size));
  return list.close();
}

}  // namespace prenorm::view
