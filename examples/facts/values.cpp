// The values of the residual stream, and how far the output moves when all weights do.

#include <cmath>
#include <string>

#include "autograd/grad_mode.h"
#include "autograd/random.h"
#include "facts/report.h"
#include "facts/stack.h"

namespace prenorm::facts {
namespace {

// Of the last stream; mean over the seeds.
double mean_square(Arrangement arrangement, std::int64_t depth) {
  const NoGrad no_grad;
  return over_seeds([=](std::uint64_t seed) {
           return squared_norm(Stack(arrangement, depth, seed).streams().back()) / (kLength * kFeatures);
         })
      .mean;
}

void stream(Report& report) {
  report.setting("the stack; mean over the seeds");
  report.say(
      "Each block adds variance to the pre-norm stream: 1/2 by the feed-forward, up to 1 by attention, which averages "
      "over positions. So the stream grows as L, and what one block adds weighs ever less. In the post-norm stack "
      "every sum is normalised.");
  for (std::int64_t depth : kDepths) {
    const double L = static_cast<double>(depth);
    report.expect("pre-norm: mean square of the stream, L = " + std::to_string(depth),
                  mean_square(Arrangement::pre, depth), 1 + L / 2, 1 + 3 * L / 2);
  }
  for (std::int64_t depth : kDepths) {
    report.expect("post-norm: the same, L = " + std::to_string(depth), mean_square(Arrangement::post, depth), 0.999,
                  1.001);
  }
}

// |change of the output|^2 when every weight gets 1 % of noise; mean over the seeds.
double change(Arrangement arrangement, std::int64_t depth) {
  const NoGrad no_grad;
  return over_seeds([=](std::uint64_t seed) {
           const Stack stack(arrangement, depth, seed);
           const Stack moved = stack.with_noise(0.01);
           return squared_norm(moved.output(moved.streams().back()) - stack.output(stack.streams().back()));
         })
      .mean;
}

void amplification(Report& report) {
  report.setting(
      "the stack; each weight is moved by normal noise of 1 % of the weights' own size; mean over the seeds");
  report.say(
      "A step of the optimiser moves all weights at once. How much the output moves (squared, as a variance) grows as "
      "L in a post-norm stack, so 8 times from 2 to 16, and as log L in a pre-norm stack, so 4 times at most; "
      "DeepNorm's "
      "scales hold it down.");
  const auto growth = [](Arrangement arrangement) { return change(arrangement, 16) / change(arrangement, 2); };
  report.at_least("post-norm: |change of the output|^2, L = 16 over L = 2", growth(Arrangement::post), 5);
  report.at_most("pre-norm: the same", growth(Arrangement::pre), 4);
  report.at_most("DeepNorm: the same", growth(Arrangement::deep_norm), 1);
}

}  // namespace

std::vector<Fact> value_facts() {
  return {{"stream", "the pre-norm stream grows with depth",
           "Xiong et al. 2020, On Layer Normalization in the Transformer Architecture, lemma 2", stream},
          {"amplification", "how noise on the weights reaches the output",
           "Liu et al. 2020, Understanding the Difficulty of Training Transformers, section 4", amplification}};
}

}  // namespace prenorm::facts
