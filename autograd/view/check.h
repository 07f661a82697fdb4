// Finite differences beside the gradients of one recorded node.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "autograd/view/record.h"
#include "autograd/view/trace.h"

namespace prenorm::view {

struct Check {
  enum class Mode { none, elements, direction };
  Mode mode = Mode::none;
  std::string reason = {};           // why there is none, or why it is wrong
  Tensor difference = {};            // elements: float64, the input's shape
  double gradient = 0, numeric = 0;  // direction: the derivative along it, by backward and by difference
  double error = 0;                  // relative to the largest of both in this tensor
  bool ok = true;
};
// One an input; none where no gradient was asked for.
using Checks = std::vector<std::optional<Check>>;

Checks check_node(const RecordedNode& node, const NodeTrace& trace);

}  // namespace prenorm::view
