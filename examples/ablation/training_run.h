// One run of the ablation: a TinyLM with or without residuals and norms, trained on the rule next = (current + 1)
// mod 50.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "nn/tiny_lm.h"
#include "training/watch.h"

namespace prenorm::ablation {

// What differs between the rows of the table.
struct Variant {
  std::int64_t depth = 8;
  bool residual = true;
  nn::Norm norm = nn::Norm::standard;
  nn::Order order = nn::Order::pre;
  std::uint64_t seed = 0;
};

// What all rows share.
struct Training {
  std::int64_t steps = 300;
  std::int64_t batch = 32;
  std::int64_t length = 32;
  std::int64_t d_model = 64;
  std::int64_t heads = 4;
  double lr = 3e-4;
  std::int64_t warmup = 0;
  double clip = 0;  // 0: none
  bool operator==(const Training&) const = default;
};

std::string name_of(nn::Norm norm);    // "standard", "none", …
std::string name_of(nn::Order order);  // "pre", "post"
// In words, without depth and seed: "residual without norm".
std::string combination(const Variant& variant);

// Loss and norm of the whole gradient, both before the update of each step. Either may be NaN or infinite: the run goes
// on, as it would go on anywhere else.
struct Curves {
  std::vector<double> loss;
  std::vector<double> grad_norm;
};

// Called after each step with its number, from 1, and its loss. Returns whether to go on.
using StepCallback = std::function<bool(std::int64_t step, double loss)>;

// With `watched`, that is given what a report shows of the run, at its end; it changes no bit of it.
Curves train(const Variant& variant, const Training& training, const StepCallback& after_step,
             const std::function<void(const training::Watch&)>& watched = nullptr);

// The columns of the table, read off the curves. Steps count from 1.
struct Summary {
  double first_loss, last_loss;
  double grad_max, grad_min;
  std::int64_t grad_max_step;
  double jump;  // the largest rise of the loss from one step to the next; 0 if it never rose
  std::int64_t jump_step;
  std::optional<std::int64_t> half_step;   // the first with at most half the first loss
  std::optional<std::int64_t> not_finite;  // the first with a loss or gradient of NaN or infinity
};

Summary summarize(const Curves& curves);

}  // namespace prenorm::ablation
