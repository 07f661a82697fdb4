// y = x with another shape, the elements in the same row-major order. A view where the memory allows it.
//
//   y has the elements of x, so dx has those of dy: dx = reshape(dy, x).

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

struct Reshape final : Node {
  explicit Reshape(const Shape& shape) : shape(shape) {}
  const Shape shape;

  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "reshape",
                                 .formula = "y = x in another shape",
                                 .derivative = "dx = reshape(dy, x)",
                                 .reference = "",
                                 .file = "autograd/ops/reshape.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    Strides strides;
    if (reshape_strides(in[0].shape(), in[0].strides(), shape, strides)) return {in[0].view(shape, strides)};
    return {dense(in[0]).view(shape, contiguous_strides(shape))};
  }

  void backward(const Tensors& dy, GradientSink& dx) const override { dx.add(0, reshape(dy[0], input_shape(0))); }
};

}  // namespace

Tensor reshape(const Tensor& x, const Shape& shape) {
  const Shape target = infer_shape("reshape", shape, x.shape());
  if (target == x.shape()) return x;
  return apply_op<Reshape>({x}, target)[0];
}

}  // namespace prenorm
