// Lesson 8: LayerNorm as one op.
//
// The same function as in lesson 7, with its backward worked out on paper (autograd/ops/layer_norm.cpp has the steps):
//   dx = (g - mean(g) - x_hat mean(g x_hat)) / sigma,  g = gamma dy
// Read it as: take away the part of g that is the same for all features, take away the part along x_hat, divide the
// rest by sigma. The division means that a stream twice as large gets half the gradient: a norm slows down what has
// grown.

#include "lessons/lesson.h"

using namespace prenorm;
using namespace prenorm::lessons;

void show(const Lesson& lesson) {
  const Tensor x = Tensor::of({1, 0, 2, -1}, {.dtype = float64, .requires_grad = true});
  const Tensor dy = Tensor::of({0.5, -0.2, 0.1, 0.3}, {.dtype = float64});

  view::Recording run;
  const Tensor y = layer_norm(x);
  y.backward(dy);
  run.name({{"x", x}, {"y", y}});
  lesson.page(run);

  // The formula in its parts; without scale (gamma) g is dy.
  const Tensor x_hat = y.detach();
  const Tensor sigma = sqrt(var(x.detach(), {}, 0) + 1e-5);
  const Tensor mean_part = expand(mean(dy), {4}), x_hat_part = x_hat * mean(dy * x_hat);
  print("g", dy);
  print("- mean part", mean_part);
  print("- x_hat part", x_hat_part);
  print("= what passes", dy - mean_part - x_hat_part);
  print("/ sigma", sigma);
  print("= dx", (dy - mean_part - x_hat_part) / sigma);
  print("dx, by backward", x.grad());

  const Tensor again = x.detach().requires_grad_();
  const Tensor by_primitives = (again - mean(again)) / sqrt(var(again, {}, 0) + 1e-5);
  by_primitives.backward(dy);
  std::printf("\n  largest difference from lesson 7's primitives: %.0e\n", largest(x.grad() - again.grad()));

  const Tensor twice = (2 * x.detach()).requires_grad_();
  layer_norm(twice).backward(dy);
  std::printf("\n");
  print("dx at x", x.grad());
  print("dx at 2x", twice.grad());
  std::printf("  ratio of their lengths: %.4f\n", length(twice.grad()) / length(x.grad()));
}

int main(int argc, char** argv) {
  return teach(argc, argv,
               {.title = "Lesson 8: LayerNorm as one op",
                .see = "The fused op gives lesson 7's gradient; where x is doubled, dx halves."},
               show);
}
