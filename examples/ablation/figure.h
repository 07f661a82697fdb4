// The ablation as a picture: an SVG file that stands alone.
#pragma once

#include <string>
#include <vector>

#include "ablation/result.h"

namespace prenorm::ablation {

// Loss above, gradient norm below, a panel for each depth: the curves of all combinations overlaid, on logarithmic axes
// that the panels of a row share. Combinations differ by colour (Okabe and Ito's, which colour-blind readers tell
// apart) and by dashes. Light or dark as the reader's system is.
std::string draw_figure(const std::vector<Run>& runs);

}  // namespace prenorm::ablation
