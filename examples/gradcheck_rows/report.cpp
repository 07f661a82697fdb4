#include "gradcheck_rows/report.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "autograd/atomic_file.h"
#include "autograd/check.h"

namespace prenorm::gradcheck_rows {
namespace {

constexpr int kShapes = 36;

// As many of the shapes as fit, and how many do not.
std::string fitted(const std::vector<std::string>& shapes, std::size_t width) {
  std::string text;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::size_t left = shapes.size() - i;
    const std::string more = left > 1 ? "; +" + std::to_string(left - 1) : "";
    const std::string next = (i > 0 ? "; " : "") + (shapes[i].empty() ? "-" : shapes[i]);
    if (i > 0 && text.size() + next.size() + more.size() > width) return text + "; +" + std::to_string(left);
    text += next;
  }
  return text;
}

std::string error_text(double error) {
  char text[32];
  std::snprintf(text, sizeof text, error == 0 ? "0" : "%.1e", error);
  return text;
}

}  // namespace

Table::Table(const std::vector<Family>& families, std::uint64_t seed)
    : seed_(seed), progress_(isatty(STDERR_FILENO) != 0) {
  for (const Family& family : families) {
    rows_ += family.rows.size();
    for (const Row& row : family.rows) title_width_ = std::max(title_width_, static_cast<int>(row.title().size()));
  }
  std::printf("Derivatives by backward against central differences, float64. ~: not contiguous in memory.\n\n");
  std::printf("%-*s %-*s %8s %8s %8s  %s\n", title_width_, "op or layer", kShapes, "shapes", "elements", "order 1",
              "order 2", "verdict");
}

void Table::family(const std::string& title) { std::printf("-- %s\n", title.c_str()); }

void Table::begin(const Row& row) {
  std::fflush(stdout);
  if (!progress_) return;
  std::fprintf(stderr, "\r\033[K%zu of %zu: %s", done_.size() + 1, rows_, row.title().c_str());
  std::fflush(stderr);
}

void Table::end(const Row& row, const Result& result) {
  if (progress_) std::fprintf(stderr, "\r\033[K");
  std::printf("%-*s %-*s %8lld %8s %8s  %s\n", title_width_, row.title().c_str(), kShapes,
              fitted(result.shapes, kShapes).c_str(), static_cast<long long>(result.elements),
              error_text(result.worst_first).c_str(),
              result.second_order ? error_text(result.worst_second).c_str() : "-", result.passed ? "right" : "WRONG");
  for (const std::string& message : result.messages) std::printf("    %s\n", message.c_str());
  std::fflush(stdout);
  elements_ += result.elements;
  seconds_ += result.seconds;
  if (!result.passed) ++failed_;
  first_.see(result.worst_first, row.title());
  if (result.second_order) second_.see(result.worst_second, row.title());
  done_.push_back({row, result});
}

void Table::summary() const {
  std::printf("\n%zu rows, %lld elements compared in %.1f s; worst relative error %s at order 1 (%s)", done_.size(),
              static_cast<long long>(elements_), seconds_, error_text(first_.error).c_str(), first_.title.c_str());
  if (!second_.title.empty()) {
    std::printf(", %s at order 2 (%s)", error_text(second_.error).c_str(), second_.title.c_str());
  }
  if (failed_ == 0) {
    std::printf("; all right\n");
  } else {
    std::printf("; %zu of %zu rows WRONG\n", failed_, done_.size());
    for (const Done& done : done_) {
      if (!done.result.passed) std::printf("  %s: %s\n", done.row.title().c_str(), done.row.file.c_str());
    }
  }
}

void Table::write_json(const std::string& path) const {
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& [row, result] : done_) {
    nlohmann::json ops = nlohmann::json::array();
    try {
      for (const auto& [name, file] : ops_of(row, seed_)) ops.push_back({{"name", name}, {"file", file}});
    } catch (const std::exception&) {
      check(!result.passed, row.title(), ": ran, but not while it was observed");  // else it is told of already
    }
    // JSON has no infinity, which an error may be.
    const auto number = [](double e) { return std::isfinite(e) ? nlohmann::json(e) : nlohmann::json(nullptr); };
    rows.push_back({{"name", row.name},
                    {"variant", row.variant},
                    {"file", row.file},
                    {"shapes", result.shapes},
                    {"elements", result.elements},
                    {"worst_order_1", number(result.worst_first)},
                    {"worst_order_2", result.second_order ? number(result.worst_second) : nlohmann::json(nullptr)},
                    {"passed", result.passed},
                    {"messages", result.messages},
                    {"seconds", result.seconds},
                    {"ops", ops}});
  }
  const nlohmann::json document{{"seed", seed_},
                                {"rows", rows},
                                {"elements", elements_},
                                {"failed", failed_},
                                {"worst_order_1", first_.error},
                                {"worst_order_2", second_.error},
                                {"seconds", seconds_}};
  write_file(path, document.dump(1) + '\n', "--json");
}

void print_sweep(const Row& row, const std::vector<SweepPoint>& points, double default_step) {
  // From an error of 1 on the right to 1e-12 on the left, four places a power of ten.
  constexpr int kDecades = 12, kPlaces = 4;
  std::printf("%s: the worst relative error of its first derivative, by step of the central difference\n\n",
              row.title().c_str());
  std::printf("%-8s %-8s  ", "step", "error");
  for (int decade = -kDecades; decade <= 0; decade += 3) {
    char text[16];
    std::snprintf(text, sizeof text, decade == 0 ? "1" : "1e%d", decade);
    std::printf("%-*s", 3 * kPlaces, text);
  }
  std::printf("\n");
  const SweepPoint* best = nullptr;
  for (const SweepPoint& point : points) {
    const double place = (std::log10(std::max(point.worst, 1e-300)) + kDecades) * kPlaces;
    const auto at = static_cast<int>(std::lround(std::clamp(place, 0.0, 1.0 * kDecades * kPlaces)));
    std::printf("%-8.0e %-8s |%s*\n", point.step, error_text(point.worst).c_str(),
                std::string(static_cast<std::size_t>(at), ' ').c_str());
    if (best == nullptr || point.worst < best->worst) best = &point;
  }
  if (best == nullptr) return;
  std::printf(
      "\nsmallest at %.0e. Larger steps: the curve bends, the error falls with step^2. Smaller ones: the outputs' "
      "rounding,\ndivided by the step, grows with 1 / step. The default step is %.0e.\n",
      best->step, default_step);
}

}  // namespace prenorm::gradcheck_rows
