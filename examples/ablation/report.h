// The ablation as one HTML file: what it prints, its curves, and what each run looked like inside.
#pragma once

#include <string>
#include <vector>

#include "ablation/result.h"

namespace prenorm::ablation {

// Of at least one run; what was not watched (Run::inside) is left out.
std::string report_html(const std::vector<Run>& runs, const Training& training);

}  // namespace prenorm::ablation
