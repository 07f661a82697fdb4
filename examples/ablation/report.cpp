#include "ablation/report.h"

#include <sstream>

#include "ablation/figure.h"
#include "training/report.h"

namespace prenorm::ablation {
namespace {

std::string name_of(const Variant& variant, bool with_seed) {
  return "depth " + std::to_string(variant.depth) + ", " + combination(variant) +
         (with_seed ? ", seed " + std::to_string(variant.seed) : "");
}

}  // namespace

std::string report_html(const std::vector<Run>& runs, const Training& training) {
  training::Report report("Residual connections and norms", "TinyLM on the rule next = (current + 1) mod 50, " +
                                                                std::to_string(training.steps) + " steps.");
  for (const std::string& sentence : conclusions(runs)) report.paragraph(sentence);
  std::ostringstream table;
  print_table(table, runs, training);
  report.preformatted(table.str());
  report.svg("Loss and gradient norm", draw_figure(runs));

  bool several_seeds = false;
  for (const Run& run : runs) several_seeds = several_seeds || run.variant.seed != runs.front().variant.seed;
  std::vector<training::Series> spreads;
  for (const Run& run : runs) {
    if (!run.inside) continue;
    spreads.push_back(run.inside->spread);
    spreads.back().name = name_of(run.variant, several_seeds);
  }
  if (!spreads.empty()) {
    report.lines("Spread of the stream after training, by depth: standard deviation after so many blocks", "blocks",
                 spreads, true);
  }
  for (const Run& run : runs) {
    if (!run.inside) continue;
    report.heading(name_of(run.variant, several_seeds));
    report.heat_map("Norm of the gradient, by layer", "step", run.inside->gradient_norms, true);
    report.square_maps("Attention", run.inside->attention);
  }
  return report.html();
}

}  // namespace prenorm::ablation
