// exp, log, tanh and erf for loops that the compiler turns into vector code.
//
// The float versions are polynomials without branches, inlined into the caller, so that a `#pragma omp simd` loop in a
// PRENORM_VECTORIZED function computes a whole vector at a time and a result does not depend on its lane. (The C
// library's vector functions are used by GCC only under -ffast-math, and differ between vectors and tails.) The double
// versions call the C library: float64 is there for checks, where exact matters more than fast.
//
// Polynomials: minimax fits (weighted least squares with Lawson's reweighting, 600 Chebyshev nodes, 40-digit reference
// values), each coefficient rounded to float in turn and the higher ones fitted again. The errors given are the largest
// over all floats, with and without fused multiply-adds, against the C library in double. NaN gives NaN.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace prenorm::vec {
namespace detail {

// ln 2 in two parts: products of the first with an exponent are exact.
inline constexpr float kLn2Hi = 0x1.62e4p-1f, kLn2Lo = 1.42860677e-6f;

// 2^n for n in [-126, 127]. Unsigned: for a NaN, n is arbitrary.
[[gnu::always_inline]] inline float pow2(int32_t n) {
  return std::bit_cast<float>((static_cast<uint32_t>(n) + 127u) << 23);
}

// exp(x) = 2^n (1 + q), |q| < 0.42.
struct ExpParts {
  float q;
  int32_t n;
};

// For |x| < 2^21. n = round(x / ln 2), r = x - n ln 2, q = r + r^2 P(r) with P of degree 4.
[[gnu::always_inline]] inline ExpParts exp_parts(float x) {
  // Adding 1.5 * 2^23 rounds to an integer, which appears in the low bits.
  constexpr float kRound = 0x1.8p23f;
  const float shifted = x * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * kLn2Hi) - n * kLn2Lo;
  float p = 0.00138207339f;
  p = p * r + 0.00836867746f;
  p = p * r + 0.0416682661f;
  p = p * r + 0.166665211f;
  p = p * r + 0.49999994f;
  const uint32_t bits = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRound);
  return {(r * r) * p + r, static_cast<int32_t>(bits)};
}

}  // namespace detail

// e^x. Within 1.02 ulp. +inf above 88.72, denormals below -87.33, 0 below -103.97.
[[gnu::always_inline]] inline float exp(float x) {
  // Keeps n in range; both comparisons let NaN through.
  x = x < -104.0f ? -104.0f : x;
  x = x > 89.0f ? 89.0f : x;
  const auto [q, n] = detail::exp_parts(x);
  const int32_t half = n >> 1;  // in two steps, as 2^n may be out of range where e^x is not
  return (1.0f + q) * detail::pow2(half) * detail::pow2(n - half);
}

// Natural logarithm. Within 0.94 ulp, denormals included. log(0) = -inf, log(x < 0) = NaN, log(inf) = inf.
// x = 2^n (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), log(1 + f) = f - f^2 / 2 + f^3 P(f) with P of degree 7.
[[gnu::always_inline]] inline float log(float x) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const bool denormal = x < std::numeric_limits<float>::min();
  const uint32_t bits = std::bit_cast<uint32_t>(denormal ? x * 0x1p23f : x);
  constexpr uint32_t kSqrtHalf = 0x3f3504f3;  // the bits of sqrt(1/2)
  const int32_t exponent = static_cast<int32_t>(bits - kSqrtHalf) >> 23;
  const float f = std::bit_cast<float>(bits - (static_cast<uint32_t>(exponent) << 23)) - 1.0f;
  const float n = static_cast<float>(exponent - (denormal ? 23 : 0));
  float p = -0.0763639957f;
  p = p * f + 0.127621993f;
  p = p * f + -0.131596133f;
  p = p * f + 0.142015815f;
  p = p * f + -0.166234091f;
  p = p * f + 0.200012416f;
  p = p * f + -0.250008196f;
  p = p * f + 0.333333313f;
  float y = (f * f) * (p * f - 0.5f) + f;
  y = n * detail::kLn2Lo + y;
  y = n * detail::kLn2Hi + y;
  y = x == kInf ? kInf : y;
  y = x > 0.0f ? y : std::numeric_limits<float>::quiet_NaN();
  return x == 0.0f ? -kInf : y;
}

// Hyperbolic tangent. Within 2.7 ulp; exactly +-1 from |x| = 9.02 on.
// m / (m + 2) with m = e^(2|x|) - 1 = 2^n q + (2^n - 1), where nothing cancels.
[[gnu::always_inline]] inline float tanh(float x) {
  const float size = std::fabs(x);
  const auto [q, n] = detail::exp_parts(2.0f * (size > 10.0f ? 10.0f : size));
  const float scale = detail::pow2(n);
  const float m = scale * q + (scale - 1.0f);
  return std::copysign(m / (m + 2.0f), x);
}

// Error function. Within 1.3 ulp; exactly +-1 from |x| = 3.92 on.
// |x| < 0.9: x + x P(x^2) with P of degree 5. Else 1 - exp(G(|x|)), where G, of degree 6, fits log(1 - erf) up to 4.
[[gnu::always_inline]] inline float erf(float x) {
  const float size = std::fabs(x);
  const float u = x * x;
  float p = -0.000605246169f;
  p = p * u + 0.00500416011f;
  p = p * u + -0.0267732851f;
  p = p * u + 0.112819761f;
  p = p * u + -0.376125067f;
  p = p * u + 0.128379151f;
  const float t = size > 4.0f ? 4.0f : size;
  float g = 0.000198213078f;
  g = g * t + -0.00306544686f;
  g = g * t + 0.0223151091f;
  g = g * t + -0.104113571f;
  g = g * t + -0.636976123f;
  g = g * t + -1.12779725f;
  g = g * t + -0.000166444806f;
  const auto [q, n] = detail::exp_parts(g);
  const float tail = 1.0f - (1.0f + q) * detail::pow2(n);
  return size < 0.9f ? p * x + x : std::copysign(tail, x);
}

[[gnu::always_inline]] inline double exp(double x) { return std::exp(x); }
[[gnu::always_inline]] inline double log(double x) { return std::log(x); }
[[gnu::always_inline]] inline double tanh(double x) { return std::tanh(x); }
[[gnu::always_inline]] inline double erf(double x) { return std::erf(x); }

}  // namespace prenorm::vec
