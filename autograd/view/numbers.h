// An op's formula with the numbers of one element put in.
#pragma once

#include <string>

#include "autograd/view/record.h"
#include "autograd/view/trace.h"

namespace prenorm::view {

// "y[0, 1] = 1.2 + 0.5 = 1.7"; where an op has no formula of its own here, its value: "y[0, 1] = 1.7". Empty where the
// output is.
std::string numbers_of(const RecordedNode& node);
// The same for the gradient of its first input that got one: "dx[0, 1] = dy = 0.3".
std::string backward_numbers_of(const RecordedNode& node, const NodeTrace& trace);

}  // namespace prenorm::view
