// What the norms over rows share: the loops around their kernels. The formulas stand in layer_norm.cpp (standard form),
// layer_norm_std.cpp (unbiased form) and rms_norm.cpp.
#pragma once

#include <cstdint>
#include <string_view>

#include "autograd/node.h"
#include "autograd/ops/reduce.h"

namespace prenorm {

// x - mean(x) along the last dimension, as ops. The row's first element is taken off before the mean is formed: it
// changes nothing in exact arithmetic (so it counts as a constant for derivatives), but a rounded mean would leave a
// constant row of float32 a residue as large as eps, and a row far from zero would lose its digits.
Tensor centred(const Tensor& x);

// A block of dense rows, as a forward kernel sees it. Scale and shift [n] are null where absent.
template <class T>
struct NormForward {
  std::int64_t rows, n;
  const T *x, *scale, *shift;
  T* y;
  T *mean, *spread;  // [rows], statistics that backward wants to know again
};

// The same for a backward kernel. dx is written, or added to; it and dscale, dshift are null where not wanted. dscale
// and dshift [n] are sums over this block and arrive zeroed.
template <class T>
struct NormBackward {
  std::int64_t rows, n;
  const T *x, *scale, *mean, *spread, *dy;
  T* dx;
  bool add;
  T *dscale, *dshift;
};

// Runs kernel(NormForward<T>) over blocks of x [R, n]. Inputs x and, maybe undefined, scale and shift [n]; outputs y
// [R, n], mean [R], spread [R].
template <class Kernel>
Tensors norm_forward(std::string_view op, const Tensors& in, Kernel kernel) {
  const auto pointer = [](const Tensor& t, auto type) {
    return t.defined() ? t.data<decltype(type)>() : static_cast<const decltype(type)*>(nullptr);
  };
  const Tensor x = dense(in[0]), scale = in[1].defined() ? dense(in[1]) : Tensor(),
               shift = in.size() > 2 && in[2].defined() ? dense(in[2]) : Tensor();
  const std::int64_t R = x.size(0), n = x.size(1);
  const Tensor y = Tensor::empty(x.shape(), x.dtype()), mean = Tensor::empty({R}, x.dtype()),
               spread = Tensor::empty({R}, x.dtype());
  dispatch_float(op, x.dtype(), [&](auto t) {
    using T = decltype(t);
    const NormForward<T> all{R,
                             n,
                             x.data<T>(),
                             pointer(scale, t),
                             pointer(shift, t),
                             y.mutable_data<T>(),
                             mean.mutable_data<T>(),
                             spread.mutable_data<T>()};
    parallel_rows(n > 0 ? R : 0, n * 8, [&](std::int64_t begin, std::int64_t end) {
      kernel(NormForward<T>{end - begin, n, all.x + begin * n, all.scale, all.shift, all.y + begin * n,
                            all.mean + begin, all.spread + begin});
    });
  });
  return {y, mean, spread};
}

// Runs kernel(NormBackward<T>) over blocks of rows, straight into the gradients of inputs 0 (x), 1 (scale) and 2
// (shift). Needs inputs 0 and 1 and outputs 1 and 2 saved. Sums of blocks are added in order: the same bits with any
// number of threads.
template <class Kernel>
void norm_backward(const Node& node, const Tensor& cotangent, GradientSink& dx, Kernel kernel) {
  const Tensor dy = dense(cotangent), x = dense(node.input(0)), mean = node.output(1), spread = node.output(2);
  const Tensor scale = node.has_input(1) ? dense(node.input(1)) : Tensor();
  const std::int64_t n = x.size(1), R = n > 0 ? x.size(0) : 0;
  bool wanted[3];
  for (int i : {0, 1, 2}) wanted[i] = i < node.input_count() && node.has_input(i) && dx.needs(i);
  const GradientSink::Accumulator out = wanted[0] ? dx.accumulator(0) : GradientSink::Accumulator{};
  const std::int64_t blocks = block_count(R, n * 8);
  const Tensor sums = zeros({2, blocks, n}, x.dtype());
  dispatch_float(node.info().name, x.dtype(), [&](auto t) {
    using T = decltype(t);
    const T* weights = scale.defined() ? scale.data<T>() : nullptr;
    T* to = out.tensor.defined() ? out.tensor.mutable_data<T>() : nullptr;
    T* part[] = {nullptr, sums.mutable_data<T>(), sums.mutable_data<T>() + blocks * n};
    const T *from = x.data<T>(), *d = dy.data<T>(), *m = mean.data<T>(), *s = spread.data<T>();
    parallel_for(blocks, [&](std::int64_t block) {
      const auto [begin, end] = block_range(R, blocks, block);
      kernel(NormBackward<T>{end - begin, n, from + begin * n, weights, m + begin, s + begin, d + begin * n,
                             to != nullptr ? to + begin * n : nullptr, !out.fresh,
                             wanted[1] ? part[1] + block * n : nullptr, wanted[2] ? part[2] + block * n : nullptr});
    });
    for (int i : {1, 2}) {
      if (!wanted[i]) continue;
      const auto [target, fresh] = dx.accumulator(i);  // one after the other: scale and shift may be the same tensor
      column_sums(part[i], blocks, n, target.template mutable_data<T>(), !fresh);
    }
  });
}

}  // namespace prenorm
