// A record as JSON, for the page: nodes with values and gradients, checks, forks, norms, paths, sources of the ops.
#pragma once

#include <string>

#include "autograd/view/record.h"
#include "autograd/view/recording.h"

namespace prenorm::view {

// Tensors of up to 256 elements are written in full while these values take less than 2 MB (failed nodes first, then
// forks and norms); others, and what is left, are summarised, in at most about 400 bytes each, and in less where there
// are many: 5,000 nodes stay below 4 MB. "truncated" tells whether a small tensor had to be summarised.
std::string export_json(const Record& record, const Options& options);

}  // namespace prenorm::view
