#include "nn/dropout.h"

namespace prenorm::nn {

Dropout::Dropout(double p) : Layer("Dropout", {.p = p}) { check(p >= 0 && p <= 1, "Dropout: p is in [0, 1], got ", p); }

Tensor Dropout::forward(const Tensor& x) const { return dropout(x, options().p, is_training()); }

}  // namespace prenorm::nn
