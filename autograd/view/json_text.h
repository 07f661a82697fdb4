// JSON as text, piece by piece: numbers that read back as the same value, and strings that may stand inside a script
// element of HTML.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "autograd/tensor.h"

namespace prenorm::view {

// In quotes. Every "<" becomes \u003c, so that no text ends a script element; bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

// The shortest digits that give the same double, or the same float. JSON has no NaN and no infinity: they are written
// as the strings "nan", "inf", "-inf".
std::string json_number(double value);
std::string json_number(float value);
// With so many significant digits.
std::string json_number(double value, int digits);

std::string json_shape(const Shape& shape);  // "[2,3]"

// Comma-separated items of an object or array.
class JsonList {
 public:
  explicit JsonList(char open) : text_(1, open), close_(open == '{' ? '}' : ']') {}
  // In an object.
  JsonList& add(std::string_view key, std::string_view value) {
    separate();
    text_.append(1, '"').append(key).append("\":").append(value);
    return *this;
  }
  // In an array.
  JsonList& add(std::string_view value) {
    separate();
    text_ += value;
    return *this;
  }
  std::string close() {
    text_ += close_;
    return std::move(text_);
  }

 private:
  void separate() {
    if (text_.size() > 1) text_ += ',';
  }
  std::string text_;
  char close_;
};

}  // namespace prenorm::view
