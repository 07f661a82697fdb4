// y = x * mask / (1 - p): each element is kept with probability 1 - p, and what is kept is enlarged so that the mean
// of y over all masks is x (inverted scaling: evaluation has nothing to do).
//
//   mask is data: dx = dy * mask / (1 - p), the same function of dy. With p = 1 nothing is kept and both are 0.

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

template <class T>
PRENORM_VECTORIZED void drop(std::int64_t n, const T* x, const bool* mask, T scale, T* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * (mask[i] ? scale : T{0});
}

// Inputs x and mask (bool, the shape of x): whoever draws the mask hands it in, so that the node can be run again.
struct Dropout final : Node {
  explicit Dropout(double p) : p(p) {}
  const double p;

  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "dropout",
                                 .formula = "y = x * mask / (1 - p)",
                                 .derivative = "dx = dy * mask / (1 - p)",
                                 .reference = "Srivastava et al. 2014, Dropout, section 10 (scaled in training)",
                                 .file = "autograd/ops/dropout.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    const Tensor x = dense(in[0]), mask = dense(in[1]);
    Tensor y = Tensor::empty(x.shape(), x.dtype());
    dispatch_float("dropout", x.dtype(), [&](auto t) {
      using T = decltype(t);
      const T scale = p < 1 ? static_cast<T>(1 / (1 - p)) : T{0};
      const T* from = x.data<T>();
      const bool* keep = mask.data<bool>();
      T* to = y.mutable_data<T>();
      parallel_rows(x.numel(), 4, [=](std::int64_t begin, std::int64_t end) {
        drop(end - begin, from + begin, keep + begin, scale, to + begin);
      });
    });
    return {y};
  }

  Saves saves() const override { return {.inputs = {1}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    dx.add(0, apply_op<Dropout>({dy[0], input(1)}, p)[0]);
  }
};

}  // namespace

Tensor dropout(const Tensor& x, double p, bool training) {
  check(x.defined(), "dropout: x is undefined");
  check(is_float(x.dtype()), "dropout: expected float32 or float64, got ", x.dtype());
  check(p >= 0 && p <= 1, "dropout: a probability is between 0 and 1, got p = ", p);
  if (!training || p == 0) return x;
  return apply_op<Dropout>({x, dropout_mask(x.shape(), p)}, p)[0];
}

}  // namespace prenorm
