// y_i = log softmax(x)_i = x_i - max(x) - log(sum_j e^(x_j - max(x))) along one dimension.
//
//   dy_i/dx_j = 1[i = j] - p_j with p = softmax(x) = e^y, so with the cotangent g of y
//     dx_j = sum_i g_i (1[i = j] - p_j) = g_j - p_j sum_i g_i.

#include <cmath>
#include <limits>

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"
#include "autograd/vec_math.h"

namespace prenorm {
namespace {

template <class T>
PRENORM_VECTORIZED void log_softmax_rows(std::int64_t rows, std::int64_t n, const T* x, T* y) {
  for (std::int64_t r = 0; r < rows; ++r, x += n, y += n) {
    T largest = -std::numeric_limits<T>::infinity();
#pragma omp simd reduction(max : largest)
    for (std::int64_t i = 0; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
    T total = 0;
#pragma omp simd reduction(+ : total)
    for (std::int64_t i = 0; i < n; ++i) total += vec::exp(x[i] - largest);
    const T log_total = vec::log(total);
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] - largest - log_total;
  }
}

template <class T>
PRENORM_VECTORIZED void log_softmax_backward_rows(std::int64_t rows, std::int64_t n, const T* y, const T* dy, T* dx) {
  for (std::int64_t r = 0; r < rows; ++r, y += n, dy += n, dx += n) {
    T total = 0;
#pragma omp simd reduction(+ : total)
    for (std::int64_t i = 0; i < n; ++i) total += dy[i];
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) dx[i] = dy[i] - vec::exp(y[i]) * total;
  }
}

struct LogSoftmax final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "log_softmax",
                                 .formula = "y = x - max(x) - log(sum(exp(x - max(x))))",
                                 .derivative = "dx = dy - exp(y) * sum(dy)",
                                 .reference = "",
                                 .file = "autograd/ops/log_softmax.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    return {dispatch_float("log_softmax", in[0].dtype(), [&](auto t) {
      using T = decltype(t);
      const Tensor x = dense(in[0]);
      Tensor y = Tensor::empty(x.shape(), x.dtype());
      const std::int64_t n = x.size(-1);
      const T* from = x.data<T>();
      T* to = y.mutable_data<T>();
      if (n > 0) {
        parallel_rows(x.numel() / n, n * 8, [=](std::int64_t begin, std::int64_t end) {
          log_softmax_rows(end - begin, n, from + begin * n, to + begin * n);
        });
      }
      return y;
    })};
  }

  Saves saves() const override { return {.outputs = {0}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    const Tensor y = output(0);
    if (GradMode::enabled()) return dx.add(0, dy[0] - exp(y) * sum(dy[0], {-1}, true));
    Tensor out = Tensor::empty(y.shape(), y.dtype());
    dispatch_float("log_softmax", y.dtype(), [&](auto t) {
      using T = decltype(t);
      const Tensor g = dense(dy[0]);
      const std::int64_t n = y.size(-1);
      const T *log_p = y.data<T>(), *from = g.data<T>();
      T* to = out.mutable_data<T>();
      if (n == 0) return;
      parallel_rows(y.numel() / n, n * 8, [=](std::int64_t begin, std::int64_t end) {
        log_softmax_backward_rows(end - begin, n, log_p + begin * n, from + begin * n, to + begin * n);
      });
    });
    dx.add(0, std::move(out));
  }
};

}  // namespace

Tensor log_softmax(const Tensor& x, std::int64_t dim) {
  check(x.defined(), "log_softmax: x is undefined");
  const std::int64_t d = normalize_dim("log_softmax", dim, x.dims());
  if (x.dims() == 0) return reshape(log_softmax(reshape(x, {1})), {});
  if (d != x.dims() - 1) return transpose(log_softmax(transpose(x, d, -1)), d, -1);
  return apply_op<LogSoftmax>({x})[0];
}

}  // namespace prenorm
