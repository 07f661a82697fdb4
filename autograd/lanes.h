// Sums over a row, in vector registers. For use within PRENORM_VECTORIZED functions, into which all of this is inlined.
//
//   const T squares = lane_sum<T>(n, [=](int64_t i) { return x[i] * x[i]; });
//   const auto [sum_g, sum_gx] = lane_sums<T>(n, [=](int64_t i, T& g, T& gx) { g = dy[i]; gx = dy[i] * x[i]; });
//
// There are kLanes partial sums, whatever the width of the processor's vectors, added up in a fixed order. A plain
// loop with `#pragma omp simd reduction` does the same for one sum, but GCC keeps two of them in memory; and it makes
// no vector code where a loop's body chooses or hands values about as a struct.
#pragma once

#include <array>
#include <cstdint>

namespace prenorm {

// Elements that are worked on at a time: a cache line, and the widest vector register.
template <class T>
inline constexpr std::int64_t kLanes = 64 / sizeof(T);

template <class T>
[[gnu::always_inline]] inline T add_lanes(const T* part) {
  T total = 0;
#pragma omp simd reduction(+ : total)
  for (std::int64_t l = 0; l < kLanes<T>; ++l) total += part[l];
  return total;
}

// The two sums over i < n of what f(i, a, b) sets a and b to. f may also write to arrays at i.
template <class T, class F>
[[gnu::always_inline]] inline std::array<T, 2> lane_sums(std::int64_t n, F f) {
  constexpr std::int64_t W = kLanes<T>;
  T part_a[W] = {}, part_b[W] = {};
  std::int64_t i = 0;
  for (; i + W <= n; i += W) {
#pragma omp simd
    for (std::int64_t l = 0; l < W; ++l) {
      T a, b;
      f(i + l, a, b);
      part_a[l] += a;
      part_b[l] += b;
    }
  }
  T rest_a = 0, rest_b = 0;
  for (; i < n; ++i) {
    T a, b;
    f(i, a, b);
    rest_a += a;
    rest_b += b;
  }
  return {rest_a + add_lanes(part_a), rest_b + add_lanes(part_b)};
}

// The sum over i < n of f(i).
template <class T, class F>
[[gnu::always_inline]] inline T lane_sum(std::int64_t n, F f) {
  return lane_sums<T>(n, [=](std::int64_t i, T& a, T& b) {
    a = f(i);
    b = 0;
  })[0];
}

}  // namespace prenorm
