// Mistakes that run without an error, each beside the right way.

#include "autograd/ops.h"
#include "autograd/random.h"
#include "demos/report.h"
#include "nn/attention.h"
#include "nn/batch_norm.h"
#include "nn/feed_forward.h"
#include "nn/linear.h"
#include "nn/norm.h"

namespace prenorm::demos {
namespace {

// How much f changes samples 1, 2, … when only sample 0 is changed.
template <class F>
double change_in_others(const F& f, const Tensor& x) {
  const Tensor changed = concat({slice(x, 0, 0, 1) * 10 + 1, slice(x, 0, 1, x.size(0))}, 0);
  return largest_difference(slice(f(x), 0, 1, x.size(0)), slice(f(changed), 0, 1, x.size(0)));
}

void mask_after_softmax(Report& report) {
  report.say(
      "Weights must be shared out among the positions that may be looked at. Masking after the softmax takes weights "
      "away "
      "that are not given to anybody: rows no longer sum to 1.");
  manual_seed(0);
  const Tensor scores = randn({4, 4});
  const Tensor hidden = logical_not(select(nn::subsequent_mask(4), 0, 0));
  const Tensor right = softmax(masked_fill(scores, hidden, -1e9));
  const Tensor wrong = masked_fill(softmax(scores), hidden, 0);
  report.expect("mistake, mask after softmax: sums of the rows", "0.16 0.84 0.69 1.00", fixed(sum(wrong, {-1}), 2));
  report.expect("right, mask before softmax: sums of the rows", "1.00 1.00 1.00 1.00", fixed(sum(right, {-1}), 2));
}

void norm_over_batch(Report& report) {
  report.say(
      "LayerNorm belongs over the features. Over the batch axis it makes the samples depend on each other: change "
      "sample "
      "0, and the others change.");
  manual_seed(0);
  const Tensor x = randn({4, 8});
  const auto over_features = [](const Tensor& t) { return nn::LayerNorm(8)(t); };
  const auto over_batch = [](const Tensor& t) { return transpose(nn::LayerNorm(4)(transpose(t, 0, 1)), 0, 1); };
  report.expect("mistake, over the batch: do the others change?", "yes", yes_no(change_in_others(over_batch, x) > 0.1));
  report.expect("right, over the features: their largest change", "0",
                exactly_zero(change_in_others(over_features, x)));
}

void batch_norm(Report& report) {
  report.say(
      "BatchNorm in training does the same on purpose, so a sample's output depends on its batch. LayerNorm's does "
      "not, "
      "and it works alike in training and evaluation, which BatchNorm needs running statistics for.");
  manual_seed(0);
  const Tensor x = randn({4, 8});
  const nn::BatchNorm1d batch(8);
  report.expect("BatchNorm in training: do the others change?", "yes", yes_no(change_in_others(batch, x) > 0.1));
  report.expect("LayerNorm: their largest change", "0", exactly_zero(change_in_others(nn::LayerNorm(8), x)));
  batch.eval();
  report.expect("BatchNorm in evaluation: their largest change", "0", exactly_zero(change_in_others(batch, x)));
}

void two_linears(Report& report) {
  report.say(
      "Two linears without an activation between them are one linear with W = W_2 W_1 and b = W_2 b_1 + b_2: more "
      "parameters, nothing that a single one could not do.");
  manual_seed(0);
  const nn::Linear first(8, 32), second(32, 8);
  const Tensor x = randn({4, 8});
  const Tensor one =
      linear(x, matmul(second.weight(), first.weight()), matmul(second.weight(), first.bias()) + second.bias());
  report.expect("mistake, no activation: equal to one linear", "yes",
                yes_no(largest_difference(second(first(x)), one) < 1e-6));
  report.expect("right, relu between: equal to that linear", "no",
                yes_no(largest_difference(second(relu(first(x))), one) < 1e-6));
}

void feed_forward_alone(Report& report) {
  report.say(
      "A feed-forward looks at each token on its own: it cannot replace attention, the only part that carries anything "
      "from one token to another.");
  manual_seed(0);
  const nn::PositionwiseFeedForward feed_forward(8, 32, /*dropout=*/0);
  const nn::MultiHeadedAttention attention(2, 8, /*dropout=*/0);
  const Tensor tokens = randn({5, 8});  // token 0 is the one that changes
  report.expect("feed-forward: largest change of the other tokens", "0",
                exactly_zero(change_in_others(feed_forward, tokens)));
  const auto attend = [&](const Tensor& t) {
    const Tensor x = unsqueeze(t, 0);
    return squeeze(attention(x, x, x), 0);
  };
  report.expect("attention: do the other tokens change?", "yes", yes_no(change_in_others(attend, tokens) > 0.01));
}

}  // namespace

std::vector<Demo> mistake_demos() {
  return {{"mask_after_softmax", "mistake: masking after the softmax", mask_after_softmax},
          {"norm_over_batch", "mistake: LayerNorm over the batch axis", norm_over_batch},
          {"batch_norm", "BatchNorm where LayerNorm belongs", batch_norm},
          {"two_linears", "mistake: two linears without an activation", two_linears},
          {"feed_forward_alone", "a feed-forward does not mix tokens", feed_forward_alone}};
}

}  // namespace prenorm::demos
