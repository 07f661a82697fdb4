// y = x W^T + b, x [..., in], W [out, in], b [out].
//
//   y[r, o] = sum_i x[r, i] W[o, i] + b[o] over all rows r, so
//     dx = dy W              every output that x[r, i] fed
//     dW = dy^T x            every row that W[o, i] served
//     db = sum over r of dy  the same for b, which meets a constant 1 in each row

#include "autograd/blas.h"
#include "autograd/node.h"
#include "autograd/ops/reduce.h"

namespace prenorm {
namespace {

template <class T>
Tensor forward_as(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const std::int64_t R = numel(Shape(x.shape().begin(), x.shape().end() - 1)), in = weight.size(1),
                     out = weight.size(0);
  Shape shape = x.shape();
  shape.back() = out;
  Tensor y = Tensor::empty(shape, x.dtype());  // before operands are copied: a shape that overflows costs no memory
  const Tensor rows = dense(x), w = dense(weight);
  T* result = y.mutable_data<T>();
  if (bias.defined()) {  // the product is then added to the bias: one pass over y less than adding it afterwards
    const Tensor dense_bias = dense(bias);
    const T* b = dense_bias.data<T>();
    parallel_rows(R, out, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) std::copy_n(b, out, result + r * out);
    });
  }
  gemm<T>(false, true, R, out, in, T{1}, rows.data<T>(), in, w.data<T>(), in, T(bias.defined() ? 1 : 0), result, out);
  return y;
}

struct Linear final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "linear",
                                 .formula = "y = x W^T + b",
                                 .derivative = "dx = dy W; dW = dy^T x; db = sum(dy) over the rows",
                                 .reference = "",
                                 .file = "autograd/ops/linear.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    return {
        dispatch_float("linear", in[0].dtype(), [&](auto t) { return forward_as<decltype(t)>(in[0], in[1], in[2]); })};
  }

  Saves saves() const override { return factors(); }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    if (!GradMode::enabled()) {
      return dispatch_float("linear", dy[0].dtype(), [&](auto t) { backward_as<decltype(t)>(dy[0], dx); });
    }
    const std::int64_t in = input_shape(1)[1], out = input_shape(1)[0];
    const std::int64_t R = numel(Shape(dy[0].shape().begin(), dy[0].shape().end() - 1));
    const Tensor rows = reshape(dy[0], {R, out});
    if (dx.needs(0)) dx.add(0, matmul(dy[0], input(1)));
    if (dx.needs(1)) dx.add(1, matmul(transpose(rows, 0, 1), reshape(input(0), {R, in})));
    if (has_input(2) && dx.needs(2)) dx.add(2, sum(rows, {0}));
  }

  // The same products straight into the accumulated gradients.
  template <class T>
  void backward_as(const Tensor& dy, GradientSink& dx) const {
    const Tensor rows = dense(dy);
    const T* d = rows.data<T>();
    const std::int64_t in = input_shape(1)[1], out = input_shape(1)[0];
    const std::int64_t R = numel(Shape(dy.shape().begin(), dy.shape().end() - 1));
    if (dx.needs(0)) {
      const auto [target, fresh] = dx.accumulator(0);
      gemm<T>(false, false, R, in, out, T{1}, d, out, dense(input(1)).data<T>(), in, T(fresh ? 0 : 1),
              target.template mutable_data<T>(), in);
    }
    if (dx.needs(1)) {
      const auto [target, fresh] = dx.accumulator(1);
      gemm<T>(true, false, out, in, R, T{1}, d, out, dense(input(0)).data<T>(), in, T(fresh ? 0 : 1),
              target.template mutable_data<T>(), in);
    }
    if (has_input(2) && dx.needs(2)) {
      const auto [target, fresh] = dx.accumulator(2);
      column_sums(d, R, out, target.template mutable_data<T>(), !fresh);
    }
  }
};

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check_same_dtype("linear", x, weight);
  check(weight.dims() == 2, "linear: weight is [out, in], got ", weight.shape());
  check(x.dims() >= 1 && x.size(-1) == weight.size(1), "linear: x ", x.shape(), " does not fit weight ", weight.shape(),
        ", expected [..., ", weight.size(1), "]");
  if (bias.defined()) {
    check_same_dtype("linear", x, bias);
    check(bias.shape() == Shape{weight.size(0)}, "linear: bias ", bias.shape(), " does not fit weight ", weight.shape(),
          ", expected [", weight.size(0), "]");
  }
  return apply_op<Linear>({x, weight, bias})[0];
}

}  // namespace prenorm
