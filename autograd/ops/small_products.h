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

// c[r][l] = sum over s < depth of a[r][s] b[s][l], or a[s][r] b[s][l], for `rows` rows and one vector of columns, whose
// sums stay in registers.
template <int rows, bool transpose_a, class Real>
[[gnu::always_inline]] inline void multiply_tile(std::int64_t depth, Rows<const Real> a, Rows<const Real> b,
                                                 Rows<Real> c) {
  Real sums[rows][kLanes<Real>] = {};
  for (std::int64_t s = 0; s < depth; ++s) {
    const Real* row = b[s];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const Real factor = transpose_a ? a[s][r] : a[r][s];
#pragma omp simd
      for (std::int64_t l = 0; l < kLanes<Real>; ++l) sums[r][l] += factor * row[l];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    Real* row = c[r];
#pragma omp simd
    for (std::int64_t l = 0; l < kLanes<Real>; ++l) row[l] = sums[r][l];
  }
}

// Rows of c whose sums are formed at the same time: enough to hide how long an addition takes, but no more than there
// are registers for. A vector of kLanes elements fills one of the 32 registers of AVX-512, or two of the 16 of AVX2.
inline std::int64_t rows_at_once() {
#if defined(__x86_64__) && defined(__GNUC__)
  static const std::int64_t rows = __builtin_cpu_supports("avx512f") ? 8 : 4;
  return rows;
#else
  return 4;
#endif
}

// c [rows, columns] = op(a) b for at most 8 rows; columns is a multiple of kLanes.
template <bool transpose_a, class Real>
[[gnu::always_inline]] inline void multiply(std::int64_t rows, std::int64_t columns, std::int64_t depth,
                                            Rows<const Real> a, Rows<const Real> b, Rows<Real> c) {
  const auto row = [&](std::int64_t r) { return transpose_a ? a.from(0, r) : a.from(r, 0); };
  for (std::int64_t l = 0; l < columns; l += kLanes<Real>) {
    if (rows == 8) {
      multiply_tile<8, transpose_a>(depth, a, b.from(0, l), c.from(0, l));
      continue;
    }
    std::int64_t r = 0;
    for (; r + 4 <= rows; r += 4) multiply_tile<4, transpose_a>(depth, row(r), b.from(0, l), c.from(r, l));
    for (; r < rows; ++r) multiply_tile<1, transpose_a>(depth, row(r), b.from(0, l), c.from(r, l));
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
