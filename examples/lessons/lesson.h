// What the lessons share: their command line, the page, and how numbers are printed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/check.h"
#include "autograd/ops.h"
#include "autograd/view/recording.h"

namespace prenorm::lessons {

struct Lesson {
  std::string title;
  std::string see;        // the one thing to see, in a sentence or two
  std::string html = {};  // where --html wants the page; empty: nowhere

  // Writes the run as a page to step through, if one was asked for.
  void page(const view::Recording& run, view::Options options = {}) const {
    if (html.empty()) return;
    options.title = title;
    if (options.note.empty()) options.note = see;
    run.write_html(html, options);
  }
};

// Prints a text, broken into lines.
inline void say(const std::string& text) {
  constexpr std::size_t kWidth = 100;
  for (std::size_t begin = 0, end; begin < text.size(); begin = end + 1) {
    end = text.size() - begin <= kWidth ? text.size() : text.rfind(' ', begin + kWidth);
    std::printf("%s\n", text.substr(begin, end - begin).c_str());
  }
}

// Reads the command line, prints title and what is to be seen, and runs the lesson. For main to return: 0 if all went
// well, 1 after an error, 2 where the command line is wrong.
inline int teach(int argc, char** argv, Lesson lesson, void (*show)(const Lesson&)) {
  const std::string program = std::string(argv[0]).substr(std::string(argv[0]).rfind('/') + 1);
  const auto wrong = [&program](const std::string& what) {
    std::fprintf(stderr, "%s: %s; --help lists the options\n", program.c_str(), what.c_str());
    return 2;
  };
  bool help = false;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--help" || option == "-h") {
      help = true;
    } else if (option == "--html" && i + 1 < argc) {
      lesson.html = argv[++i];
    } else if (option.starts_with("--html=")) {
      lesson.html = option.substr(7);
    } else {
      return wrong(option == "--html" ? "--html needs a FILE" : "'" + option + "' is no option of this lesson");
    }
    if (!help && lesson.html.empty()) return wrong("--html needs a FILE");
  }
  try {
    say(lesson.title);
    say(lesson.see);
    std::printf("\n");
    if (help) {
      std::printf("usage: %s [--help] [--html FILE]\n\n  --html FILE  Write the run as a page to step through\n",
                  program.c_str());
    } else {
      show(lesson);
      if (!lesson.html.empty()) std::printf("\nTo step through it, open %s in a browser.\n", lesson.html.c_str());
    }
    check(std::fflush(stdout) == 0 && std::ferror(stdout) == 0, "the output cannot be written");
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", program.c_str(), error.what());
    return 1;
  }
  return 0;
}

// --- numbers
inline Tensor variable(double value) { return Tensor::scalar(value, {.dtype = float64, .requires_grad = true}); }

// The derivative of f at x by a central difference: no backward pass is asked, only f.
inline double difference(const std::function<double(double)>& f, double x, double h = 1e-5) {
  return (f(x + h) - f(x - h)) / (2 * h);
}

inline const char* mark(bool right) { return right ? "✓" : "✗"; }
inline bool close(double a, double b) { return std::abs(a - b) <= 1e-6 * std::max(std::abs(a), std::abs(b)); }

inline double largest(const Tensor& x) { return max(abs(x.detach())).item(); }
inline double length(const Tensor& x) { return norm(x.detach()).item(); }

// A line a row: "  dx         0.1234  -0.5000".
inline void print(const std::string& label, const Tensor& x) {
  const std::vector<double> values = x.to_vector();
  const std::size_t columns = x.dims() == 0 ? 1 : static_cast<std::size_t>(x.size(-1));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % columns == 0) std::printf("  %-26s", i == 0 ? label.c_str() : "");
    // What rounds to zero has no sign.
    std::printf(" %8.4f%s", std::abs(values[i]) < 5e-5 ? 0.0 : values[i], i % columns == columns - 1 ? "\n" : "");
  }
}

// Rows of numbers in shades, from ' ' for exactly 0 to '@' for the largest of all; each number `wide` signs.
inline void heat_map(const std::string& label, const std::vector<std::vector<double>>& rows, int wide = 2) {
  constexpr std::string_view kShades = ".:-=+*#%@";
  double most = 0;
  for (const auto& row : rows) most = std::max(most, *std::max_element(row.begin(), row.end()));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::printf("    %s %zu |", label.c_str(), r);
    for (double value : rows[r]) {
      const char sign = value == 0 ? ' ' : kShades[static_cast<std::size_t>(8.999 * value / most)];
      std::printf("%s", std::string(static_cast<std::size_t>(wide), sign).c_str());
    }
    std::printf("|\n");
  }
}

}  // namespace prenorm::lessons
