// Lesson 3: the tape, and why it runs backwards.
//
// A tape is a list of what was computed, in order, where each step knows how to pass its gradient on to its inputs.
// Backward runs the steps in reverse. Here is one written out, for L = h * exp(h) with h = sin(x), and run in every
// order there is. A step that runs before all of its own gradient has arrived passes on too little.

#include <functional>
#include <vector>

#include "autograd/scope.h"
#include "lessons/lesson.h"

using namespace prenorm;
using namespace prenorm::lessons;

struct Step {
  char name;  // of the value it made
  std::function<void()> pass_on;
};

Tensor f(const Tensor& x) {
  const Tensor h = sin(x);
  const Tensor e = exp(h);
  return h * e;
}

void show(const Lesson& lesson) {
  const double x = 0.8, h = std::sin(x), e = std::exp(h);
  double dx = 0, dh = 0, de = 0, dL = 0;
  const std::vector<Step> tape{{'h', [&] { dx += std::cos(x) * dh; }},       // h = sin(x)
                               {'e', [&] { dh += e * de; }},                 // e = exp(h)
                               {'L', [&] { dh += e * dL, de += h * dL; }}};  // L = h * e
  const double moved = difference([](double at) { return std::sin(at) * std::exp(std::sin(at)); }, x);

  std::printf("  h = sin(x), e = exp(h), L = h e, at x = 0.8; by difference dL/dx = %.8f\n\n", moved);
  std::vector<std::size_t> order{2, 1, 0};  // the reverse of the tape first
  do {
    dx = dh = de = 0, dL = 1;
    for (std::size_t step : order) tape[step].pass_on();
    std::printf("  in the order %c %c %c: dL/dx = %.8f   %s\n", tape[order[0]].name, tape[order[1]].name,
                tape[order[2]].name, dx, mark(close(dx, moved)));
  } while (std::prev_permutation(order.begin(), order.end()));

  // The engine, twice: as it is, and for the page in the order L h e. There sin runs when only the part from L has come
  // to h, e of e + e h: it passes on 1 / (1 + h) of what it should.
  view::Recording run;
  const Tensor right = variable(x), wrong = variable(x);
  {
    const Scope scope("right");
    f(right).backward();
  }
  std::printf("\n  the engine's dL/dx = %.8f   %s\n", right.grad().item(), mark(close(right.grad().item(), moved)));
  const std::int64_t wrong_sin = run.size() + 1;  // after the second x, the next values that are recorded
  {
    const Scope scope("wrong");
    f(wrong).backward();
  }
  run.name({{"right.x", right}, {"wrong.x", wrong}});
  char fault[64];
  std::snprintf(fault, sizeof fault, "factor %.10g", 1 / (1 + h));
  lesson.page(run, {.note = "Twice the same. In \"right\" backward runs the tape in reverse. In \"wrong\" the sine has "
                            "run before the exponential: that part is missing from what it passes on, 1 / (1 + h) of "
                            "it is left, and it shows ✗.",
                    .break_it = view::BreakIt{.op = "", .node = wrong_sin, .fault = fault}});
}

int main(int argc, char** argv) {
  return teach(argc, argv,
               {.title = "Lesson 3: the tape and its reverse order",
                .see = "Of all orders in which the steps can pass their gradients on, only the reverse one gives the "
                       "right number: ✓."},
               show);
}
