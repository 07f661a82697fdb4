// All that an export says of a record, before it becomes text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "autograd/view/check.h"
#include "autograd/view/forks.h"
#include "autograd/view/norm_parts.h"
#include "autograd/view/paths.h"
#include "autograd/view/record.h"
#include "autograd/view/recording.h"
#include "autograd/view/trace.h"

namespace prenorm::view {

enum class Verdict { ok, wrong, unchecked, none };

struct NodeReport {
  std::string name, scope;
  Checks checks;
  Verdict verdict = Verdict::none;
  std::optional<std::int64_t> backward_index;
  std::string numbers, backward_numbers;
};

struct NormReport {
  std::int64_t node;
  NormParts parts;
};

struct Report {
  std::string title, note;
  std::optional<Fault> broken;
  Trace trace;
  std::vector<NodeReport> nodes;
  std::vector<std::int64_t> backward;
  std::vector<Fork> forks;
  std::vector<NormReport> norms;
  std::vector<Path> paths;
};

Report make_report(const Record& record, const Options& options);

}  // namespace prenorm::view
