// Negative log-likelihood: x [..., C] log-probabilities, t [...] class ids. The loss of a row is -x_t; the result is
// all rows' losses, their sum, or the sum over the number of rows that count (target is not ignore_index).
//
//   x_t alone takes part, so dx_j = -g 1[j = t], g = dy for the sum, dy / count for the mean, the row's dy for none.

#include "autograd/node.h"
#include "autograd/ops/cross_entropy.h"
#include "autograd/ops/ids.h"
#include "autograd/ops/reduce.h"

namespace prenorm {
namespace {

struct NllLoss final : Node {
  explicit NllLoss(const CrossEntropyOptions& options) : options(options) {}
  const CrossEntropyOptions options;

  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "nll_loss",
                                 .formula = "y = -sum(x[target]) over the rows that count, over their number",
                                 .derivative = "dx = -onehot(target) * dy / count, 0 in rows that do not count",
                                 .reference = "",
                                 .file = "autograd/ops/nll_loss.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    const Tensor x = dense(in[0]), target = dense(in[1]);
    const std::int64_t C = x.size(-1);
    check_ids("nll_loss", "target", target, C, options.ignore_index);
    Tensor losses = Tensor::empty(target.shape(), x.dtype());
    dispatch_float("nll_loss", x.dtype(), [&](auto t) {
      using T = decltype(t);
      const std::int64_t* id = target.data<std::int64_t>();
      const T* from = x.data<T>();
      T* loss = losses.mutable_data<T>();
      for (std::int64_t r = 0; r < target.numel(); ++r) {
        loss[r] = id[r] == options.ignore_index ? T{0} : -from[r * C + id[r]];
      }
    });
    return {reduce_rows(losses, target, options)};
  }

  Saves saves() const override { return {.inputs = {1}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    const Tensor target = input(1), factors = row_factors(target, options, dy[0].dtype());
    const Tensor g = factors * (options.reduction == Reduction::none ? unsqueeze(dy[0], -1) : dy[0]);
    dx.add(0, -target_distribution(target, input_shape(0).back(), 0, dy[0].dtype()) * g);
  }
};

}  // namespace

Tensor nll_loss(const Tensor& log_probs, const Tensor& target, const CrossEntropyOptions& options) {
  check_class_loss("nll_loss", log_probs, target, options);
  check(options.label_smoothing == 0, "nll_loss: label smoothing is for cross_entropy, got ", options.label_smoothing);
  return apply_op<NllLoss>({log_probs, target}, options)[0];
}

}  // namespace prenorm
