#include "ablation/result.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <ostream>

#include "autograd/check.h"
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
  char text[64];
  std::snprintf(text, sizeof text, format, value);
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

std::string at_depth(const Run& run) { return "depth " + std::to_string(run.variant.depth); }

// --- what the runs say -----------------------------------------------------------------------------------------------

// A number that is larger the less stable a run was.
struct Instability {
  std::function<double(const Run&)> value;
  std::function<std::string(const Run&)> words;
};

const std::vector<Instability>& instabilities() {
  static const std::vector<Instability> all{
      {[](const Run& r) { return r.summary.grad_max; },
       [](const Run& r) {
         return "the largest gradient norm (" + number("%.3f", r.summary.grad_max) + " at " + at_depth(r) + ", step " +
                std::to_string(r.summary.grad_max_step) + ")";
       }},
      {[](const Run& r) { return r.summary.grad_max / r.summary.grad_min; },
       [](const Run& r) {
         return "the widest range of gradient norms (largest " +
                number("%.0f", r.summary.grad_max / r.summary.grad_min) + " times the smallest, " + at_depth(r) + ")";
       }},
      {[](const Run& r) { return r.summary.jump; },
       [](const Run& r) {
         return "the largest jump of the loss (" + number("%.3f", r.summary.jump) + " in one step, " + at_depth(r) +
                ", step " + std::to_string(r.summary.jump_step) + ")";
       }},
  };
  return all;
}

std::string least_stable(const std::vector<Run>& runs) {
  const auto broken =
      std::find_if(runs.begin(), runs.end(), [](const Run& run) { return run.summary.not_finite.has_value(); });
  if (broken != runs.end()) {
    return "Least stable: " + combination(broken->variant) + ", whose loss or gradient was not finite at " +
           at_depth(*broken) + " from step " + std::to_string(*broken->summary.not_finite) + ".";
  }
  std::vector<const Run*> worst;  // by each number
  for (const Instability& number : instabilities()) {
    worst.push_back(&*std::max_element(runs.begin(), runs.end(), [&number](const Run& a, const Run& b) {
      return number.value(a) < number.value(b);
    }));
  }
  const auto led_by = [&worst](const Run* run) {
    return std::count_if(worst.begin(), worst.end(), [run](const Run* other) {
      return combination(other->variant) == combination(run->variant);
    });
  };
  const Run* most =
      *std::max_element(worst.begin(), worst.end(), [&](const Run* a, const Run* b) { return led_by(a) < led_by(b); });
  std::vector<std::string> its, others;
  for (std::size_t i = 0; i < worst.size(); ++i) {
    const std::string words = instabilities()[i].words(*worst[i]);
    if (combination(worst[i]->variant) == combination(most->variant)) {
      its.push_back(words);
    } else {
      others.push_back(words + " is that of " + combination(worst[i]->variant));
    }
  }
  return "Least stable: " + combination(most->variant) + ", with " + list(its) +
         (others.empty() ? "" : "; " + list(others)) + ".";
}

std::string did_not_learn(const std::vector<Run>& runs) {
  const double guessing = std::log(static_cast<double>(training::Rule::kVocab));
  std::vector<std::string> slow;
  for (const std::string& name : combinations(runs)) {
    std::vector<std::string> depths;
    for (const Run& run : runs) {
      if (combination(run.variant) != name || run.summary.last_loss <= guessing / 2) continue;
      depths.push_back(std::to_string(run.variant.depth) + " (" + number("%.4f", run.summary.last_loss) + ")");
    }
    if (!depths.empty()) slow.push_back(name + " at depth " + list(depths));
  }
  const std::string bar = "half the loss of guessing (log 50 = " + number("%.4f", guessing) + ")";
  if (slow.empty()) return "Every run ended below " + bar + ".";
  return "Ended above " + bar + ": " + list(slow) + ".";
}

std::string lowest(const std::vector<Run>& runs) {
  // By depth: the runs with residual and norm, which textbooks expect to end lowest, and those that really do.
  std::vector<std::string> as_expected, against;
  std::vector<std::int64_t> depths;
  for (const Run& run : runs) {
    if (std::find(depths.begin(), depths.end(), run.variant.depth) == depths.end()) depths.push_back(run.variant.depth);
  }
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
    } else {
      against.push_back(combination(best->variant) + " at depth " + std::to_string(depth) + " (" +
                        number("%.4f", best->summary.last_loss) + " against " +
                        number("%.4f", expected->summary.last_loss) + ")");
    }
  }
  std::string text;
  if (!against.empty()) {
    text = "Against the textbook, which lets residual and norm together end lowest, the lowest last loss is that of " +
           list(against) + ".";
  }
  if (!as_expected.empty()) {
    text += (text.empty() ? "" : " ") + std::string("As expected, residual and norm together end lowest at depth ") +
            list(as_expected) + ".";
  }
  return text;
}

std::ofstream open_for_writing(const std::string& path) {
  std::ofstream file(path, std::ios::trunc);
  check(file.good(), path, ": cannot be written: ", std::strerror(errno));
  return file;
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
      missed.push_back(at_depth(run) + ", " + combination(run.variant) + ": " + what + " " + number("%.4f", value) +
                       " is not " + range);
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

void write_table_csv(const std::string& path, const std::vector<Run>& runs) {
  std::ofstream file = open_for_writing(path);
  file << "depth,residual,norm,order,seed,first_loss,last_loss,grad_max,grad_max_step,grad_min,half_loss_step,"
          "largest_jump,largest_jump_step,first_nan_step,seconds\n";
  const auto step = [](const std::optional<std::int64_t>& s) { return s ? std::to_string(*s) : ""; };
  for (const Run& run : runs) {
    const Summary& s = run.summary;
    file << key_columns(run.variant) << ',' << number("%.9g", s.first_loss) << ',' << number("%.9g", s.last_loss) << ','
         << number("%.9g", s.grad_max) << ',' << s.grad_max_step << ',' << number("%.9g", s.grad_min) << ','
         << step(s.half_step) << ',' << number("%.9g", s.jump) << ',' << (s.jump > 0 ? std::to_string(s.jump_step) : "")
         << ',' << step(s.not_finite) << ',' << number("%.3f", run.seconds) << '\n';
  }
  file.flush();
  check(file.good(), path, ": cannot be written: ", std::strerror(errno));
}

void write_curves_csv(const std::string& path, const std::vector<Run>& runs) {
  std::ofstream file = open_for_writing(path);
  file << "depth,residual,norm,order,seed,step,loss,grad_norm\n";
  for (const Run& run : runs) {
    const std::string key = key_columns(run.variant);
    for (std::size_t i = 0; i < run.curves.loss.size(); ++i) {
      file << key << ',' << i + 1 << ',' << number("%.9g", run.curves.loss[i]) << ','
           << number("%.9g", run.curves.grad_norm[i]) << '\n';
    }
  }
  file.flush();
  check(file.good(), path, ": cannot be written: ", std::strerror(errno));
}

}  // namespace prenorm::ablation
