// y = ln x: -inf at 0, NaN below.
//
//   x = e^y, so dx/dy = e^y = x and dy/dx = 1 / x: dx = dy / x.

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"
#include "autograd/vec_math.h"

namespace prenorm {
namespace {

struct Log final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "log",
                                 .formula = "y = ln x",
                                 .derivative = "dx = dy / x",
                                 .reference = "",
                                 .file = "autograd/ops/log.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    return {map("log", in[0], [](auto x) { return vec::log(x); })};
  }

  Saves saves() const override { return {.inputs = {0}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override { dx.add(0, dy[0] / input(0)); }
};

}  // namespace

Tensor log(const Tensor& x) { return apply_op<Log>({x})[0]; }

}  // namespace prenorm
