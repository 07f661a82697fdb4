// Lesson 10: causal attention.
//
// Each position mixes the values of the positions it may look at, with weights from a softmax of q . k. In a language
// model a position may look at itself and at what came before: later scores are masked before the softmax, so that
// their weights are exactly 0. What has no weight has no influence, so the gradient of an output with respect to a
// later position is exactly zero, not just small. That is the test for a mask that leaks.

#include "lessons/lesson.h"

using namespace prenorm;
using namespace prenorm::lessons;

constexpr std::int64_t T = 6, D = 4;

// |dL/dx_s| for L = u . y_t, one row a position t, one column a position s.
std::vector<std::vector<double>> influence(const Tensor& x, const Tensor& wq, const Tensor& wk, const Tensor& wv,
                                           bool causal) {
  const Tensor u = randn({D}, {.dtype = float64});
  std::vector<std::vector<double>> rows;
  for (std::int64_t t = 0; t < T; ++t) {
    const Tensor y =
        scaled_dot_product_attention(matmul(x, wq), matmul(x, wk), matmul(x, wv), {}, {.causal = causal}).y;
    rows.push_back(norm(grad({select(y, 0, t)}, {x}, {u})[0], {1}).to_vector());
  }
  return rows;
}

void print_influence(const char* title, const std::vector<std::vector<double>>& rows) {
  int zeros = 0;
  std::printf("  %s\n", title);
  for (std::size_t t = 0; t < rows.size(); ++t) {
    std::printf("    output %zu ", t);
    for (double value : rows[t]) std::printf(value == 0 ? "      0" : " %6.3f", value);
    std::printf("\n");
    for (std::size_t s = t + 1; s < rows.size(); ++s) zeros += rows[t][s] == 0 ? 1 : 0;
  }
  heat_map("output", rows);
  std::printf("    exactly zero, of the 15 to later positions: %d\n\n", zeros);
}

void show(const Lesson& lesson) {
  manual_seed(0);
  const RandomOptions leaf{.dtype = float64, .requires_grad = true};
  const Tensor x = randn({T, D}, leaf), wq = randn({D, D}, leaf), wk = randn({D, D}, leaf), wv = randn({D, D}, leaf);

  std::printf("  |d output_t / d x_s|, t down, s across:\n\n");
  print_influence("causal", influence(x, wq, wk, wv, true));
  print_influence("without a mask", influence(x, wq, wk, wv, false));

  // The page: the gradient of output 2 alone.
  view::Recording run;
  const Tensor y = scaled_dot_product_attention(matmul(x, wq), matmul(x, wk), matmul(x, wv), {}, {.causal = true}).y;
  sum(select(y, 0, 2)).backward();
  run.name({{"x", x}, {"wq", wq}, {"wk", wk}, {"wv", wv}, {"y", y}});
  lesson.page(run, {.note = "The loss is the sum of output 2. In the gradient of x rows 3, 4 and 5 are exactly zero."});
  std::printf("  d(sum of output 2) / dx, a row a position:\n");
  print("", x.grad());
}

int main(int argc, char** argv) {
  return teach(argc, argv,
               {.title = "Lesson 10: causal attention",
                .see = "The gradient of an output with respect to later positions is exactly zero."},
               show);
}
