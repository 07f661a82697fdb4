// How large the gradients are, by depth and by block, in a pre-norm and in a post-norm stack as initialised.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "facts/report.h"
#include "facts/stack.h"

namespace prenorm::facts {
namespace {

// The norm of dL/dW2 in the first and in the last block.
struct Norms {
  double first, last;
  double last_over_first() const { return last / first; }
};

Norms gradient_norms(Arrangement arrangement, std::int64_t depth, std::uint64_t seed) {
  const Stack stack(arrangement, depth, seed);
  const Tensor loss = stack.loss(stack.output(stack.streams().back()));
  const Tensors dw2 = grad({loss}, {stack.blocks().front().w2, stack.blocks().back().w2});
  return {std::sqrt(squared_norm(dw2[0])), std::sqrt(squared_norm(dw2[1]))};
}

// Of the least-squares line through (log depth, log norm of the last block's gradient).
double slope(Arrangement arrangement, std::uint64_t seed) {
  double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (std::int64_t depth : kDepths) {
    const double x = std::log(static_cast<double>(depth)), y = std::log(gradient_norms(arrangement, depth, seed).last);
    n += 1;
    sx += x;
    sy += y;
    sxx += x * x;
    sxy += x * y;
  }
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

void gradient_slope(Report& report) {
  report.setting("the stack, depths 2, 4, 8, 16; mean over the seeds");
  report.say(
      "The last block of a post-norm stack gets a gradient of the same size however deep the stack is: slope 0. That "
      "of "
      "a pre-norm stack gets less, as 1/sqrt(L): slope -1/2.");
  const auto mean_slope = [](Arrangement arrangement) {
    return over_seeds([arrangement](std::uint64_t seed) { return slope(arrangement, seed); }).mean;
  };
  report.expect("post-norm: slope of log |dL/dW2| of the last block, log L", mean_slope(Arrangement::post), -0.15,
                0.15);
  report.expect("pre-norm: the same", mean_slope(Arrangement::pre), -0.6, -0.3);
}

void gradient_ratio(Report& report) {
  report.setting("the stack; mean over the seeds");
  report.say("So the two part: the ratio of the last blocks' gradients grows with sqrt(L).");
  double ratio = 0, growth = std::numeric_limits<double>::infinity();
  for (std::int64_t depth : kDepths) {
    const double before = ratio;
    ratio = over_seeds([depth](std::uint64_t seed) {
              return gradient_norms(Arrangement::post, depth, seed).last /
                     gradient_norms(Arrangement::pre, depth, seed).last;
            }).mean;
    if (before > 0) growth = std::min(growth, ratio / before);
    report.tell("post-norm / pre-norm, L = " + std::to_string(depth), number(ratio));
  }
  report.at_least("the last of these", ratio, 2.5);
  report.at_least("smallest factor from one to the next: it always grows", growth, 1);
}

void gradient_by_block(Report& report) {
  report.setting("the stack, L = 16");
  report.say(
      "Within a stack: post-norm's gradients are largest near the loss, pre-norm's near the input. For post-norm this "
      "holds on average only: single seeds go either way.");
  const auto ratio = [](Arrangement arrangement) {
    return [arrangement](std::uint64_t seed) { return gradient_norms(arrangement, 16, seed).last_over_first(); };
  };
  const Seeds post = over_seeds(ratio(Arrangement::post)), pre = over_seeds(ratio(Arrangement::pre));
  report.at_least("post-norm: |dL/dW2|, last block / first, mean of 6 seeds", post.mean, 1.2);
  report.tell("post-norm: the smallest and the largest of them", number(post.smallest) + ", " + number(post.largest));
  const Seeds many = over_seeds(ratio(Arrangement::post), 100);
  report.at_least("post-norm: geometric mean of 100 seeds", many.geometric_mean, 1.2);
  report.at_most("pre-norm: mean of 6 seeds", pre.mean, 0.6);
  report.tell("pre-norm: the smallest and the largest of them", number(pre.smallest) + ", " + number(pre.largest));
}

}  // namespace

std::vector<Fact> gradient_facts() {
  constexpr std::string_view kXiong =
      "Xiong et al. 2020, On Layer Normalization in the Transformer Architecture, theorem 1";
  return {{"gradient_slope", "the last block's gradient against depth", kXiong, gradient_slope},
          {"gradient_ratio", "post-norm's gradient over pre-norm's grows with depth", kXiong, gradient_ratio},
          {"gradient_by_block", "where in the stack gradients are large", "Xiong et al. 2020, the same, section 3",
           gradient_by_block}};
}

}  // namespace prenorm::facts
