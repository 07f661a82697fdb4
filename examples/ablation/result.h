// The ablation's result: the table, what it says in words, whether it is what it should be.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ablation/training_run.h"

namespace prenorm::ablation {

// What a run looked like inside, for a report.
struct Inside {
  training::Grid gradient_norms;  // by layer and step
  training::Series spread;        // of the stream, by depth, after training
  std::vector<std::pair<std::string, training::Grid>> attention;
};

struct Run {
  Variant variant;
  Curves curves;
  Summary summary;
  double seconds;
  std::optional<Inside> inside = {};
};

// A row that PyTorch 1.13 made with the default settings and seed 0.
struct Reference {
  std::int64_t depth;
  bool residual, norm;
  double first_loss, last_loss, grad_max, grad_min;
};

// The reference of a run, null if it was made with other settings than the reference's.
const Reference* find_reference(const Variant& variant, const Training& training);

// One row a run. With `references`, those stand beside the runs' own numbers.
void print_table(std::ostream& out, const std::vector<Run>& runs, const Training& training);

// Sentences computed from the runs, of which there is at least one: which combination was the least stable and by which
// numbers, which did not learn, which ended lowest and whether that was to be expected.
std::vector<std::string> conclusions(const std::vector<Run>& runs);

// One line for each number outside its range, of the runs that have a reference. First losses agree to 1e-4. Without
// residuals training is chaotic (the same formulas in another order end elsewhere), so last losses have wide ranges:
// below 0.1 with residuals, above 2 without at depth 12 and 24, between 0.5 and 3.5 without at depth 4.
std::vector<std::string> missed_ranges(const std::vector<Run>& runs, const Training& training);

// As CSV: the table, one row a run; and the curves, one row a run and step.
std::string table_csv(const std::vector<Run>& runs);
std::string curves_csv(const std::vector<Run>& runs);

}  // namespace prenorm::ablation
