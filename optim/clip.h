// The global norm of gradients, and its clipping (Pascanu, Mikolov, Bengio 2013).
#pragma once

#include "autograd/tensor.h"

namespace prenorm::optim {

// The 2-norm of all gradients of the parameters together; absent ones count as 0. May be NaN or infinite.
double grad_norm(const NamedTensors& parameters);

// Multiplies all gradients by min(1, max_norm / (norm + 1e-6)) and returns the norm before. A norm that is not finite
// is an error that names the first parameter to blame; no gradient has changed then.
double clip_grad_norm_(const NamedTensors& parameters, double max_norm);

}  // namespace prenorm::optim
