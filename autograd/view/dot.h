// The recorded graph in Graphviz's language.
#pragma once

#include <string>

#include "autograd/view/record.h"

namespace prenorm::view {

// One cluster a scope; leaves as boxes, constants dashed.
std::string dot_of(const Record& record);

}  // namespace prenorm::view
