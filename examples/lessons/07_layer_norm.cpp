// Lesson 7: LayerNorm, from primitives.
//
//   y = (x - mean) / sqrt(var + eps), over the features of one position
//
// x is used three times: in the difference, in the mean, in the variance. So its gradient is a sum of three (lesson 2),
// one a route. Two of them take away: whatever of the gradient would shift all features alike, the mean undoes;
// whatever would stretch them, the variance undoes. What is left sums to zero, and is at right angles to y.

#include "lessons/lesson.h"

using namespace prenorm;
using namespace prenorm::lessons;

constexpr double kEps = 1e-5;

void show(const Lesson& lesson) {
  const Tensor x = Tensor::of({1, 0, 2, -1}, {.dtype = float64, .requires_grad = true});
  const Tensor dy = Tensor::of({0.5, -0.2, 0.1, 0.3}, {.dtype = float64});

  view::Recording run;
  const Tensor mean_x = mean(x);
  const Tensor sigma = sqrt(var(x, {}, /*correction=*/0) + kEps);
  const Tensor y = (x - mean_x) / sigma;
  y.backward(dy);
  run.name({{"x", x}, {"mean", mean_x}, {"sigma", sigma}, {"y", y}});
  lesson.page(run);

  // One route at a time: the other two uses of x are held fast.
  const Tensor fast = x.detach(), fast_mean = mean_x.detach(), fast_sigma = sigma.detach();
  const auto route = [&](const Tensor& along) { return grad({along}, {x}, {dy})[0]; };
  const Tensor direct = route((x - fast_mean) / fast_sigma);
  const Tensor by_mean = route((fast - mean(x)) / fast_sigma);
  const Tensor by_variance = route((fast - fast_mean) / sqrt(var(x, {}, 0) + kEps));
  print("x", fast);
  print("y", y.detach());
  print("dy", dy);
  std::printf("\n");
  print("directly", direct);
  print("+ through the mean", by_mean);
  print("+ through the variance", by_variance);
  print("= their sum", direct + by_mean + by_variance);
  print("dx, by backward", x.grad());
  std::printf("\n  dx sums to %.0e; dx . y is %.0e, for eps keeps y a little short\n", std::abs(sum(x.grad()).item()),
              std::abs(sum(x.grad() * y.detach()).item()));

  // There are two LayerNorms, and they differ.
  const Tensor one = Tensor::of({1, 0, 0, 0}, {.dtype = float64});
  std::printf("\n  Two forms, on [1, 0, 0, 0]:\n");
  print("unbiased, sum / (n - 1)", (one - mean(one)) / (prenorm::std(one) + 1e-6));
  print("standard, sum / n", (one - mean(one)) / sqrt(var(one, {}, 0) + kEps));
}

int main(int argc, char** argv) {
  return teach(argc, argv,
               {.title = "Lesson 7: LayerNorm from primitives",
                .see = "Three routes into x meet, and the gradient that is left sums to zero over the features."},
               show);
}
