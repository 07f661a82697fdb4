#include "facts/report.h"

#include <cmath>
#include <cstdio>
#include <sstream>

namespace prenorm::facts {
namespace {

constexpr int kLabel = 10;  // columns of "setting" and its like

int width(std::string_view text) { return static_cast<int>(text.size()); }

}  // namespace

void Report::paragraph(std::string_view label, std::string_view text) {
  constexpr std::size_t kWidth = 100;
  std::istringstream words{std::string(text)};
  std::string word, line;
  const auto print = [&] {
    std::printf("  %-*.*s%s\n", kLabel, width(label), label.data(), line.c_str());
    label = "";
    line.clear();
  };
  while (words >> word) {
    if (!line.empty() && line.size() + 1 + word.size() > kWidth) print();
    line += (line.empty() ? "" : " ") + word;
  }
  if (!line.empty()) print();
}

void Report::expect(std::string_view what, double got, double low, double high) {
  judge(what, "in [" + number(low) + ", " + number(high) + "]", got, low <= got && got <= high);
}

void Report::at_most(std::string_view what, double got, double high) {
  judge(what, "<= " + number(high), got, got <= high);
}

void Report::at_least(std::string_view what, double got, double low) {
  judge(what, ">= " + number(low), got, got >= low);
}

void Report::judge(std::string_view what, std::string_view range, double got, bool inside) {
  ++compared_;
  outside_ += inside ? 0 : 1;
  std::printf("    %-58.*s  expected %-18.*s  got %-10s  %s\n", width(what), what.data(), width(range), range.data(),
              number(got).c_str(), inside ? "inside" : "OUTSIDE");
  std::fflush(stdout);
}

void Report::tell(std::string_view what, std::string_view got) {
  std::printf("    %-58.*s  %.*s\n", width(what), what.data(), width(got), got.data());
  std::fflush(stdout);
}

std::string number(double value) {
  if (std::isnan(value)) return "nan";
  char text[64];
  const bool plain = value == 0 || (std::abs(value) >= 1e-3 && std::abs(value) < 1e5);
  std::snprintf(text, sizeof text, plain ? "%.4g" : "%.1e", value);
  return text;
}

}  // namespace prenorm::facts
