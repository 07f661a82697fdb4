#include "ablation/result.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <utility>

#include "training/data.h"

namespace prenorm::ablation {
namespace {

constexpr std::array<Reference, 12> kReferences{{
    {4, true, true, 4.0559, 0.0632, 0.941, 0.08375},
    {4, true, false, 4.3094, 0.0008, 1.750, 0.00472},
    {4, false, true, 4.0831, 1.0137, 43.637, 0.70810},
    {4, false, false, 3.9159, 1.8973, 69.249, 0.01204},
    {12, true, true, 4.1307, 0.0537, 1.073, 0.07309},
    {12, true, false, 5.0048, 0.0002, 5.744, 0.00195},
    {12, false, true, 4.0601, 3.5747, 30.462, 0.46065},
    {12, false, false, 3.9134, 3.9107, 0.059, 0.01095},
    {24, true, true, 4.1355, 0.0493, 1.222, 0.06748},
    {24, true, false, 12.0067, 0.0005, 100.052, 0.00710},
    {24, false, true, 4.0271, 3.9132, 8.153, 0.10639},
    {24, false, false, 3.9143, 3.9123, 0.056, 0.00871},
}};

std::string number(const char* format, double value) {
  if (std::isnan(value)) return "nan";  // without a sign
  if (std::abs(value) >= 1e6) format = "%.3g";
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// For files: every digit that float32 has.
std::string exact(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.9g", std::isnan(value) ? std::abs(value) : value);
  return text;
}

std::string step_or_dash(const std::optional<std::int64_t>& step) { return step ? std::to_string(*step) : "-"; }

// "4", "4 and 12", "4, 12 and 24".
std::string list(const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += i + 1 == items.size() ? " and " : ", ";
    text += items[i];
  }
  return text;
}

std::vector<std::string> combinations(const std::vector<Run>& runs) {
  std::vector<std::string> names;
  for (const Run& run : runs) {
    if (std::find(names.begin(), names.end(), combination(run.variant)) == names.end())
      names.push_back(combination(run.variant));
  }
  return names;
}

// --- what the runs say -----------------------------------------------------------------------------------------------

std::string at_step(const Run& run, std::int64_t step) {
  return "at depth " + std::to_string(run.variant.depth) + ", step " + std::to_string(step);
}

// By the largest jump of the loss; and whether its gradient was the largest, too. A run that met NaN is the least
// stable.
std::string least_stable(const std::vector<Run>& runs) {
  const Run* broken = nullptr;
  for (const Run& run : runs) {
    if (run.summary.not_finite && (broken == nullptr || *run.summary.not_finite < *broken->summary.not_finite)) {
      broken = &run;
    }
  }
  if (broken != nullptr) {
    return "Least stable: " + combination(broken->variant) + ", whose loss or gradient was not finite " +
           at_step(*broken, *broken->summary.not_finite) + ".";
  }
  const auto largest = [&runs](auto Summary::*value) {
    return &*std::max_element(runs.begin(), runs.end(),
                              [value](const Run& a, const Run& b) { return a.summary.*value < b.summary.*value; });
  };
  const Run &jump = *largest(&Summary::jump), &gradient = *largest(&Summary::grad_max);
  if (jump.summary.jump == 0) return "Stable throughout: the loss never rose from one step to the next.";
  const std::string name = combination(jump.variant), other = combination(gradient.variant);
  return "Least stable: " + name + ", by the largest jump of the loss (" + number("%.3f", jump.summary.jump) + " " +
         at_step(jump, jump.summary.jump_step) + "); the largest gradient norm (" +
         number("%.3f", gradient.summary.grad_max) + " " + at_step(gradient, gradient.summary.grad_max_step) + ") " +
         (name == other ? "is its as well." : "is that of " + other + ".");
}

std::string did_not_learn(const std::vector<Run>& runs) {
  const double guessing = std::log(static_cast<double>(training::Rule::kVocab));
  std::vector<std::string> slow;
  for (const std::string& name : combinations(runs)) {
    std::vector<std::string> depths;
    double least = INFINITY, most = 0;  // of their last losses
    bool nan = false;
    for (const Run& run : runs) {
      if (combination(run.variant) != name || run.summary.last_loss <= guessing / 2) continue;
      if (std::string depth = std::to_string(run.variant.depth); depths.empty() || depths.back() != depth) {
        depths.push_back(std::move(depth));
      }
      if (std::isnan(run.summary.last_loss)) {
        nan = true;
        continue;
      }
      least = std::min(least, run.summary.last_loss);
      most = std::max(most, run.summary.last_loss);
    }
    if (depths.empty()) continue;
    std::vector<std::string> range;
    if (most > 0) range.push_back(number("%.4f", least) + (least == most ? "" : " to " + number("%.4f", most)));
    if (nan) range.emplace_back("NaN");
    slow.push_back(name + " at depth " + list(depths) + " (" + list(range) + ")");
  }
  const std::string bar = "half the loss of guessing (log 50 = " + number("%.4f", guessing) + ")";
  if (slow.empty()) return "Every run ended below " + bar + ".";
  return "Ended above " + bar + ": " + list(slow) + ".";
}

// Which combination ended lowest at each depth; textbooks expect residual and norm together.
std::string lowest(const std::vector<Run>& runs) {
  std::vector<std::int64_t> depths;
  for (const Run& run : runs) {
    if (std::find(depths.begin(), depths.end(), run.variant.depth) == depths.end()) depths.push_back(run.variant.depth);
  }
  std::vector<std::string> as_expected;
  std::vector<std::pair<std::string, std::vector<std::string>>> against;  // combination, its depths and numbers
  for (std::int64_t depth : depths) {
    const Run *best = nullptr, *expected = nullptr;
    for (const Run& run : runs) {
      if (run.variant.depth != depth || !std::isfinite(run.summary.last_loss)) continue;
      const bool has_both = run.variant.residual && run.variant.norm != nn::Norm::none;
      if (best == nullptr || run.summary.last_loss < best->summary.last_loss) best = &run;
      if (has_both && (expected == nullptr || run.summary.last_loss < expected->summary.last_loss)) expected = &run;
    }
    if (best == nullptr || expected == nullptr) continue;
    if (best == expected) {
      as_expected.push_back(std::to_string(depth));
      continue;
    }
    const std::string name = combination(best->variant);
    if (against.empty() || against.back().first != name) against.push_back({name, {}});
    against.back().second.push_back(std::to_string(depth) + " (" + number("%.4f", best->summary.last_loss) +
                                    " against " + number("%.4f", expected->summary.last_loss) + ")");
  }
  std::vector<std::string> winners;
  for (const auto& [name, where] : against) winners.push_back(name + " at depth " + list(where));
  std::string text;
  if (!winners.empty()) {
    text =
        "Against expectation, which is that residual and norm together end lowest, the lowest last loss is that of " +
        list(winners) + ".";
  }
  if (!as_expected.empty()) {
    text += (text.empty() ? "" : " ") + std::string("As expected, residual and norm together end lowest at depth ") +
            list(as_expected) + ".";
  }
  return text;
}

std::string key_columns(const Variant& v) {
  return std::to_string(v.depth) + (v.residual ? ",yes," : ",no,") + name_of(v.norm) + "," + name_of(v.order) + "," +
         std::to_string(v.seed);
}

}  // namespace

const Reference* find_reference(const Variant& v, const Training& training) {
  if (!(training == Training{}) || v.seed != 0) return nullptr;
  // Without norms there is no order either.
  const bool norm = v.norm == nn::Norm::standard && v.order == nn::Order::pre, none = v.norm == nn::Norm::none;
  if (!norm && !none) return nullptr;
  for (const Reference& reference : kReferences) {
    if (reference.depth == v.depth && reference.residual == v.residual && reference.norm == norm) return &reference;
  }
  return nullptr;
}

void print_table(std::ostream& out, const std::vector<Run>& runs, const Training& training) {
  const auto any = [&runs](const auto& condition) { return std::any_of(runs.begin(), runs.end(), condition); };
  const bool references = any([&](const Run& run) { return find_reference(run.variant, training) != nullptr; });
  const bool orders = any([](const Run& run) { return run.variant.order != nn::Order::pre; });
  const bool seeds = any([&](const Run& run) { return run.variant.seed != runs.front().variant.seed; });

  // Two lines of heads, then a line a run; then each column is made as wide as it needs.
  std::vector<std::vector<std::string>> lines(2 + runs.size());
  const auto column = [&](const char* head, const char* head2, const auto& cell) {
    lines[0].emplace_back(head);
    lines[1].emplace_back(head2);
    for (std::size_t i = 0; i < runs.size(); ++i) lines[2 + i].push_back(cell(runs[i]));
  };
  const auto with_reference = [&](const char* head, const char* head2, const char* format, auto Summary::*ours,
                                  auto Reference::*theirs) {
    column(head, head2, [=](const Run& run) { return number(format, run.summary.*ours); });
    if (!references) return;
    column("", "PyTorch", [&](const Run& run) {
      const Reference* reference = find_reference(run.variant, training);
      return reference == nullptr ? "-" : number(format, reference->*theirs);
    });
  };
  column("", "depth", [](const Run& run) { return std::to_string(run.variant.depth); });
  column("", "residual", [](const Run& run) { return run.variant.residual ? "yes" : "no"; });
  column("", "norm", [](const Run& run) { return name_of(run.variant.norm); });
  if (orders) column("", "order", [](const Run& run) { return name_of(run.variant.order); });
  if (seeds) column("", "seed", [](const Run& run) { return std::to_string(run.variant.seed); });
  with_reference("first", "loss", "%.4f", &Summary::first_loss, &Reference::first_loss);
  with_reference("last", "loss", "%.4f", &Summary::last_loss, &Reference::last_loss);
  with_reference("gradient", "largest", "%.3f", &Summary::grad_max, &Reference::grad_max);
  column("", "at step", [](const Run& run) { return std::to_string(run.summary.grad_max_step); });
  with_reference("gradient", "smallest", "%.5f", &Summary::grad_min, &Reference::grad_min);
  column("half the", "loss at", [](const Run& run) { return step_or_dash(run.summary.half_step); });
  column("largest", "jump", [](const Run& run) { return number("%.3f", run.summary.jump); });
  column("NaN", "at step", [](const Run& run) { return step_or_dash(run.summary.not_finite); });

  std::vector<std::size_t> widths(lines[0].size());
  for (const auto& line : lines) {
    for (std::size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
  }
  for (const auto& line : lines) {
    std::string text;
    for (std::size_t c = 0; c < line.size(); ++c) {
      text += std::string(widths[c] - line[c].size() + (c == 0 ? 0 : 2), ' ') + line[c];
    }
    out << text << '\n';
  }
}

std::vector<std::string> conclusions(const std::vector<Run>& runs) {
  std::vector<std::string> sentences{least_stable(runs), did_not_learn(runs)};
  if (std::string text = lowest(runs); !text.empty()) sentences.push_back(std::move(text));
  return sentences;
}

std::vector<std::string> missed_ranges(const std::vector<Run>& runs, const Training& training) {
  std::vector<std::string> missed;
  for (const Run& run : runs) {
    const Reference* reference = find_reference(run.variant, training);
    if (reference == nullptr) continue;
    const auto demand = [&](bool ok, const char* what, double value, const std::string& range) {
      if (ok) return;
      missed.push_back("depth " + std::to_string(run.variant.depth) + ", " + combination(run.variant) + ": " + what +
                       " " + number("%.4f", value) + " is not " + range);
    };
    const double first = run.summary.first_loss, last = run.summary.last_loss;
    // The reference is rounded to 4 decimals.
    demand(std::abs(first - reference->first_loss) <= 1e-4 + 0.5e-4, "first loss", first,
           number("%.4f", reference->first_loss) + " within 1e-4");
    if (run.variant.residual) {
      demand(last < 0.1, "last loss", last, "below 0.1");
    } else if (run.variant.depth == 4) {
      demand(last >= 0.5 && last <= 3.5, "last loss", last, "between 0.5 and 3.5");
    } else {
      demand(last > 2, "last loss", last, "above 2");
    }
  }
  return missed;
}

std::string table_csv(const std::vector<Run>& runs) {
  std::string text =
      "depth,residual,norm,order,seed,first_loss,last_loss,grad_max,grad_max_step,grad_min,half_loss_step,largest_jump,"
      "largest_jump_step,first_nan_step,seconds\n";
  const auto step = [](const std::optional<std::int64_t>& s) { return s ? std::to_string(*s) : ""; };
  for (const Run& run : runs) {
    const Summary& s = run.summary;
    text += key_columns(run.variant) + "," + exact(s.first_loss) + "," + exact(s.last_loss) + "," + exact(s.grad_max) +
            "," + std::to_string(s.grad_max_step) + "," + exact(s.grad_min) + "," + step(s.half_step) + "," +
            exact(s.jump) + "," + (s.jump > 0 ? std::to_string(s.jump_step) : "") + "," + step(s.not_finite) + "," +
            number("%.3f", run.seconds) + "\n";
  }
  return text;
}

std::string curves_csv(const std::vector<Run>& runs) {
  std::string text = "depth,residual,norm,order,seed,step,loss,grad_norm\n";
  for (const Run& run : runs) {
    const std::string key = key_columns(run.variant);
    for (std::size_t i = 0; i < run.curves.loss.size(); ++i) {
      text += key + "," + std::to_string(i + 1) + "," + exact(run.curves.loss[i]) + "," +
              exact(run.curves.grad_norm[i]) + "\n";
    }
  }
  return text;
}

}  // namespace prenorm::ablation
