// Lesson 1: the chain rule, on numbers.
//
// y is computed from x in three steps. Each step knows its own derivative; the chain rule multiplies them. Backward
// does just that: it starts with dy/dy = 1 and walks back, one step at a time. Whether the product is right can be seen
// without any calculus: move x a little, and look how far y moves.

#include "lessons/lesson.h"

using namespace prenorm;
using namespace prenorm::lessons;

void show(const Lesson& lesson) {
  view::Recording run;
  const Tensor x = variable(0.8);
  const Tensor a = sin(x);   // da/dx = cos(x)
  const Tensor b = exp(a);   // db/da = exp(a)
  const Tensor y = sqrt(b);  // dy/db = 1 / (2 sqrt(b))
  y.backward();
  run.name({{"x", x}, {"a", a}, {"b", b}, {"y", y}});
  lesson.page(run);

  const double da = std::cos(x.item()), db = std::exp(a.item()), dy = 1 / (2 * std::sqrt(b.item()));
  std::printf("  x            = %.6f\n", x.item());
  std::printf("  a = sin(x)   = %.6f    da/dx = cos(x)          = %.6f\n", a.item(), da);
  std::printf("  b = exp(a)   = %.6f    db/da = exp(a)          = %.6f\n", b.item(), db);
  std::printf("  y = sqrt(b)  = %.6f    dy/db = 1 / (2 sqrt(b)) = %.6f\n\n", y.item(), dy);

  const double gradient = x.grad().item();
  const double moved = difference([](double at) { return std::sqrt(std::exp(std::sin(at))); }, x.item());
  std::printf("  by hand      dy/dx = dy/db db/da da/dx                = %.12f\n", dy * db * da);
  std::printf("  by backward  x.grad()                                 = %.12f\n", gradient);
  std::printf("  by moving x  (y(x + h) - y(x - h)) / 2h,  h = 0.00001 = %.12f\n", moved);
  std::printf("  gradient and difference agree to %.1f digits\n", -std::log10(std::abs(gradient - moved) / gradient));
}

int main(int argc, char** argv) {
  return teach(argc, argv,
               {.title = "Lesson 1: the chain rule",
                .see = "The gradient that backward finds and a finite difference agree to about ten digits."},
               show);
}
