// What the norms over rows share: the loops around their kernels. The formulas stand in layer_norm.cpp (standard form),
// layer_norm_std.cpp (unbiased form) and rms_norm.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "autograd/lanes.h"
#include "autograd/node.h"
#include "autograd/ops/reduce.h"

namespace prenorm {

// x - mean(x) along the last dimension, as ops. The row's first element is taken off before the mean is formed: it
// changes nothing in exact arithmetic (so it counts as a constant for derivatives), but a rounded mean would leave a
// constant row of float32 a residue as large as eps, and a row far from zero would lose its digits.
Tensor centred(const Tensor& x);

// A block of dense rows, as a forward kernel sees it. An absent scale is all ones, an absent shift all zeros.
template <class T>
struct NormForward {
  std::int64_t rows, n;
  const T *x, *scale, *shift;
  T* y;
  T *mean, *spread;  // [rows], statistics that backward wants to know again
};

// The same for a backward kernel; dx is null where not wanted. dscale and dshift [n] are sums over this block, which
// the kernel adds to.
template <class T>
struct NormBackward {
  std::int64_t rows, n;
  const T *x, *scale, *mean, *spread, *dy;
  T* dx;
  T *dscale, *dshift;
};

// Input `index` as dense rows for a kernel, or [n] times `value` where it is absent.
inline Tensor dense_or(const Tensor& given, std::int64_t n, double value, DType dtype) {
  return given.defined() ? dense(given) : full({n}, value, dtype);
}

// Runs kernel(NormForward<T>) over blocks of x [R, n]. Inputs x and, maybe undefined, scale and shift [n]; outputs y
// [R, n], mean [R], spread [R].
template <class Kernel>
Tensors norm_forward(std::string_view op, const Tensors& in, Kernel kernel) {
  const Tensor x = dense(in[0]);
  const std::int64_t R = x.size(0), n = x.size(1);
  const Tensor scale = dense_or(in[1], n, 1, x.dtype());
  const Tensor shift = dense_or(in.size() > 2 ? in[2] : Tensor(), n, 0, x.dtype());
  const Tensor y = Tensor::empty(x.shape(), x.dtype()), mean = Tensor::empty({R}, x.dtype()),
               spread = Tensor::empty({R}, x.dtype());
  dispatch_float(op, x.dtype(), [&](auto t) {
    using T = decltype(t);
    const T *from = x.data<T>(), *weights = scale.data<T>(), *shifts = shift.data<T>();
    T *to = y.mutable_data<T>(), *m = mean.mutable_data<T>(), *s = spread.mutable_data<T>();
    parallel_rows(n > 0 ? R : 0, n * 8, [=](std::int64_t begin, std::int64_t end) {
      kernel(NormForward<T>{end - begin, n, from + begin * n, weights, shifts, to + begin * n, m + begin, s + begin});
    });
  });
  return {y, mean, spread};
}

// Runs kernel(add, NormBackward<T>) over blocks of rows, straight into the gradients of inputs 0 (x), 1 (scale) and 2
// (shift); `add` is a std::bool_constant: whether dx is added to rather than written. Needs inputs 0 and 1 and outputs
// 1 and 2 saved. Sums of blocks are added in order: the same bits with any number of threads.
template <class Kernel>
void norm_backward(const Node& node, const Tensor& cotangent, GradientSink& dx, Kernel kernel) {
  const Tensor dy = dense(cotangent), x = dense(node.input(0)), mean = node.output(1), spread = node.output(2);
  const std::int64_t n = x.size(1), R = n > 0 ? x.size(0) : 0;
  const Tensor scale = dense_or(node.has_input(1) ? node.input(1) : Tensor(), n, 1, x.dtype());
  const auto wanted = [&](std::int64_t i) { return i < node.input_count() && node.has_input(i) && dx.needs(i); };
  const GradientSink::Accumulator out = wanted(0) ? dx.accumulator(0) : GradientSink::Accumulator{};
  const std::int64_t blocks = block_count(R, n * 8);
  const Tensor parts = Tensor::empty({2, blocks, n}, x.dtype());
  dispatch_float(node.info().name, x.dtype(), [&](auto t) {
    using T = decltype(t);
    T* to = out.tensor.defined() ? out.tensor.mutable_data<T>() : nullptr;
    T *dscale = parts.mutable_data<T>(), *dshift = dscale + blocks * n;
    const T *from = x.data<T>(), *weights = scale.data<T>(), *d = dy.data<T>(), *m = mean.data<T>(),
            *s = spread.data<T>();
    parallel_for(blocks, [&](std::int64_t block) {
      const auto [begin, end] = block_range(R, blocks, block);
      std::fill_n(dscale + block * n, n, T{0});
      std::fill_n(dshift + block * n, n, T{0});
      const NormBackward<T> rows{end - begin,        n,
                                 from + begin * n,   weights,
                                 m + begin,          s + begin,
                                 d + begin * n,      to != nullptr ? to + begin * n : nullptr,
                                 dscale + block * n, dshift + block * n};
      out.fresh ? kernel(std::false_type{}, rows) : kernel(std::true_type{}, rows);
    });
    for (int i : {1, 2}) {
      if (!wanted(i)) continue;
      const auto [target, fresh] = dx.accumulator(i);  // one after the other: scale and shift may be the same tensor
      column_sums(i == 1 ? dscale : dshift, blocks, n, target.template mutable_data<T>(), !fresh);
    }
  });
}

}  // namespace prenorm
