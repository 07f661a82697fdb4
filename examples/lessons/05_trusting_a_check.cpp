// Lesson 5: when to trust a finite difference.
//
// (f(x + h) - f(x - h)) / 2h is not the derivative. It is off by about h^2, because f is not a straight line; so h
// should be small. And f itself is only known to about 16 digits, so the difference is off by about 1e-16 / h; so h
// should not be small. The sum of both is a V. A check stands at its bottom, and its tolerance must leave room for what
// is there.

#include "autograd/gradcheck.h"
#include "lessons/lesson.h"

using namespace prenorm;
using namespace prenorm::lessons;

void show(const Lesson& lesson) {
  manual_seed(0);
  const Tensor x = randn({8}, {.dtype = float64, .requires_grad = true});

  std::string v;  // for the page
  double best = 1, best_step = 0;
  std::printf("  y = tanh(x) at eight values of x: the worst relative error\n\n");
  for (const auto& [step, worst] : sweep([](const Tensors& in) { return tanh(in[0]); }, Tensors{x})) {
    const int bar = static_cast<int>(std::lround(4 * std::max(0.0, 12 + std::log10(worst))));
    std::printf("  h = %.0e   %.1e  %s\n", step, worst, std::string(static_cast<std::size_t>(bar), '#').c_str());
    char text[64];
    std::snprintf(text, sizeof text, "; h = %.0e: %.1e", step, worst);
    v += text;
    if (worst < best) best = worst, best_step = step;
  }
  std::printf("\n  the bottom of the V: error %.1e at h = %.0e\n", best, best_step);

  view::Recording run;
  tanh(x).backward(ones({8}, float64));
  run.name(x, "x");
  lesson.page(run, {.note = "The differences beside the gradients are taken with a step at the bottom of the V. Worst "
                            "relative error by step" +
                            v + "."});
}

int main(int argc, char** argv) {
  return teach(
      argc, argv,
      {.title = "Lesson 5: trusting a check",
       .see = "The error of a finite difference against its step h is a V: too large a step bends, too small a "
              "one drowns in rounding."},
      show);
}
