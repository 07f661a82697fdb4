// Trains a small model for a few steps, as a program outside the source tree would.
#include <iostream>

#include "autograd/ops.h"
#include "autograd/random.h"
#include "autograd/view/recording.h"
#include "nn/tiny_lm.h"
#include "optim/adam.h"

int main() {
  using namespace prenorm;
  manual_seed(0);
  const nn::TinyLM model(10, {.d_model = 16, .n_heads = 2, .n_layers = 1});
  optim::Adam adam(model.parameters(), {.lr = 1e-2});
  double first = 0, last = 0;
  for (int step = 0; step < 50; ++step) {
    const Tensor ids = randint(0, 10, {4, 8});
    const Tensor loss = cross_entropy(model(ids), ids);  // to repeat what it is given
    adam.zero_grad();
    loss.backward();
    adam.step();
    last = loss.item();
    if (step == 0) first = last;
  }
  view::Recording run;
  model(randint(0, 10, {1, 2}));
  std::cout << first << " to " << last << ", " << run.size() << " nodes recorded\n";
  return last < first / 2 && run.size() > 0 ? 0 : 1;
}
