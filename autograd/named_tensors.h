// Values by name: what loading a state comes down to, for modules, optimisers and checkpoints alike.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "autograd/tensor.h"

namespace prenorm {

struct LoadResult {
  std::vector<std::string> missing;     // asked for, not among the values
  std::vector<std::string> unexpected;  // the other way round
};

// How `values` fit the tensors of `into`, by path. Shapes and dtypes of those that meet must be equal: an error names
// the tensor and shows both. Strict: missing and unexpected names are an error that lists them. Changes nothing.
LoadResult match_named(std::string_view what, const NamedTensors& into, const NamedTensors& values, bool strict = true);

// Copies the values in place, after match_named has found nothing wrong. On an error nothing has changed.
LoadResult load_named(std::string_view what, const NamedTensors& into, const NamedTensors& values, bool strict = true);

}  // namespace prenorm
