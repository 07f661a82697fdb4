// y = sum(x) / n over dims, n the number of elements that each mean is made of. NaN where n = 0.
//
//   Every element of x counts 1/n in its mean: dx = dy / n, repeated along the reduced dims.

#include "autograd/node.h"
#include "autograd/ops/reduce.h"

namespace prenorm {
namespace {

struct Mean final : Node {
  Mean(const Dims& dims, bool keepdim) : dims(dims), keepdim(keepdim) {}
  const Dims dims;
  const bool keepdim;

  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "mean",
                                 .formula = "y = sum(x, dims) / n",
                                 .derivative = "dx = expand(dy / n, x)",
                                 .reference = "",
                                 .file = "autograd/ops/mean.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    const Reduced reduced("mean", in[0].shape(), dims);
    return {sum(in[0], dims, keepdim) / static_cast<double>(reduced.n)};
  }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    const Reduced reduced("mean", input_shape(0), dims);
    if (reduced.n == 0) return dx.add(0, zeros(input_shape(0), input_dtype(0)));  // no elements
    const Tensor each = reshape(dy[0], reduced.keepdim_shape) / static_cast<double>(reduced.n);
    dx.add(0, expand(each, input_shape(0)));
  }
};

}  // namespace

Tensor mean(const Tensor& x, const Dims& dims, bool keepdim) {
  check(is_float(x.dtype()), "mean: expected float32 or float64, got ", x.dtype());
  return apply_op<Mean>({x}, dims, keepdim)[0];
}

}  // namespace prenorm
