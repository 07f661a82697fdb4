// Kullback-Leibler divergence of the distribution that x, log-probabilities, describes from the target t:
//
//   element by element t (log t - x), or e^t (t - x) where the target is given as logarithms
//
// (0 where the target's probability is 0, the limit), then summed, averaged over all elements, or summed over the size
// of the first dimension (batchmean: the divergence of a row, averaged over rows [N, C]).
//
//   x takes part linearly: dx = -t g, or -e^t g, with g = dy over the same number. The target is data and gets none.

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"
#include "autograd/vec_math.h"

namespace prenorm {
namespace {

struct KlDiv final : Node {
  KlDiv(Reduction reduction, bool log_target) : reduction(reduction), log_target(log_target) {}
  const Reduction reduction;
  const bool log_target;

  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "kl_div",
                                 .formula = "y = sum(t * (log t - x)), over the number of elements for the mean",
                                 .derivative = "dx = -t * dy, over the number of elements for the mean",
                                 .reference = "Kullback, Leibler 1951, On Information and Sufficiency, eq. 2.4",
                                 .file = "autograd/ops/kl_div.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    const Tensor& t = in[1];
    const Tensor terms = log_target ? zip_float("kl_div", in[0], t,
                                                [](auto x, auto log_t) {
                                                  const auto p = vec::exp(log_t);
                                                  return p == 0 ? p : p * (log_t - x);
                                                })
                                    : zip_float("kl_div", in[0], t, [](auto x, auto p) {
                                        return p == 0 ? decltype(p){0} : p * (vec::log(p) - x);
                                      });
    return {reduction == Reduction::none ? terms : sum(terms) / divisor(t.shape())};
  }

  Saves saves() const override { return {.inputs = {1}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    const Tensor p = log_target ? exp(input(1)) : input(1);
    dx.add(0, -p * (dy[0] / divisor(input_shape(1))));
  }

 private:
  double divisor(const Shape& shape) const {
    if (reduction == Reduction::mean) return static_cast<double>(numel(shape));
    return reduction == Reduction::batchmean ? static_cast<double>(shape[0]) : 1;
  }
};

}  // namespace

Tensor kl_div(const Tensor& log_probs, const Tensor& target, Reduction reduction, bool log_target) {
  check_same_dtype("kl_div", log_probs, target);
  check(log_probs.shape() == target.shape(), "kl_div: log-probabilities ", log_probs.shape(), " and target ",
        target.shape(), ", expected equal shapes");
  check(reduction != Reduction::batchmean || target.dims() > 0,
        "kl_div: batchmean divides by the first dimension's size, and a scalar has none");
  check(!GradMode::enabled() || !target.requires_grad(),
        "kl_div: the target requires grad, and no gradient flows to it; detach() it");
  return apply_op<KlDiv>({log_probs, target}, reduction, log_target)[0];
}

}  // namespace prenorm
