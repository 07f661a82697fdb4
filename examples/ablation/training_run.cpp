#include "ablation/training_run.h"

#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "autograd/random.h"
#include "optim/adam.h"
#include "optim/clip.h"
#include "optim/schedule.h"
#include "training/data.h"

namespace prenorm::ablation {

std::string name_of(nn::Norm norm) {
  switch (norm) {
    case nn::Norm::unbiased:
      return "unbiased";
    case nn::Norm::standard:
      return "standard";
    case nn::Norm::rms:
      return "rms";
    case nn::Norm::none:
      return "none";
  }
  return "?";
}

std::string name_of(nn::Order order) { return order == nn::Order::pre ? "pre" : "post"; }

std::string combination(const Variant& v) {
  if (v.norm == nn::Norm::none) return v.residual ? "residual without norm" : "neither residual nor norm";
  std::string norm = v.order == nn::Order::post ? "post-norm" : "norm";
  if (v.norm != nn::Norm::standard) norm = name_of(v.norm) + " " + norm;
  return v.residual ? "residual and " + norm : norm + " without residual";
}

Curves train(const Variant& v, const Training& t, const StepCallback& after_step,
             const std::function<void(const training::Watch&)>& watched) {
  manual_seed(v.seed);
  const nn::TinyLM model(training::Rule::kVocab, {.d_model = t.d_model,
                                                  .n_heads = t.heads,
                                                  .n_layers = v.depth,
                                                  .max_len = std::max<std::int64_t>(64, t.length),
                                                  .use_residual = v.residual,
                                                  .norm = v.norm,
                                                  .order = v.order});
  const NamedTensors parameters = model.parameters();
  optim::Adam adam(parameters, {.lr = t.lr});
  Curves curves;
  std::optional<training::Watch> watch;
  if (watched) watch.emplace(model, training::Rule::fixed_ids(t.batch, t.length), 1, t.steps);
  for (std::int64_t step = 1; step <= t.steps; ++step) {
    const training::Batch batch = training::Rule::batch(t.batch, t.length);
    const Tensor loss = cross_entropy(model(batch.ids), batch.targets);
    adam.zero_grad();
    loss.backward();
    if (watch) watch->gradients(step);
    curves.loss.push_back(loss.item());
    curves.grad_norm.push_back(optim::grad_norm(parameters));
    // Clipping refuses a norm that is not finite; here such a step is taken as it is, and noted.
    if (t.clip > 0 && std::isfinite(curves.grad_norm.back())) optim::clip_grad_norm_(parameters, t.clip);
    adam.set_lr_factor(optim::linear_warmup(step, t.warmup));
    adam.step();
    if (!after_step(step, curves.loss.back())) break;
  }
  if (watch) watched(*watch);
  return curves;
}

Summary summarize(const Curves& curves) {
  const std::vector<double>&loss = curves.loss, &norm = curves.grad_norm;
  Summary s{.first_loss = loss.front(),
            .last_loss = loss.back(),
            .grad_max = norm.front(),
            .grad_min = norm.front(),
            .grad_max_step = 1,
            .jump = 0,
            .jump_step = 1,
            .half_step = {},
            .not_finite = {}};
  for (std::size_t i = 0; i < loss.size(); ++i) {
    const auto step = static_cast<std::int64_t>(i) + 1;
    if (!s.not_finite && !(std::isfinite(loss[i]) && std::isfinite(norm[i]))) s.not_finite = step;
    if (!s.half_step && loss[i] <= s.first_loss / 2) s.half_step = step;
    if (norm[i] > s.grad_max || std::isnan(s.grad_max)) {
      s.grad_max = norm[i];
      s.grad_max_step = step;
    }
    if (norm[i] < s.grad_min || std::isnan(s.grad_min)) s.grad_min = norm[i];
    if (i > 0 && loss[i] - loss[i - 1] > s.jump) {
      s.jump = loss[i] - loss[i - 1];
      s.jump_step = step;
    }
  }
  return s;
}

}  // namespace prenorm::ablation
