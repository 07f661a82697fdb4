// clone: the same values in memory of their own. contiguous: the same, unless x is row-major without gaps already.
//
//   y = x, so dx = dy.

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

struct Clone final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "clone",
                                 .formula = "y = x",
                                 .derivative = "dx = dy",
                                 .reference = "",
                                 .file = "autograd/ops/clone.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    if (!in[0].is_contiguous()) return {dense(in[0])};
    Tensor y = Tensor::empty(in[0].shape(), in[0].dtype());
    copy_(y, in[0].detach());
    return {y};
  }

  void backward(const Tensors& dy, GradientSink& dx) const override { dx.add(0, dy[0]); }
};

}  // namespace

Tensor clone(const Tensor& x) {
  check(x.defined(), "clone: x is undefined");
  return apply_op<Clone>({x})[0];
}

Tensor contiguous(const Tensor& x) { return x.is_contiguous() ? x : clone(x); }

}  // namespace prenorm
