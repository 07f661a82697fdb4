// Loops over the elements of one or two tensors, with broadcasting. The kernels of all pointwise ops; nothing is
// recorded.
//
//   Tensor y = map(x, [](auto v) { return v * v; });
//   Tensor y = zip("add", a, b, [](auto p, auto q) { return p + q; });
//
// The result type of the callable is the result's dtype (bool for comparisons).
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "autograd/parallel.h"
#include "autograd/vectorized.h"

namespace prenorm {

// x itself where its elements lie in row-major order, else a copy that does. Never recorded; for kernels.
Tensor dense(const Tensor& x);

// A pair of inputs seen over one output shape: dimensions that both step through evenly are merged, so that most calls
// come down to one or two loops. Stride 0 repeats.
struct Broadcast {
  Broadcast(const Shape& out, const Tensor& a, const Tensor& b);

  // The innermost loop.
  std::int64_t n, stride_a, stride_b;
  // The loops around it.
  std::int64_t rows;
  Shape outer, outer_a, outer_b;

  // Offsets of both inputs at row r.
  std::pair<std::int64_t, std::int64_t> at(std::int64_t row) const;
};

namespace detail {

// flatten: f is compiled for the same vector width only if it is inlined, however large it is.

template <class T, class R, class F>
PRENORM_VECTORIZED [[gnu::flatten]] void map_row(std::int64_t n, const T* x, R* y, F f) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
}

template <class T, class R, class F>
PRENORM_VECTORIZED [[gnu::flatten]] void zip_row(std::int64_t n, const T* a, std::int64_t stride_a, const T* b,
                                                 std::int64_t stride_b, R* y, F f) {
  if (stride_a == 1 && stride_b == 1) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
  } else if (stride_a == 1 && stride_b == 0) {
    const T scalar = *b;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = f(a[i], scalar);
  } else if (stride_a == 0 && stride_b == 1) {
    const T scalar = *a;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = f(scalar, b[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = f(a[i * stride_a], b[i * stride_b]);
  }
}

}  // namespace detail

// f of each element. For a known element type; `map` below finds it out.
template <class T, class F>
Tensor map_as(const Tensor& x, F f) {
  using R = decltype(f(T{}));
  const Tensor source = dense(x);
  Tensor y = Tensor::empty(x.shape(), dtype_of<R>());
  const T* in = source.data<T>();
  R* out = y.mutable_data<R>();
  parallel_rows(x.numel(), 4, [=](std::int64_t begin, std::int64_t end) {
    detail::map_row(end - begin, in + begin, out + begin, f);
  });
  return y;
}

// f of each element of a float32 or float64 tensor.
template <class F>
Tensor map(std::string_view op, const Tensor& x, F f) {
  return dispatch_float(op, x.dtype(), [&](auto t) { return map_as<decltype(t)>(x, f); });
}

// f of each pair of elements, broadcast against each other, of one known type.
template <class T, class F>
Tensor zip_as(std::string_view op, const Tensor& a, const Tensor& b, F f) {
  using R = decltype(f(T{}, T{}));
  Tensor y = Tensor::empty(broadcast_shapes(op, a.shape(), b.shape()), dtype_of<R>());
  const Broadcast loop(y.shape(), a, b);
  const T* in_a = a.data<T>();
  const T* in_b = b.data<T>();
  R* out = y.mutable_data<R>();
  if (loop.rows == 1) {
    parallel_rows(loop.n, 4, [&](std::int64_t begin, std::int64_t end) {
      detail::zip_row(end - begin, in_a + begin * loop.stride_a, loop.stride_a, in_b + begin * loop.stride_b,
                      loop.stride_b, out + begin, f);
    });
    return y;
  }
  parallel_rows(loop.rows, loop.n * 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const auto [offset_a, offset_b] = loop.at(row);
      detail::zip_row(loop.n, in_a + offset_a, loop.stride_a, in_b + offset_b, loop.stride_b, out + row * loop.n, f);
    }
  });
  return y;
}

void check_same_dtype(std::string_view op, const Tensor& a, const Tensor& b);

// f of each pair of elements of float32, float64 or int64 tensors.
template <class F>
Tensor zip(std::string_view op, const Tensor& a, const Tensor& b, F f) {
  check_same_dtype(op, a, b);
  return dispatch_number(op, a.dtype(), [&](auto t) { return zip_as<decltype(t)>(op, a, b, f); });
}

// The same for float32 and float64 only.
template <class F>
Tensor zip_float(std::string_view op, const Tensor& a, const Tensor& b, F f) {
  check_same_dtype(op, a, b);
  return dispatch_float(op, a.dtype(), [&](auto t) { return zip_as<decltype(t)>(op, a, b, f); });
}

// A scalar to meet x in a binary op.
inline Tensor scalar_like(const Tensor& x, double value) { return full({}, value, x.dtype()); }

}  // namespace prenorm
