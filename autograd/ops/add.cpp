// y = a + b, broadcast.
//
//   dL/da = dy, dL/db = dy, each summed over the dimensions along which its operand was repeated: an element that went
//   into several sums collects the gradient of all of them.

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

struct Add final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "add",
                                 .formula = "y = a + b",
                                 .derivative = "da = sum_to(dy, a); db = sum_to(dy, b)",
                                 .reference = "",
                                 .file = "autograd/ops/add.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    return {zip("add", in[0], in[1], [](auto a, auto b) { return a + b; })};
  }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    for (int i : {0, 1}) {
      if (dx.needs(i)) dx.add(i, sum_to(dy[0], input_shape(i)));
    }
  }
};

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) { return apply_op<Add>({a, b})[0]; }

Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
Tensor operator+(const Tensor& a, double b) { return add(a, scalar_like(a, b)); }
Tensor operator+(double a, const Tensor& b) { return add(scalar_like(b, a), b); }

}  // namespace prenorm
