// Sums over a row in vector registers. For use within PRENORM_VECTORIZED functions, into which all of this is inlined.
//
//   const auto [sum_g, sum_gx] = sums<T, 2>(n, [&](int64_t i) { return std::array{g[i], g[i] * x[i]}; });
//
// There are kLanes partial sums, whatever the width of the processor's vectors, added up in a fixed order. A plain
// loop with `#pragma omp simd reduction` does the same for one sum, but GCC keeps two of them in memory.
#pragma once

#include <array>
#include <cstdint>

namespace prenorm {

// Elements that are worked on at a time: a cache line, and the widest vector register.
template <class T>
inline constexpr std::int64_t kLanes = 64 / sizeof(T);

// The sums over i < n of what f(i) returns, a std::array<T, count>. f may also write to arrays at i.
template <class T, int count, class F>
[[gnu::always_inline]] inline std::array<T, count> sums(std::int64_t n, F f) {
  constexpr std::int64_t W = kLanes<T>;
  T part[count][W] = {};
  std::int64_t i = 0;
  for (; i + W <= n; i += W) {
#pragma omp simd
    for (std::int64_t l = 0; l < W; ++l) {
      const std::array<T, count> terms = f(i + l);
#pragma GCC unroll 8
      for (int c = 0; c < count; ++c) part[c][l] += terms[c];
    }
  }
  std::array<T, count> totals = {};
  for (; i < n; ++i) {
    const std::array<T, count> terms = f(i);
    for (int c = 0; c < count; ++c) totals[c] += terms[c];
  }
  for (int c = 0; c < count; ++c) {
    T total = 0;
#pragma omp simd reduction(+ : total)
    for (std::int64_t l = 0; l < W; ++l) total += part[c][l];
    totals[c] += total;
  }
  return totals;
}

}  // namespace prenorm
