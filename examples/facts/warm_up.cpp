// Training with and without a slow start of the learning rate, in both orders of norm and branch.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "autograd/ops.h"
#include "autograd/random.h"
#include "facts/report.h"
#include "nn/tiny_lm.h"
#include "optim/adam.h"
#include "optim/schedule.h"

namespace prenorm::facts {
namespace {

constexpr int kSteps = 200;
constexpr int kWarmup = 100;
constexpr std::uint64_t kSeeds = 6;
constexpr double kLearned = 0.1;  // a loss below this is called learned; guessing has log 50 = 3.912

// The last loss on the rule "next token = this one + 1, modulo 50".
double train(nn::Order order, bool warm_up, std::uint64_t seed) {
  manual_seed(seed);
  const nn::TinyLM model(50, {.n_layers = 12, .max_len = 8, .order = order});
  optim::Adam adam(model.parameters(), {.lr = 5e-3});
  double last = 0;
  for (int step = 1; step <= kSteps; ++step) {
    const Tensor tokens = mod(randint(0, 50, {8, 1}) + arange(9), 50);
    const Tensor loss = cross_entropy(model(slice(tokens, 1, 0, 8)), slice(tokens, 1, 1, 9));
    last = loss.item();
    adam.zero_grad();
    loss.backward();
    if (warm_up) adam.set_lr_factor(optim::linear_warmup(step, kWarmup));
    adam.step();
  }
  return last;
}

void warm_up(Report& report) {
  report.setting(
      "float32, TinyLM(50) with 12 blocks, d = 64, 4 heads; the rule next = this + 1 modulo 50, B = T = 8; Adam, "
      "learning rate 5e-3, at once or after a linear rise over 100 steps; last loss of 200 steps; nothing is asked of "
      "these numbers");
  report.say("Guessing has a loss of log 50 = 3.912.");
  for (const nn::Order order : {nn::Order::pre, nn::Order::post}) {
    for (const bool slowly : {false, true}) {
      std::string losses;
      std::uint64_t learned = 0;
      for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        const double loss = train(order, slowly, seed);
        losses += number(std::round(loss * 1e4) / 1e4) + " ";
        learned += loss < kLearned ? 1 : 0;
      }
      report.tell(std::string(order == nn::Order::pre ? "pre-norm, " : "post-norm, ") +
                      (slowly ? "with warm-up" : "without warm-up"),
                  losses + " learned " + std::to_string(learned) + " of " + std::to_string(kSeeds));
    }
  }
}

}  // namespace

std::vector<Fact> training_facts() {
  return {{"warm_up", "pre-norm trains without warm-up, post-norm may not",
           "Xiong et al. 2020, On Layer Normalization in the Transformer Architecture", warm_up}};
}

}  // namespace prenorm::facts
