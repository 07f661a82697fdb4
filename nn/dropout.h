#pragma once

#include "nn/module.h"

namespace prenorm::nn {

struct DropoutOptions {
  double p = 0.5;
};

// In training, zeroes each element with probability p in [0, 1] and divides the others by 1 - p; in evaluation, or at
// p = 0, gives x itself and draws nothing.
class Dropout : public Layer<Dropout, DropoutOptions> {
 public:
  using Layer::Layer;
  explicit Dropout(double p = 0.5);

  Tensor forward(const Tensor& x) const;
};

}  // namespace prenorm::nn
