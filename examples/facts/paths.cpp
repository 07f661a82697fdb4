// Along how many branches the gradient has come to the input of a residual stack.

#include <algorithm>
#include <cstdint>
#include <string>

#include "autograd/ops.h"
#include "facts/report.h"
#include "facts/stack.h"

namespace prenorm::facts {
namespace {

// x_(b+1) = x_b + F_b(x_b), so v passes a sum as v + J_b^T v. With the part that has crossed k branches kept apart,
//   v_k <- v_k + J_b^T v_(k-1),  from the last branch to the first,
// and the v_k at the end add up to the gradient. Returns each one's share of it, v_k . v / |v|^2.
std::vector<double> shares(const Stack& stack) {
  const Tensors x = stack.streams();
  const Tensor last = x.back().detach().requires_grad_();
  Tensors v = grad({stack.loss(stack.output(last))}, {last});
  for (std::int64_t b = 2 * stack.depth(); b-- > 0;) {
    const Tensor input = x[static_cast<std::size_t>(b)].detach().requires_grad_();
    const Tensor added = stack.branch(b, input);
    v.push_back(zeros_like(v[0]));
    for (std::size_t k = v.size() - 1; k >= 1; --k) {
      v[k] = v[k] + grad({added}, {input}, {v[k - 1]}, {.keep_graph = true})[0];
    }
  }
  // Backward through the whole at once knows nothing of the parts.
  const Tensor input = stack.x0().detach().requires_grad_();
  Tensor stream = input;
  for (std::int64_t b = 0; b < 2 * stack.depth(); ++b) stream = stream + stack.branch(b, stream);
  const Tensor whole = grad({stack.loss(stack.output(stream))}, {input})[0];

  std::vector<double> result;
  for (const Tensor& part : v) result.push_back(dot(part, whole) / squared_norm(whole));
  return result;
}

void path_lengths(Report& report) {
  report.setting("the pre-norm stack, L = 8: 16 branches; shares are means over the seeds");
  report.say(
      "Of the 2^16 paths from the loss to the input most cross about 8 branches, but the gradient has come along the "
      "short ones.");
  std::vector<double> mean(17, 0.0);
  double worst_sum = 0, least_within_8 = 1;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::vector<double> share = shares(Stack(Arrangement::pre, 8, seed));
    double total = 0, within_8 = 0;
    for (std::size_t k = 0; k < share.size(); ++k) {
      mean[k] += share[k] / kSeeds;
      total += share[k];
      if (k <= 8) within_8 += share[k];
    }
    worst_sum = std::max(worst_sum, std::abs(total - 1));
    least_within_8 = std::min(least_within_8, within_8);
  }
  double within = 0;
  for (std::size_t k = 0; k < mean.size(); ++k) {
    within += mean[k];
    report.tell("share that crossed " + std::to_string(k) + (k == 1 ? " branch" : " branches"),
                number(mean[k]) + ", so far " + number(within));
  }
  report.at_most("|sum of the shares - 1|, largest of the seeds", worst_sum, 1e-12);
  report.at_least("share within 8 branches, smallest of the seeds", least_within_8, 0.9);
}

}  // namespace

std::vector<Fact> path_facts() {
  return {{"path_lengths", "the gradient comes along short paths",
           "Veit et al. 2016, Residual Networks Behave Like Ensembles of Relatively Shallow Networks", path_lengths}};
}

}  // namespace prenorm::facts
