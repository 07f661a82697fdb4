// How to define an op of your own, outside the library, and how to check it: centre, y = x - mean(x) along each row.
//
//   Row by row, y_i = x_i - sum_j x_j / n. An x_j reaches y on two routes: its own y_j, and the mean that is taken from
//   every y_i. So dx_j = dy_j - sum_i dy_i / n, or dx = dy - mean(dy).

#include <iostream>

#include "autograd/gradcheck.h"
#include "autograd/node.h"
#include "autograd/ops.h"

using namespace prenorm;

// An op is a node: what it computes, and how gradients go back. (Where backward needs values of the forward again,
// saves() names them; see autograd/node.h.) A backward that is written in tensor ops can be differentiated once more.
struct Centre : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "centre",
                                 .formula = "y = x - mean(x)",
                                 .derivative = "dx = dy - mean(dy)",
                                 .reference = "",
                                 .file = "examples/own_op.cpp"};
    return info;
  }
  Tensors forward(const Tensors& in) const override { return {in[0] - mean(in[0], {-1}, true)}; }
  void backward(const Tensors& dy, GradientSink& dx) const override { dx.add(0, dy[0] - mean(dy[0], {-1}, true)); }
};
Tensor centre(const Tensor& x) { return apply_op<Centre>({x})[0]; }

// The same with a mistake that is easily made: the route through the mean is forgotten.
struct WrongCentre final : Centre {
  void backward(const Tensors& dy, GradientSink& dx) const override { dx.add(0, dy[0]); }
};
Tensor wrong_centre(const Tensor& x) { return apply_op<WrongCentre>({x})[0]; }

int main() {
  manual_seed(0);
  const Tensor x = randn({2, 4}, {.dtype = float64, .requires_grad = true});

  // First and second derivatives against differences, element by element.
  const GradcheckReport right = gradcheck([](const Tensors& in) { return centre(in[0]); }, {{"x", x}});
  std::cout << "centre:\n  " << right.message << "\n\n";

  // A failure tells where the gradient is wrong, by how much, and what the errors look like.
  const GradcheckReport wrong = gradcheck([](const Tensors& in) { return wrong_centre(in[0]); }, {{"x", x}});
  std::cout << "wrong_centre:\n  " << wrong.message << '\n';

  return right.passed && !wrong.passed ? 0 : 1;
}
