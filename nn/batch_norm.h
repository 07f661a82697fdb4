#pragma once

#include "nn/module.h"

namespace prenorm::nn {

struct BatchNorm1dOptions {
  double eps = 1e-5;
  double momentum = 0.1;  // share of the batch's statistics in the running ones
  bool affine = true;
};

// The contrast to LayerNorm (Ioffe, Szegedy 2015): x [N, C] or [N, C, L], normalised per channel over the batch in
// training, so that samples depend on each other; by running statistics in evaluation. Each training call updates
//   running = (1 - momentum) * running + momentum * batch,  the batch's variance with n - 1.
// Parameters weight, bias; buffers running_mean (from zeros), running_var (from ones).
class BatchNorm1d : public Layer<BatchNorm1d, BatchNorm1dOptions> {
 public:
  using Layer::Layer;
  explicit BatchNorm1d(std::int64_t channels, BatchNorm1dOptions options = {});

  Tensor forward(const Tensor& x) const;
};

}  // namespace prenorm::nn
