// A normalisation's backward in its parts: what of the incoming gradient is removed, and what goes on to x.
#pragma once

#include <optional>
#include <string_view>

#include "autograd/view/record.h"

namespace prenorm::view {

// For layer_norm, layer_norm_std and rms_norm, over rows of [..., n], with g = dy * gamma:
//   passed = g - mean_part - x_hat_part,  dx = passed / sigma
// Adding a constant to a row changes nothing that is normalised, so the mean of g is removed (not by rms_norm);
// scaling it changes nothing either (up to eps), so the part along x_hat is removed.
struct NormParts {
  Tensor incoming;   // g
  Tensor mean_part;  // undefined: rms_norm
  Tensor x_hat_part;
  Tensor passed;
  Tensor sigma;  // [...]: sqrt(var + eps), std + eps or sqrt(mean(x^2) + eps)
};

bool is_norm(std::string_view op);
// Undefined where the cotangent is. In float64 from the recorded values.
std::optional<NormParts> norm_parts(const RecordedNode& node, const Tensors& cotangents);

}  // namespace prenorm::view
