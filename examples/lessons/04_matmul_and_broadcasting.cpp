// Lesson 4: products of matrices, and a bias that is broadcast.
//
// Y = X W + b, X [3, 2], W [2, 4], b [4]. With g = dL/dY, the chain rule over single numbers
//   dL/dW_ij = sum_r dL/dY_rj dY_rj/dW_ij = sum_r g_rj X_ri
// is again a product, dW = X^T g; likewise dX = g W^T. The bias is added to each of the three rows: it is used three
// times, so its gradient is the sum over the rows. What was broadcast forward is summed backward.

#include "lessons/lesson.h"

using namespace prenorm;
using namespace prenorm::lessons;

void show(const Lesson& lesson) {
  manual_seed(0);
  const RandomOptions leaf{.dtype = float64, .requires_grad = true};
  const Tensor X = randn({3, 2}, leaf), W = randn({2, 4}, leaf), b = randn({4}, leaf);
  const Tensor g = randn({3, 4}, {.dtype = float64});  // what a loss further on might send back

  view::Recording run;
  const Tensor Y = matmul(X, W) + b;
  Y.backward(g);
  run.name({{"X", X}, {"W", W}, {"b", b}, {"Y", Y}});
  lesson.page(run);

  const Tensor dW = matmul(transpose(X, 0, 1), g).detach(), dX = matmul(g, transpose(W, 0, 1)).detach();
  const Tensor db = sum(g, {0});
  print("g = dL/dY", g);
  std::printf("\n");
  print("dW, by backward", W.grad());
  print("X^T g", dW);
  std::printf("\n");
  print("dX, by backward", X.grad());
  print("g W^T", dX);
  std::printf("\n");
  print("db, by backward", b.grad());
  print("column sums of g", db);
  std::printf("\n  largest differences: dW %.0e, dX %.0e, db %.0e\n", largest(W.grad() - dW), largest(X.grad() - dX),
              largest(b.grad() - db));
}

int main(int argc, char** argv) {
  return teach(
      argc, argv,
      {.title = "Lesson 4: matmul and broadcasting",
       .see = "dW = X^T g and dX = g W^T; the gradient of a bias that was added to every row is a column sum."},
      show);
}
