// Ways to run backward that have to give the same gradients.
#pragma once

#include <optional>

#include "autograd/gradcheck.h"
#include "autograd/gradcheck/derivative.h"

namespace prenorm {

// The first disagreement with the check's gradients: when backward is run again, with create_graph, for a cotangent in
// another memory layout, for one input alone while the others are constants, and for two uses of the function, which
// add up. None of these needs differences, so they have to agree up to rounding.
std::optional<GradcheckFailure> find_disagreement(const Differentiable& function, const DerivativeCheck& check,
                                                  double tolerance);

}  // namespace prenorm
