// Products of matrices that are too small for BLAS, where a call costs more than the product. For use within
// PRENORM_VECTORIZED functions, into which all of this is inlined.
#pragma once

#include <cstdint>

#include "autograd/lanes.h"

namespace prenorm {

// Columns are worked on kLanes at a time; rows of what is multiplied are padded to a multiple of it.
template <class Real>
constexpr std::int64_t padded(std::int64_t n) {
  return (n + kLanes<Real> - 1) / kLanes<Real> * kLanes<Real>;
}

// A matrix in memory: rows that are `stride` elements apart.
template <class Real>
struct Rows {
  Real* data;
  std::int64_t stride;

  Real* operator[](std::int64_t row) const { return data + row * stride; }
  Rows from(std::int64_t row, std::int64_t column) const { return {data + row * stride + column, stride}; }
  operator Rows<const Real>() const { return {data, stride}; }  // NOLINT(google-explicit-constructor)
};

// c[r][l] = sum over s < depth of a[r][s] b[s][l], or a[s][r] b[s][l], for `rows` rows and `lanes` columns, whose sums
// stay in registers. With `halves` = 2 even and odd s have sums of their own: an addition waits for the last but one.
template <int rows, int lanes, int halves, bool transpose_a, class Real>
[[gnu::always_inline]] inline void multiply_tile(std::int64_t depth, Rows<const Real> a, Rows<const Real> b,
                                                 Rows<Real> c) {
  Real sums[halves * rows][lanes];
#pragma GCC unroll 8
  for (int r = 0; r < halves * rows; ++r) {
#pragma omp simd
    for (int l = 0; l < lanes; ++l) sums[r][l] = 0;
  }
  const auto add = [&](std::int64_t s, int first) __attribute__((always_inline)) {
    const Real* row = b[s];
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      const Real factor = transpose_a ? a[s][r] : a[r][s];
#pragma omp simd
      for (int l = 0; l < lanes; ++l) sums[first + r][l] += factor * row[l];
    }
  };
  std::int64_t s = 0;
  for (; s + halves <= depth; s += halves) {
    add(s, 0);
    if constexpr (halves == 2) add(s + 1, rows);
  }
  if (halves == 2 && s < depth) add(s, 0);
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
    Real* row = c[r];
#pragma omp simd
    for (int l = 0; l < lanes; ++l) row[l] = halves == 2 ? sums[r][l] + sums[rows * (halves - 1) + r][l] : sums[r][l];
  }
}

// Whether there are registers for eight vectors of sums: 32 of kLanes elements with AVX-512, 16 of half of that with
// AVX2. An addition takes about four turns of the loop, and two go on at a time.
inline bool many_registers() {
#if defined(__x86_64__) && defined(__GNUC__)
  static const bool many = __builtin_cpu_supports("avx512f") != 0;
  return many;
#else
  return false;
#endif
}

// c [rows, columns] = op(a) b for at most 4 rows; columns is a multiple of kLanes.
template <bool transpose_a, class Real>
[[gnu::always_inline]] inline void multiply(bool many_registers, std::int64_t rows, std::int64_t columns,
                                            std::int64_t depth, Rows<const Real> a, Rows<const Real> b, Rows<Real> c) {
  constexpr int W = kLanes<Real>;
  std::int64_t l = 0;
  if (rows == 4 && many_registers) {
    for (; l + 2 * W <= columns; l += 2 * W) {
      multiply_tile<4, 2 * W, 1, transpose_a>(depth, a, b.from(0, l), c.from(0, l));
    }
    if (l < columns) multiply_tile<4, W, 2, transpose_a>(depth, a, b.from(0, l), c.from(0, l));
    return;
  }
  for (; l < columns; l += W) {
    if (rows == 4) {
      multiply_tile<4, W, 1, transpose_a>(depth, a, b.from(0, l), c.from(0, l));
      continue;
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      multiply_tile<1, W, 1, transpose_a>(depth, transpose_a ? a.from(0, r) : a.from(r, 0), b.from(0, l), c.from(r, l));
    }
  }
}

// to = from, or to += from, element by element, of `columns` elements a row.
template <bool add, class Real>
[[gnu::always_inline]] inline void copy_rows(std::int64_t rows, std::int64_t columns, Rows<const Real> from,
                                             Rows<Real> to) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const Real* x = from[r];
    Real* y = to[r];
    std::int64_t i = 0;
    for (; i + kLanes<Real> <= columns; i += kLanes<Real>) {
#pragma omp simd
      for (std::int64_t l = 0; l < kLanes<Real>; ++l) y[i + l] = add ? y[i + l] + x[i + l] : x[i + l];
    }
    for (; i < columns; ++i) y[i] = add ? y[i] + x[i] : x[i];
  }
}

}  // namespace prenorm
