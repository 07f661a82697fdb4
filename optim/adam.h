// Adam (Kingma, Ba 2015, algorithm 1) and AdamW (Loshchilov, Hutter 2019, algorithm 2), with PyTorch's numbers.
//
//   g = gradient (+ weight_decay * p in Adam)
//   m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2
//   p -= lr * (m / (1 - beta1^t)) / (sqrt(w / (1 - beta2^t)) + eps),  w = v, or with amsgrad the largest v so far
// AdamW first shrinks the weights instead: p *= 1 - lr * weight_decay.
#pragma once

#include "optim/optimizer.h"

namespace prenorm::optim {

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;  // L2: added to the gradient
  bool amsgrad = false;
};

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;  // decoupled from the gradient
  bool amsgrad = false;
};

class Adam : public Optimizer {
 public:
  explicit Adam(const NamedTensors& parameters, const AdamOptions& options = {});
  // Groups bring their own lr and weight decay; those of the options are not used.
  explicit Adam(std::vector<ParameterGroup> groups, const AdamOptions& options = {});

 protected:
  Adam(std::string_view type, std::vector<ParameterGroup> groups, const AdamOptions& options, bool decoupled);

 private:
  void update(const Tensor& parameter, const Tensor& gradient, const Slot& slot, double lr,
              double weight_decay) const override;

  AdamOptions options_;
  bool decoupled_;
};

class AdamW : public Adam {
 public:
  explicit AdamW(const NamedTensors& parameters, const AdamWOptions& options = {});
  explicit AdamW(std::vector<ParameterGroup> groups, const AdamWOptions& options = {});
};

}  // namespace prenorm::optim
