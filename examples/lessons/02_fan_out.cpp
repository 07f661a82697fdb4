// Lesson 2: a value that is used twice.
//
// x goes into a and into b, and both go into y. So x reaches y along two ways, and its gradient is the sum of what
// comes back along each. The most common mistake in a first autograd engine is to write `grad = part` where it should
// read `grad += part`: then the last part to arrive wins, and the others are lost.

#include "autograd/scope.h"
#include "lessons/lesson.h"

using namespace prenorm;
using namespace prenorm::lessons;

Tensor f(const Tensor& x) {
  const Tensor a = sin(x);
  const Tensor b = exp(x);
  return a * b;
}

void show(const Lesson& lesson) {
  const double at = 0.8;
  const double along_a = std::cos(at) * std::exp(at);  // da/dx * dy/da, dy/da = b
  const double along_b = std::exp(at) * std::sin(at);  // db/dx * dy/db, dy/db = a

  // Backward goes from the newest step to the oldest: the part along b arrives before the part along a.
  double right = 0, wrong = 0;
  for (double part : {along_b, along_a}) {
    right += part;
    wrong = part;
  }
  const double moved = difference([](double x) { return std::sin(x) * std::exp(x); }, at);
  std::printf("  y = sin(x) exp(x) at x = 0.8\n\n");
  std::printf("  along a, the sine:        %.8f\n", along_a);
  std::printf("  along b, the exponential: %.8f\n\n", along_b);
  std::printf("  with +=            dy/dx = %.8f   difference %.8f   %s\n", right, moved, mark(close(right, moved)));
  std::printf("  with =             dy/dx = %.8f   difference %.8f   %s\n", wrong, moved, mark(close(wrong, moved)));

  // The engine, twice: as it is, and for the page with that mistake at the second x.
  view::Recording run;
  const Tensor x = variable(at), wrong_x = variable(at);
  {
    const Scope scope("right");
    f(x).backward();
  }
  std::printf("  the engine's       dy/dx = %.8f   difference %.8f   %s\n", x.grad().item(), moved,
              mark(close(x.grad().item(), moved)));
  const std::int64_t second_x = run.size();  // the next value that is recorded
  {
    const Scope scope("wrong");
    f(wrong_x).backward();
  }
  run.name({{"right.x", x}, {"wrong.x", wrong_x}});
  lesson.page(run, {.note = "Twice the same. In \"right\" the two parts of the gradient of x add up; in \"wrong\" the "
                            "mistake is planted, = for +=, and x shows ✗.",
                    .break_it = view::BreakIt{.op = "", .node = second_x, .fault = "= for +="}});
}

int main(int argc, char** argv) {
  return teach(
      argc, argv,
      {.title = "Lesson 2: fan-out",
       .see = "A value that is used twice gets the sum of two gradients. With = in the place of += one is lost, "
              "and the difference tells: ✗."},
      show);
}
