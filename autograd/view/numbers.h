// An op's formula with the numbers of one element put in: the first.
#pragma once

#include <string>

#include "autograd/view/record.h"
#include "autograd/view/trace.h"

namespace prenorm::view {

// "y[0, 1] = 1.2 + 0.5 = 1.7". Where an op has no formula in the table, or the formula does not give the recorded value
// (an option that it does not cover), the value alone: "y[0, 1] = 1.7". Empty where the output has no elements.
std::string numbers_of(const RecordedNode& node);
// The same for each gradient that the node gave, one after the other: "da[0] = dy * b = 2 * 3 = 6; db[0] = …".
std::string backward_numbers_of(const RecordedNode& node, const NodeTrace& trace);

}  // namespace prenorm::view
