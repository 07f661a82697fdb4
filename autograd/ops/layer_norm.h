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

// The same for a backward kernel; dx is null where not wanted. dscale and dshift [n] are sums over these rows, which
// the kernel adds to.
template <class T>
struct NormBackward {
  std::int64_t rows, n;
  const T *x, *scale, *mean, *spread, *dy;
  T* dx;
  T *dscale, *dshift;
};

// A scale or shift, dense, or [n] times `value` where it is absent.
inline Tensor dense_or(const Tensor& given, std::int64_t n, double value, DType dtype) {
  return given.defined() ? dense(given) : full({n}, value, dtype);
}

// The shape of one value a row of x [..., n].
inline Shape rows_shape(const Shape& x) { return Shape(x.begin(), x.end() - 1); }

// f(x), a norm over the last dimension, over the last `dims` of them together.
template <class F>
Tensor over_last(std::int64_t dims, const Tensor& x, F f) {
  if (dims == 1) return f(x);
  Shape flat(x.shape().begin(), x.shape().end() - dims);
  flat.push_back(numel(Shape(x.shape().end() - dims, x.shape().end())));
  return reshape(f(reshape(x, flat)), x.shape());
}

// Runs kernel(NormForward<T>) over blocks of rows of x [..., n]. Inputs x and, maybe undefined, scale and shift [n];
// outputs y [..., n], mean [...], spread [...].
template <class Kernel>
Tensors norm_forward(std::string_view op, const Tensors& in, Kernel kernel) {
  const Tensor x = dense(in[0]);
  const Shape rows = rows_shape(x.shape());
  const std::int64_t R = numel(rows), n = x.size(-1);
  const Tensor scale = dense_or(in[1], n, 1, x.dtype());
  const Tensor shift = dense_or(in.size() > 2 ? in[2] : Tensor(), n, 0, x.dtype());
  const auto statistic = [&] { return n > 0 ? Tensor::empty(rows, x.dtype()) : zeros(rows, x.dtype()); };
  const Tensor y = Tensor::empty(x.shape(), x.dtype()), mean = statistic(), spread = statistic();
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
  const std::int64_t n = x.size(-1), R = n > 0 ? x.numel() / n : 0;
  const Tensor scale = dense_or(node.has_input(1) ? node.input(1) : Tensor(), n, 1, x.dtype());
  const auto wanted = [&](std::int64_t i) { return i < node.input_count() && node.has_input(i) && dx.needs(i); };
  const GradientSink::Accumulator out = wanted(0) ? dx.accumulator(0) : GradientSink::Accumulator{};
  // Few blocks, as each has sums of its own.
  constexpr std::int64_t kMostBlocks = 32;
  const std::int64_t blocks = std::min(block_count(R, n * 8), kMostBlocks);
  // dscale and dshift side by side, a pair for each block: in T within short runs of rows, wide across them.
  constexpr std::int64_t kRun = 16;
  const Tensor runs = Tensor::empty({blocks, 2 * n}, x.dtype()), totals = zeros({blocks, 2 * n}, float64);
  dispatch_float(node.info().name, x.dtype(), [&](auto t) {
    using T = decltype(t);
    T* to = out.tensor.defined() ? out.tensor.mutable_data<T>() : nullptr;
    T* all_runs = runs.mutable_data<T>();
    double* sums = totals.mutable_data<double>();
    const T *from = x.data<T>(), *weights = scale.data<T>(), *d = dy.data<T>(), *m = mean.data<T>(),
            *s = spread.data<T>();
    parallel_for(blocks, [&](std::int64_t block) {
      const auto [first, last] = block_range(R, blocks, block);
      T* run = all_runs + block * 2 * n;
      std::fill_n(run, 2 * n, T{0});
      for (std::int64_t begin = first; begin < last; begin += kRun) {
        const NormBackward<T> rows{std::min(kRun, last - begin),
                                   n,
                                   from + begin * n,
                                   weights,
                                   m + begin,
                                   s + begin,
                                   d + begin * n,
                                   to != nullptr ? to + begin * n : nullptr,
                                   run,
                                   run + n};
        out.fresh ? kernel(std::false_type{}, rows) : kernel(std::true_type{}, rows);
        end_run(2 * n, run, sums + block * 2 * n);
      }
    });
    for (std::int64_t block = 1; block < blocks; ++block) end_run(2 * n, sums + block * 2 * n, sums);
    for (int i : {1, 2}) {
      if (!wanted(i)) continue;
      const auto [target, fresh] = dx.accumulator(i);  // one after the other: scale and shift may be the same tensor
      T* gradient = target.template mutable_data<T>();
      for (std::int64_t c = 0; c < n; ++c) {
        const T sum = blocks > 0 ? static_cast<T>(sums[(i - 1) * n + c]) : T{0};
        gradient[c] = fresh ? sum : gradient[c] + sum;
      }
    }
  });
}

}  // namespace prenorm
