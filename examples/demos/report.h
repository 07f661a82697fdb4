// What a demonstration tells: sentences, and numbers that must come out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "autograd/tensor.h"

namespace prenorm::demos {

class Report {
 public:
  // Prints a sentence or two, broken into lines.
  void say(std::string_view text) const;
  // Prints a line with both texts. They must be the same.
  void expect(std::string_view what, std::string_view expected, std::string_view got);

  int compared() const { return compared_; }
  int different() const { return different_; }

 private:
  int compared_ = 0, different_ = 0;
};

// A demonstration: a name to call it by, a title, and the function that shows it.
struct Demo {
  std::string_view name;
  std::string_view title;
  void (*show)(Report&);
};

std::vector<Demo> norm_demos();       // norms.cpp
std::vector<Demo> residual_demos();   // residuals.cpp
std::vector<Demo> model_demos();      // models.cpp
std::vector<Demo> mistake_demos();    // mistakes.cpp
std::vector<Demo> precision_demos();  // precision.cpp

// --- numbers as they are printed
std::string fixed(double value, int decimals);                       // "0.59"
std::string fixed(const std::vector<double>& values, int decimals);  // "0.59 4.22 2.29"
std::string fixed(const Tensor& values, int decimals);               // the same of its elements
std::string scientific(double value);                                // "4.59e-02"
std::string grouped(std::int64_t value);                             // "18,915,328"
std::string shape_text(const Tensor& x);                             // "[1, 6, 512]"
std::string yes_no(bool value);                                      // "yes"
// "0" where it is exactly that, else scientific.
std::string exactly_zero(double value);

double largest(const Tensor& x);  // the largest absolute value
double largest_difference(const Tensor& a, const Tensor& b);

}  // namespace prenorm::demos
