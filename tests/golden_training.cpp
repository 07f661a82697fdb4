// Optimisers, schedules, clipping, and the first steps of a whole training run.

#include <string>
#include <utility>
#include <vector>

#include "autograd/check.h"
#include "autograd/ops.h"
#include "nn/tiny_lm.h"
#include "optim/adam.h"
#include "optim/clip.h"
#include "optim/schedule.h"
#include "optim/sgd.h"
#include "tests/golden_case.h"

namespace prenorm::golden {
namespace {

template <class T>
T option(const Case& c, const char* name) {
  return c.config().at(name).get<T>();
}

// A new optimiser for `parameter` takes each of the gradients in turn.
template <class Optimizer>
void run_optimizer(Case& c, const Tensor& parameter, Optimizer optimizer) {
  for (int step = 1; step <= option<int>(c, "steps"); ++step) {
    const std::string number = std::to_string(step);
    parameter.set_grad(c.in("grad." + number));
    optimizer.step();
    c.out("param." + number, parameter);
  }
}

template <class Options>
Options adam_options(const Case& c) {
  return {.lr = option<double>(c, "lr"),
          .beta1 = c.config().at("betas").at(0),
          .beta2 = c.config().at("betas").at(1),
          .eps = option<double>(c, "eps"),
          .weight_decay = option<double>(c, "weight_decay"),
          .amsgrad = option<bool>(c, "amsgrad")};
}

void optimizer_kind(Case& c) {
  const auto algorithm = option<std::string>(c, "algorithm");
  const Tensor parameter = c.in("param").requires_grad_();
  const NamedTensors parameters = {{"param", parameter}};
  if (algorithm == "sgd") {
    run_optimizer(c, parameter,
                  optim::SGD(parameters, {.lr = option<double>(c, "lr"),
                                          .momentum = option<double>(c, "momentum"),
                                          .dampening = option<double>(c, "dampening"),
                                          .weight_decay = option<double>(c, "weight_decay"),
                                          .nesterov = option<bool>(c, "nesterov")}));
  } else if (algorithm == "adam") {
    run_optimizer(c, parameter, optim::Adam(parameters, adam_options<optim::AdamOptions>(c)));
  } else {
    check(algorithm == "adamw", "unknown algorithm ", algorithm);
    run_optimizer(c, parameter, optim::AdamW(parameters, adam_options<optim::AdamWOptions>(c)));
  }
}

void noam_kind(Case& c) {
  std::vector<double> rates;
  for (int step = 1; step <= option<int>(c, "steps"); ++step) {
    rates.push_back(optim::noam(step, option<std::int64_t>(c, "d_model"), option<std::int64_t>(c, "warmup"),
                                option<double>(c, "factor")));
  }
  c.out("lr", Tensor::of(rates, {static_cast<std::int64_t>(rates.size())}, {.dtype = float64}));
}

void clip_grad_norm_kind(Case& c) {
  NamedTensors parameters;
  for (const Json& sizes : c.config().at("shapes")) {
    const std::string name = "grad." + std::to_string(parameters.size());
    const Tensor parameter = zeros(to_shape(sizes), float64).requires_grad_();
    parameter.set_grad(c.in(name));
    parameters.push_back({name, parameter});
  }
  const double norm = optim::clip_grad_norm_(parameters, option<double>(c, "max_norm"));
  c.out("total_norm", Tensor::scalar(norm, {.dtype = float64}));
  for (const NamedTensor& named : parameters) c.out(named.path, named.tensor.grad());
}

// Next token = (current token + 1) mod vocab.
void train_curve(Case& c) {
  manual_seed(option<std::uint64_t>(c, "seed"));
  const nn::TinyLM model = make_tiny_lm(c.config());
  const NamedTensors parameters = model.parameters();
  optim::Adam adam(parameters, {.lr = option<double>(c, "lr"),
                                .beta1 = c.config().at("betas").at(0),
                                .beta2 = c.config().at("betas").at(1),
                                .eps = option<double>(c, "eps")});
  const auto vocab = option<std::int64_t>(c, "vocab");
  const auto t = option<std::int64_t>(c, "t");
  std::vector<double> losses, norms;
  for (int step = 0; step < option<int>(c, "steps"); ++step) {
    const Tensor start = randint(0, vocab, {option<std::int64_t>(c, "batch"), 1});
    const Tensor tokens = mod(start + arange(static_cast<double>(t + 1)), vocab);
    const Tensor loss = cross_entropy(model(slice(tokens, 1, 0, t)), slice(tokens, 1, 1, t + 1));
    adam.zero_grad();
    loss.backward();
    losses.push_back(loss.item());
    norms.push_back(optim::grad_norm(parameters));
    adam.step();
  }
  const Shape steps = {static_cast<std::int64_t>(losses.size())};
  c.out("loss", Tensor::of(losses, steps));
  c.out("grad_norm", Tensor::of(norms, steps));
}

}  // namespace

const Handlers& training_handlers() {
  static const Handlers handlers = {
      {"optimizer", optimizer_kind},
      {"noam", noam_kind},
      {"clip_grad_norm", clip_grad_norm_kind},
      {"train_curve", train_curve},
  };
  return handlers;
}

}  // namespace prenorm::golden
