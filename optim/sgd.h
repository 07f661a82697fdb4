// Stochastic gradient descent with momentum, with PyTorch's numbers.
//
//   g = gradient + weight_decay * p
//   m = g at the first step, then momentum m + (1 - dampening) g
//   p -= lr * u,  u = m, or g + momentum m with nesterov, or g without momentum
#pragma once

#include "optim/optimizer.h"

namespace prenorm::optim {

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;  // needs momentum and no dampening
};

class SGD : public Optimizer {
 public:
  explicit SGD(const NamedTensors& parameters, const SGDOptions& options = {});
  // Groups bring their own lr and weight decay; those of the options are not used.
  explicit SGD(std::vector<ParameterGroup> groups, const SGDOptions& options = {});

 private:
  void update(const Tensor& parameter, const Tensor& gradient, const Slot& slot, double lr,
              double weight_decay) const override;

  SGDOptions options_;
};

}  // namespace prenorm::optim
