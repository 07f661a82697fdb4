// How to define an op of your own, outside the library, and to check it: silu, y = x * s with s = 1 / (1 + e^-x).
//
//   By the product rule, and ds/dx = s (1 - s):  dy/dx = s + x s (1 - s),  so  dx = dy * (s + x s (1 - s)).

#include <iostream>

#include "autograd/gradcheck.h"
#include "autograd/node.h"
#include "autograd/ops.h"

using namespace prenorm;

// An op is a node: what it computes, which values its backward needs to see again, and its backward. Written in tensor
// ops like here, that backward can be differentiated once more without further work.
struct Silu : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "silu",
                                 .formula = "y = x * s, s = 1 / (1 + exp(-x))",
                                 .derivative = "dx = dy * (s + x * s * (1 - s))",
                                 .reference = "Elfwing, Uchibe, Doya 2017, Sigmoid-Weighted Linear Units",
                                 .file = "examples/own_op.cpp"};
    return info;
  }
  Tensors forward(const Tensors& in) const override { return {in[0] * sigmoid(in[0])}; }
  Saves saves() const override { return {.inputs = {0}}; }
  void backward(const Tensors& dy, GradientSink& dx) const override {
    const Tensor x = input(0), s = sigmoid(x);
    dx.add(0, dy[0] * (s + x * s * (1 - s)));
  }
};
Tensor silu(const Tensor& x) { return apply_op<Silu>({x})[0]; }

// The same with a mistake that is easily made: x is taken for a constant in the second factor.
struct WrongSilu final : Silu {
  void backward(const Tensors& dy, GradientSink& dx) const override { dx.add(0, dy[0] * sigmoid(input(0))); }
};
Tensor wrong_silu(const Tensor& x) { return apply_op<WrongSilu>({x})[0]; }

int main() {
  manual_seed(0);
  const Tensor x = randn({2, 3}, {.dtype = float64, .requires_grad = true});

  // Two derivatives of each element, against differences.
  const GradcheckReport right = gradcheck([](const Tensors& in) { return silu(in[0]); }, {{"x", x}});
  std::cout << "silu:\n  " << right.message << "\n\n";

  // The message tells where the gradient is wrong and by how much.
  const GradcheckReport wrong = gradcheck([](const Tensors& in) { return wrong_silu(in[0]); }, {{"x", x}});
  std::cout << "wrong_silu:\n  " << wrong.message << '\n';

  return right.passed && !wrong.passed ? 0 : 1;
}
