// What drawings in SVG and HTML share.
#pragma once

#include <array>
#include <cmath>
#include <cstdio>
#include <string>

namespace prenorm::training {

// Okabe and Ito's palette, which colour-blind readers tell apart; those that stand out on white and on black first.
inline constexpr std::array<const char*, 7> kColours{"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                     "#E69F00", "#56B4E9", "#8C8C8C"};
// Dashes tell lines apart without colour.
inline constexpr std::array<const char*, 4> kDashes{"none", "7 3", "2 3", "10 3 2 3"};

// Text that is text inside an element or an attribute, too.
inline std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

// A length or place in pixels, to a tenth.
inline std::string pixels(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", std::round(value * 10) / 10);
  return text;
}

}  // namespace prenorm::training
