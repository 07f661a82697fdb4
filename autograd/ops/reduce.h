// Reductions: a tensor seen as rows that are reduced to one value each, whatever dimensions were named.
#pragma once

#include <cstdint>
#include <string_view>

#include "autograd/ops/pointwise.h"

namespace prenorm {

// Which dimensions go and which stay. No dims named: all go.
struct Reduced {
  Reduced(std::string_view op, const Shape& shape, const Dims& dims);

  Shape keepdim_shape;   // reduced dims of size 1
  Shape squeezed_shape;  // without them
  std::int64_t rows;     // results
  std::int64_t n;        // elements that each is made of
  Dims order;            // dimensions that stay, then those that go: x permuted so is [rows, n] when dense

  const Shape& shape(bool keepdim) const { return keepdim ? keepdim_shape : squeezed_shape; }
};

// x [...] as a dense [rows, n], copied where its memory lies otherwise. Never recorded.
Tensor as_rows(const Tensor& x, const Reduced& reduced);

// The sum of n values: in T within short runs, in double across them.
template <class T>
PRENORM_VECTORIZED T row_sum(const T* x, std::int64_t n) {
  constexpr std::int64_t kRun = 512;
  double total = 0;
  for (std::int64_t begin = 0; begin < n; begin += kRun) {
    const std::int64_t end = begin + kRun < n ? begin + kRun : n;
    T part = 0;
#pragma omp simd reduction(+ : part)
    for (std::int64_t i = begin; i < end; ++i) part += x[i];
    total += static_cast<double>(part);
  }
  return static_cast<T>(total);
}

// The end of a run of n sums in T: they are added to wide totals, and begin anew from 0.
template <class T, class Wide>
PRENORM_VECTORIZED void end_run(std::int64_t n, T* run, Wide* totals) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    totals[i] += static_cast<Wide>(run[i]);
    run[i] = T{0};
  }
}

// out[c] (+)= sum over r of x[r, c], x dense [rows, columns].
template <class T>
void column_sums(const T* x, std::int64_t rows, std::int64_t columns, T* out, bool add);

// f(row, n) of every row, where row points to n elements of type T.
template <class T, class F>
Tensor reduce_as(const Tensor& x, const Reduced& reduced, bool keepdim, F f) {
  using R = decltype(f(static_cast<const T*>(nullptr), std::int64_t{}));
  const Tensor rows = as_rows(x, reduced);
  Tensor y = Tensor::empty(reduced.shape(keepdim), dtype_of<R>());
  const T* in = rows.data<T>();
  R* out = y.mutable_data<R>();
  const std::int64_t n = reduced.n;
  parallel_rows(reduced.rows, n + 1, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) out[row] = f(in + row * n, n);
  });
  return y;
}

}  // namespace prenorm
