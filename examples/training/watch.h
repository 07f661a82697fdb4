// What a report shows of a model in training. Watching changes nothing in it: no random number is drawn, no weight or
// gradient written.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "nn/tiny_lm.h"
#include "training/progress.h"
#include "training/report.h"

namespace prenorm::training {

class Watch {
 public:
  // Of steps first … last; ids int64 [B, T] is the batch that the model is looked at with.
  Watch(const nn::TinyLM& model, Tensor ids, std::int64_t first, std::int64_t last);

  // After backward, before the gradients are changed: their norms, by block.
  void gradients(std::int64_t step);
  void after_step(const StepReport& report);

  // How far the stream is spread at each depth, as the standard deviation of its elements: before training and now.
  const Series& spread_before() const { return spread_before_; }
  Series spread(const std::string& name) const;
  // Attention weights of the first sequence in some blocks and heads.
  std::vector<std::pair<std::string, Grid>> attention_maps(std::size_t most) const;

  const Series& loss() const { return loss_; }
  const Series& grad_norm() const { return grad_norm_; }
  // Gradient norms: a block a row, the others by their names; a step a column, at most 200 of them.
  Grid gradient_norms() const;

 private:
  nn::TinyLM model_;
  Tensor ids_;
  std::int64_t first_, every_;
  std::vector<std::string> groups_;         // "tok", "pos", "blocks.0", …
  std::vector<NamedTensors> members_;       // the parameters of each
  std::vector<std::int64_t> looked_at_;     // steps
  std::vector<std::vector<double>> norms_;  // of each group, at those steps
  Series loss_, grad_norm_, spread_before_;
};

// Everything watched, as figures.
void show(const Watch& watch, std::size_t most_maps, Report& report);

}  // namespace prenorm::training
