// y = x in another dtype: numbers to bool by x != 0, floating-point numbers to int64 by cutting off the fraction.
//
//   Between floating-point types y = x but for rounding, so dx = dy, converted back. Integers have no derivative.

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

struct To final : Node {
  explicit To(DType dtype) : dtype(dtype) {}
  const DType dtype;

  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "to",
                                 .formula = "y = x in another dtype",
                                 .derivative = "dx = dy in x's dtype",
                                 .reference = "",
                                 .file = "autograd/ops/to.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    Tensor y = Tensor::empty(in[0].shape(), dtype);
    return {copy_(y, in[0].detach())};
  }

  void backward(const Tensors& dy, GradientSink& dx) const override { dx.add(0, to(dy[0], input_dtype(0))); }
};

}  // namespace

Tensor to(const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : apply_op<To>({x}, dtype)[0]; }

}  // namespace prenorm
