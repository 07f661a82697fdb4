// y = -x, so dx = -dy.

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

struct Neg final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{
        .name = "neg", .formula = "y = -x", .derivative = "dx = -dy", .reference = "", .file = "autograd/ops/neg.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    return {dispatch_number("neg", in[0].dtype(),
                            [&](auto t) { return map_as<decltype(t)>(in[0], [](auto x) { return -x; }); })};
  }

  void backward(const Tensors& dy, GradientSink& dx) const override { dx.add(0, -dy[0]); }
};

}  // namespace

Tensor neg(const Tensor& x) { return apply_op<Neg>({x})[0]; }

Tensor operator-(const Tensor& x) { return neg(x); }

}  // namespace prenorm
