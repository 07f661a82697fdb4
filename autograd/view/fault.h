// Wrong backwards to plant into a record, to see where the export finds them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "autograd/view/record.h"

namespace prenorm::view {

struct Fault {
  std::int64_t node = -1;
  std::string name;
  // What becomes of the gradients that the node hands out.
  std::function<void(const RecordedNode& node, const Tensors& cotangents, Tensors& gradients)> change =
      [](const RecordedNode&, const Tensors&, Tensors&) {};
  // The total of the node's own value is overwritten by each part that arrives instead of summed: "= for +=".
  bool overwrites = false;
};

// The names of the faults that fit an op, without the number of "factor F".
std::vector<std::string> faults_of(std::string_view op);

// Throws where there is no fault of that name, listing those that fit the node.
Fault make_fault(const Record& record, std::int64_t id, const std::string& name);

}  // namespace prenorm::view
