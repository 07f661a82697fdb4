#include <doctest/doctest.h>

#include <limits>

#include "facts/report.h"

using prenorm::facts::number;
using prenorm::facts::Report;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST_CASE("a number outside its range counts, and so does NaN") {
  Report report;
  report.expect("inside", 1, 0, 1);
  report.at_most("inside", 1, 1);
  report.at_least("inside", 1, 1);
  CHECK(report.compared() == 3);
  CHECK(report.outside() == 0);

  report.expect("above", 1.001, 0, 1);
  report.expect("below", -0.001, 0, 1);
  report.at_most("above", 2e-12, 1e-12);
  report.at_least("below", 0.899, 0.9);
  CHECK(report.outside() == 4);

  report.expect("NaN", kNaN, 0, 1);
  report.at_most("NaN", kNaN, 1);
  report.at_least("NaN", kNaN, 1);
  CHECK(report.outside() == 7);
  CHECK(report.compared() == 10);

  Report::tell("of this nothing is asked", "5");
  CHECK(report.compared() == 10);
}

TEST_CASE("numbers are printed short") {
  CHECK(number(0) == "0");
  CHECK(number(0.04458) == "0.04458");
  CHECK(number(20.8) == "20.8");
  CHECK(number(-1.5) == "-1.5");
  CHECK(number(5.1e-11) == "5.1e-11");
  CHECK(number(kNaN) == "nan");
}
