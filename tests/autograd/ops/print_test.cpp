#include <iomanip>
#include <sstream>

#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

std::string text_of(const Tensor& x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

TEST_CASE("printing: values, dtype and shape") {
  struct Case {
    Tensor x;
    std::string_view expected;
  };
  const std::vector<Case> cases{
      {Tensor::of({1, 2, 3, 4}, {2, 2}), "[[1, 2], [3, 4]] float32 [2, 2]"},
      {Tensor::of({0.1, -1.0 / 3, 1e-9, 123456789}), "[0.1, -0.333333, 1e-09, 1.23457e+08] float32 [4]"},
      {Tensor::of({NAN, -NAN, INFINITY, -INFINITY}, {.dtype = float64}), "[nan, nan, inf, -inf] float64 [4]"},
      {Tensor::of(std::vector<std::int64_t>{9007199254740993, -1}, {2}, {.dtype = int64}),
       "[9007199254740993, -1] int64 [2]"},
      {Tensor::of({1, 0}, {.dtype = boolean}), "[true, false] bool [2]"},
      {Tensor::scalar(2.5), "2.5 float32 []"},
      {zeros({0}), "[] float32 [0]"},
      {zeros({2, 0}), "[[], []] float32 [2, 0]"},
      {arange(6).view({3, 2}, {1, 3}), "[[0, 3], [1, 4], [2, 5]] int64 [3, 2]"},
      {Tensor(), "undefined tensor"}};
  for (const auto& [x, expected] : cases) CHECK(text_of(x) == expected);
}

TEST_CASE("printing: larger ones with one row a line, in columns") {
  CHECK(text_of(reshape(arange(60), {5, 12}) * 5) ==
        "[[  0,   5,  10,  15,  20,  25,  30,  35,  40,  45,  50,  55],\n"
        " [ 60,  65,  70,  75,  80,  85,  90,  95, 100, 105, 110, 115],\n"
        " [120, 125, 130, 135, 140, 145, 150, 155, 160, 165, 170, 175],\n"
        " [180, 185, 190, 195, 200, 205, 210, 215, 220, 225, 230, 235],\n"
        " [240, 245, 250, 255, 260, 265, 270, 275, 280, 285, 290, 295]] int64 [5, 12]");
}

TEST_CASE("printing: large ones are shortened") {
  CHECK(text_of(arange(1000)) == "[0, 1, 2, ..., 997, 998, 999] int64 [1000]");
  CHECK(text_of(reshape(arange(1000), {100, 10})) ==
        "[[  0,   1,   2, ...,   7,   8,   9],\n"
        " [ 10,  11,  12, ...,  17,  18,  19],\n"
        " [ 20,  21,  22, ...,  27,  28,  29],\n"
        " ...,\n"
        " [970, 971, 972, ..., 977, 978, 979],\n"
        " [980, 981, 982, ..., 987, 988, 989],\n"
        " [990, 991, 992, ..., 997, 998, 999]] int64 [100, 10]");
  CHECK(text_of(zeros({9, 9, 9, 9, 9, 9})).size() < 12000);
}

TEST_CASE("printing: the stream's format is neither used nor changed") {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << std::setfill('*') << Tensor::of({0.123}) << ' ' << 0.123;
  CHECK(out.str() == "[0.123] float32 [1] 0.1");
}

}  // namespace
}  // namespace prenorm
