// y = e^x.
//
//   dy/dx = e^x = y, so dx = dy * y: the output is all that backward needs.

#include <cmath>

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"
#include "autograd/vec_math.h"

namespace prenorm {
namespace {

struct Exp final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "exp",
                                 .formula = "y = e^x",
                                 .derivative = "dx = dy * y",
                                 .reference = "",
                                 .file = "autograd/ops/exp.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    return {map("exp", in[0], [](auto x) { return vec::exp(x); })};
  }

  Saves saves() const override { return {.outputs = {0}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override { dx.add(0, dy[0] * output(0)); }
};

}  // namespace

Tensor exp(const Tensor& x) { return apply_op<Exp>({x})[0]; }

}  // namespace prenorm
