// Lesson 6: softmax and cross-entropy.
//
// Each row of logits z becomes probabilities p = exp(z) / sum(exp(z)); the loss is -log p[target], averaged over the
// rows. Alone, both have clumsy derivatives. Together nearly all cancels:
//   -log p_t = log(sum(exp(z))) - z_t,  so its derivative by z_j is p_j - (1 if j = t, else 0),
// or (p - y) / count with the mean over the rows, y the targets as ones and zeros. What was predicted, less what was
// true. Both p and y sum to 1 in each row, so the gradient sums to 0: what one logit gains, the others lose.

#include "lessons/lesson.h"

using namespace prenorm;
using namespace prenorm::lessons;

void show(const Lesson& lesson) {
  manual_seed(0);
  const Tensor z = randn({3, 4}, {.dtype = float64, .requires_grad = true});
  const Tensor target = Tensor::of({2, 0, 3}, {.dtype = int64});

  view::Recording run;
  const Tensor loss = cross_entropy(z, target);
  loss.backward();
  run.name({{"z", z}, {"target", target}, {"loss", loss}});
  lesson.page(run);

  const Tensor p = softmax(z.detach());
  const Tensor y = to(eq(unsqueeze(target, 1), arange(4)), float64);
  const Tensor by_hand = (p - y) / 3;
  print("logits z", z.detach());
  print("p = softmax(z)", p);
  print("y, the targets", y);
  std::printf("\n");
  print("(p - y) / 3", by_hand);
  print("dz, by backward", z.grad());
  std::printf("\n");
  print("row sums of dz", unsqueeze(sum(z.grad(), {1}), 0));
  std::printf("\n  loss %.6f, largest difference of the gradients %.0e, largest |row sum| %.0e\n", loss.item(),
              largest(z.grad() - by_hand), largest(sum(z.grad(), {1})));
}

int main(int argc, char** argv) {
  return teach(argc, argv,
               {.title = "Lesson 6: softmax and cross-entropy",
                .see = "The gradient of the logits is (p - y) / count, and each of its rows sums to zero."},
               show);
}
