#include "autograd/vec_math.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "autograd/vectorized.h"

using namespace prenorm;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

template <class T>
PRENORM_VECTORIZED void exp_row(int64_t n, const T* x, T* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = vec::exp(x[i]);
}

template <class T>
PRENORM_VECTORIZED void log_row(int64_t n, const T* x, T* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = vec::log(x[i]);
}

template <class T>
PRENORM_VECTORIZED void tanh_row(int64_t n, const T* x, T* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = vec::tanh(x[i]);
}

template <class T>
PRENORM_VECTORIZED void erf_row(int64_t n, const T* x, T* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = vec::erf(x[i]);
}

using Row = void (*)(int64_t, const float*, float*);
using Reference = double (*)(double);

struct Function {
  const char* name;
  Row row;
  Reference reference;
  double max_ulp;
};

const Function kFunctions[] = {
    {"exp", exp_row<float>, std::exp, 1.1},
    {"log", log_row<float>, std::log, 1.1},
    {"tanh", tanh_row<float>, std::tanh, 3.0},
    {"erf", erf_row<float>, std::erf, 2.0},
};

float one(Row row, float x) {
  float y;
  row(1, &x, &y);
  return y;
}

// Distance in units of the last place of a float result; 0 for equal infinities and two NaNs.
double ulps(float got, double expected) {
  const float rounded = static_cast<float>(expected);
  if (std::isnan(rounded) || std::isinf(rounded) || !std::isfinite(got)) {
    return got == rounded || (std::isnan(got) && std::isnan(rounded)) ? 0.0 : 1e30;
  }
  int exponent;
  std::frexp(expected, &exponent);
  return std::abs(static_cast<double>(got) - expected) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

// Every `step`-th float of all there are, negative ones, denormals and NaNs included.
std::vector<float> sweep(uint32_t step) {
  std::vector<float> x;
  for (uint64_t bits = 0; bits <= 0xffffffffu; bits += step)
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  return x;
}

}  // namespace

TEST_CASE("float functions keep their error bounds over all floats") {
  const std::vector<float> x = sweep(997);
  std::vector<float> y(x.size());
  for (const Function& f : kFunctions) {
    f.row(static_cast<int64_t>(x.size()), x.data(), y.data());
    double worst = 0;
    float at = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double error = ulps(y[i], f.reference(x[i]));
      if (error > worst) {
        worst = error;
        at = x[i];
      }
    }
    CAPTURE(f.name);
    CAPTURE(at);
    CHECK(worst <= f.max_ulp);
  }
}

TEST_CASE("float functions keep their error bounds in the range that is used most") {
  std::vector<float> x(400'000), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) * 5e-5f - 10.0f;
  for (const Function& f : kFunctions) {
    f.row(static_cast<int64_t>(x.size()), x.data(), y.data());
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) worst = std::max(worst, ulps(y[i], f.reference(x[i])));
    CAPTURE(f.name);
    CHECK(worst <= f.max_ulp);
  }
}

TEST_CASE("values at the edges") {
  for (const Function& f : kFunctions) {
    CAPTURE(f.name);
    CHECK(std::isnan(one(f.row, kNaN)));
    CHECK(std::isnan(one(f.row, -kNaN)));
  }
  CHECK(one(exp_row, kInf) == kInf);
  CHECK(one(exp_row, -kInf) == 0.0f);
  CHECK(one(exp_row, 0.0f) == 1.0f);
  CHECK(one(exp_row, -0.0f) == 1.0f);
  CHECK(one(exp_row, 88.7f) < kInf);
  CHECK(one(exp_row, 88.73f) == kInf);
  CHECK(one(exp_row, 1e30f) == kInf);
  CHECK(one(exp_row, -104.0f) == 0.0f);
  CHECK(one(exp_row, -1e30f) == 0.0f);

  CHECK(one(log_row, 0.0f) == -kInf);
  CHECK(one(log_row, -0.0f) == -kInf);
  CHECK(one(log_row, 1.0f) == 0.0f);
  CHECK(one(log_row, kInf) == kInf);
  CHECK(std::isnan(one(log_row, -1.0f)));
  CHECK(std::isnan(one(log_row, -1e-45f)));
  CHECK(std::isnan(one(log_row, -kInf)));

  for (const Row row : {Row{tanh_row<float>}, Row{erf_row<float>}}) {
    CHECK(std::bit_cast<uint32_t>(one(row, 0.0f)) == 0u);
    CHECK(std::bit_cast<uint32_t>(one(row, -0.0f)) == 0x80000000u);
    for (const float x : {9.02f, 10.0f, 11.0f, 1e10f, 3e38f, kInf}) {
      CHECK(one(row, x) == 1.0f);
      CHECK(one(row, -x) == -1.0f);
    }
  }
  CHECK(one(erf_row, 3.92f) == 1.0f);
  CHECK(one(erf_row, -3.92f) == -1.0f);
}

TEST_CASE("tanh and erf are odd and never leave [-1, 1]") {
  const std::vector<float> x = sweep(5003);
  std::vector<float> minus_x(x.size()), y(x.size()), z(x.size());
  std::transform(x.begin(), x.end(), minus_x.begin(), [](float v) { return -v; });
  for (const Row row : {Row{tanh_row<float>}, Row{erf_row<float>}}) {
    row(static_cast<int64_t>(x.size()), x.data(), y.data());
    row(static_cast<int64_t>(x.size()), minus_x.data(), z.data());
    bool odd = true, within = true;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i])) continue;
      odd &= z[i] == -y[i];
      within &= std::abs(y[i]) <= 1.0f;
    }
    CHECK(odd);
    CHECK(within);
  }
}

TEST_CASE("a result does not depend on its lane") {
  constexpr int64_t kSize = 128;
  std::vector<float> x(kSize), whole(kSize), part(kSize);
  for (const Function& f : kFunctions) {
    CAPTURE(f.name);
    for (int64_t i = 0; i < kSize; ++i) {
      x[static_cast<std::size_t>(i)] = std::sin(static_cast<float>(i)) * (i % 3 == 0 ? 8.0f : 0.9f);
    }
    f.row(kSize, x.data(), whole.data());
    bool same = true;
    for (int64_t offset = 0; offset <= 40; ++offset) {
      for (int64_t length = 1; length <= 40; ++length) {
        f.row(length, x.data() + offset, part.data());
        same &= std::memcmp(part.data(), whole.data() + offset, static_cast<std::size_t>(length) * sizeof(float)) == 0;
      }
    }
    CHECK(same);
  }
}

TEST_CASE("double functions are those of the C library") {
  std::vector<double> x, y(4);
  for (const double v : {-3.5, -0.1, 0.0, 0.7, 2.0, 12.0}) {
    exp_row(1, &v, y.data());
    log_row(1, &v, y.data() + 1);
    tanh_row(1, &v, y.data() + 2);
    erf_row(1, &v, y.data() + 3);
    CHECK(y[0] == std::exp(v));
    CHECK((y[1] == std::log(v) || v < 0));
    CHECK(y[2] == std::tanh(v));
    CHECK(y[3] == std::erf(v));
  }
}
