// y_i = e^(x_i) / sum_j e^(x_j) along one dimension, computed from x - max(x) so that no power overflows.
//
//   dy_i/dx_j = y_i (1[i = j] - y_j), so with the cotangent g of y
//     dx_j = sum_i g_i y_i (1[i = j] - y_j) = y_j (g_j - sum_i g_i y_i).
//   Adding a constant to x changes nothing, so dx sums to zero along the dimension.

#include <algorithm>
#include <cmath>

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"
#include "autograd/vec_math.h"

namespace prenorm {
namespace {

template <class T>
PRENORM_VECTORIZED void softmax_rows(std::int64_t rows, std::int64_t n, const T* x, T* y) {
  for (std::int64_t r = 0; r < rows; ++r, x += n, y += n) {
    T largest = -std::numeric_limits<T>::infinity();
#pragma omp simd reduction(max : largest)
    for (std::int64_t i = 0; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
    T total = 0;
#pragma omp simd reduction(+ : total)
    for (std::int64_t i = 0; i < n; ++i) {
      y[i] = vec::exp(x[i] - largest);
      total += y[i];
    }
    const T scale = 1 / total;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] *= scale;
  }
}

template <class T>
PRENORM_VECTORIZED void softmax_backward_rows(std::int64_t rows, std::int64_t n, const T* y, const T* dy, T* dx) {
  for (std::int64_t r = 0; r < rows; ++r, y += n, dy += n, dx += n) {
    T dot = 0;
#pragma omp simd reduction(+ : dot)
    for (std::int64_t i = 0; i < n; ++i) dot += dy[i] * y[i];
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) dx[i] = y[i] * (dy[i] - dot);
  }
}

struct Softmax final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "softmax",
                                 .formula = "y = exp(x - max(x)) / sum(exp(x - max(x)))",
                                 .derivative = "dx = y * (dy - sum(dy * y))",
                                 .reference = "",
                                 .file = "autograd/ops/softmax.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    return {dispatch_float("softmax", in[0].dtype(), [&](auto t) {
      using T = decltype(t);
      const Tensor x = dense(in[0]);
      Tensor y = Tensor::empty(x.shape(), x.dtype());
      const std::int64_t n = x.size(-1);
      const T* from = x.data<T>();
      T* to = y.mutable_data<T>();
      if (n > 0) {
        parallel_rows(x.numel() / n, n * 8, [=](std::int64_t begin, std::int64_t end) {
          softmax_rows(end - begin, n, from + begin * n, to + begin * n);
        });
      }
      return y;
    })};
  }

  Saves saves() const override { return {.outputs = {0}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    const Tensor y = output(0);
    if (GradMode::enabled()) return dx.add(0, y * (dy[0] - sum(dy[0] * y, {-1}, true)));
    Tensor out = Tensor::empty(y.shape(), y.dtype());
    dispatch_float("softmax", y.dtype(), [&](auto t) {
      using T = decltype(t);
      const Tensor g = dense(dy[0]);
      const std::int64_t n = y.size(-1);
      const T *p = y.data<T>(), *from = g.data<T>();
      T* to = out.mutable_data<T>();
      if (n == 0) return;
      parallel_rows(y.numel() / n, n * 4, [=](std::int64_t begin, std::int64_t end) {
        softmax_backward_rows(end - begin, n, p + begin * n, from + begin * n, to + begin * n);
      });
    });
    dx.add(0, std::move(out));
  }
};

}  // namespace

Tensor softmax(const Tensor& x, std::int64_t dim) {
  check(x.defined(), "softmax: x is undefined");
  const std::int64_t d = normalize_dim("softmax", dim, x.dims());
  if (x.dims() == 0) return reshape(softmax(reshape(x, {1})), {});
  if (d != x.dims() - 1) return transpose(softmax(transpose(x, d, -1)), d, -1);
  return apply_op<Softmax>({x})[0];
}

}  // namespace prenorm
