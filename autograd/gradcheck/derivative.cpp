#include "autograd/gradcheck/derivative.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/gradcheck/reason.h"
#include "autograd/ops.h"

namespace prenorm {
namespace {

// The Jacobian is compared element by element up to this size.
constexpr std::size_t kJacobianRows = 128, kJacobianElements = 4096;
// A comparison is looked at again if its error is larger than this part of the tolerance.
constexpr double kDoubtful = 0.1;
// After so many wrong elements the rest is not looked at twice.
constexpr int kSecondLooks = 8;
// Where a large gradient is wrong: so many of its elements are compared, to tell how many are.
constexpr std::int64_t kSampled = 256;

std::vector<double> random_direction(std::int64_t size, Generator& generator) {
  std::vector<double> direction = random_weights(size, generator);
  const double length = std::sqrt(std::inner_product(direction.begin(), direction.end(), direction.begin(), 0.0));
  for (double& value : direction) value /= length;
  return direction;
}

std::int64_t random_element(std::int64_t size, Generator& generator) {
  return static_cast<std::int64_t>(generator.uniform() * static_cast<double>(size));
}

// A verdict is worth more after a second look; and a wrong value tells more than a kink or a step, whatever their
// sizes.
bool is_worse(const Verdict& a, const Verdict& b) {
  const auto rank = [](const Verdict& verdict) {
    const bool settled = verdict.looked_closer || verdict.reason != GradcheckReason::unknown;
    return settled ? verdict.reason == GradcheckReason::unknown ? 2 : 1 : 0;
  };
  return rank(a) != rank(b) ? rank(a) > rank(b) : a.error > b.error;
}

}  // namespace

DerivativeCheck::DerivativeCheck(Differentiable function, const GradcheckOptions& options, Generator& generator)
    : function_(std::move(function)),
      options_(options),
      generator_(generator),
      outputs_(function_.record()),
      cotangents_(random_cotangents(outputs_, generator)),
      probe_(function_.variables, function_.evaluate) {
  add_row(cotangents_, true);
  if (function_.order == 1) add_jacobian_rows();
  choose_lines();
}

void DerivativeCheck::add_row(const Tensors& cotangents, bool create_graph) {
  Tensors defined;
  for (const Tensor& cotangent : cotangents) {
    if (cotangent.defined()) defined.push_back(cotangent);
  }
  Row row;
  row.weights = flatten(defined);
  row.plain = gradients_of(outputs_, function_.variables, cotangents);
  if (create_graph) row.create_graph = gradients_of(outputs_, function_.variables, cotangents, true);
  for (const Gradients* gradients : {&row.plain, &row.create_graph}) {
    for (const std::vector<double>& gradient : *gradients) {
      for (double value : gradient) {
        if (std::isfinite(value)) largest_ = std::max(largest_, std::abs(value));
      }
    }
  }
  rows_.push_back(std::move(row));
}

// One row for each element of the outputs, with a cotangent that is 1 there and 0 elsewhere.
void DerivativeCheck::add_jacobian_rows() {
  const std::size_t rows = rows_[0].weights.size();
  std::size_t columns = 0;
  for (std::size_t v = 0; v < function_.variables.size(); ++v) {
    columns += static_cast<std::size_t>(probe_.size(static_cast<std::int64_t>(v)));
  }
  if (rows == 1 || rows > kJacobianRows || rows * columns > kJacobianElements) return;
  for (std::size_t i = 0; i < cotangents_.size(); ++i) {
    if (!cotangents_[i].defined()) continue;
    for (std::int64_t element = 0; element < cotangents_[i].numel(); ++element) {
      Tensors one;
      for (const Tensor& cotangent : cotangents_) {
        one.push_back(cotangent.defined() ? zeros_like(cotangent) : Tensor());
      }
      Movable(one[i]).move(element, 1);
      add_row(one, false);
    }
  }
}

void DerivativeCheck::choose_lines() {
  std::int64_t all = 0;
  for (std::size_t v = 0; v < function_.variables.size(); ++v) all += probe_.size(static_cast<std::int64_t>(v));
  for (std::size_t v = 0; v < function_.variables.size(); ++v) {
    const auto variable = static_cast<std::int64_t>(v);
    const std::int64_t size = probe_.size(variable);
    if (all <= options_.full_limit || size <= options_.directions + options_.samples) {
      for (std::int64_t element = 0; element < size; ++element) add_line({variable, element});
      continue;
    }
    for (std::int64_t i = 0; i < options_.directions; ++i) {
      add_line({variable, 0, random_direction(size, generator_)});
    }
    for (std::int64_t i = 0; i < options_.samples; ++i) {
      add_line({variable, random_element(size, generator_)});
    }
  }
}

void DerivativeCheck::add_line(Line line) {
  const std::vector<Sides> sides{probe_.sides(line, options_.step)};
  std::vector<Difference>& numeric = numeric_.emplace_back();
  for (const Row& row : rows_) {
    numeric.push_back(differences(sides, probe_.centre(), row.weights)[0]);
    const double size = std::abs(numeric.back().central);
    if (std::isfinite(size)) largest_ = std::max(largest_, size);
  }
  lines_.push_back(std::move(line));
}

bool DerivativeCheck::is_vacuous() const {
  // Values on the way to the outputs round too; they are taken to be about 1.
  const auto is_noise = [this](const Difference& d) {
    return std::abs(d.central) <= kNoiseMargin * std::max(d.noise, probe_.epsilon() / d.step);
  };
  for (std::size_t line = 0; line < lines_.size(); ++line) {
    if (!std::all_of(numeric_[line].begin(), numeric_[line].end(), is_noise)) return false;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      if (!(std::abs(analytic(row, line, GradcheckBackward::plain)) <= 1e-10)) return false;
    }
    if (!(std::abs(analytic(0, line, GradcheckBackward::create_graph)) <= 1e-10)) return false;
  }
  return true;
}

double DerivativeCheck::worst() const {
  double worst = 0;
  for (std::size_t line = 0; line < lines_.size(); ++line) {
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      const double a = analytic(row, line, GradcheckBackward::plain);
      const double error = relative_error(a, numeric_[line][row].central, largest_);
      worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    }
  }
  return worst;
}

void DerivativeCheck::run(GradcheckReport& report) {
  report.elements += elements();
  for (std::size_t v = 0; v < function_.variables.size(); ++v) compare(static_cast<std::int64_t>(v), report);
}

double DerivativeCheck::analytic(std::size_t row, std::size_t line, GradcheckBackward backward) const {
  const std::vector<double>& gradient = rows_[row].of(backward)[static_cast<std::size_t>(lines_[line].variable)];
  return gradient.empty() ? 0 : Probe::along(lines_[line], gradient);
}

// The first wrong row tells enough.
void DerivativeCheck::compare(std::int64_t variable, GradcheckReport& report) {
  double& worst = function_.order == 1 ? report.worst_first : report.worst_second;
  const auto is_wrong = [](const Finding& finding) { return !finding.verdict.right; };
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    std::vector<Finding> findings = judge(variable, row, false);
    for (const Finding& finding : findings) {
      const double error = finding.verdict.error;
      worst = std::isnan(error) ? INFINITY : std::max(worst, error);
      report.smallest_step = std::min(report.smallest_step, finding.verdict.numeric.step);
    }
    const auto wrong = std::find_if(findings.begin(), findings.end(), is_wrong);
    if (wrong == findings.end()) continue;
    if (!lines_[wrong->line].is_element()) {
      locate(*wrong, row);
      const std::vector<Finding> elements = judge(variable, row, true);
      if (std::any_of(elements.begin(), elements.end(), is_wrong)) findings = elements;
    }
    report.failures.push_back(explain(variable, row, findings));
    return;
  }
}

std::vector<DerivativeCheck::Finding> DerivativeCheck::judge(std::int64_t variable, std::size_t row,
                                                             bool only_elements) {
  std::vector<Finding> findings;
  std::vector<Finding*> unsure;
  for (std::size_t line = 0; line < lines_.size(); ++line) {
    if (lines_[line].variable != variable || (only_elements && !lines_[line].is_element())) continue;
    for (GradcheckBackward backward : {GradcheckBackward::plain, GradcheckBackward::create_graph}) {
      if (!rows_[row].has(backward)) continue;
      findings.push_back({line, backward, first_look(analytic(row, line, backward), numeric_[line][row], standard())});
    }
  }
  for (Finding& finding : findings) {
    if (!finding.verdict.right || is_doubtful(finding.verdict)) unsure.push_back(&finding);
  }
  std::stable_sort(unsure.begin(), unsure.end(),
                   [](const Finding* a, const Finding* b) { return a->verdict.error > b->verdict.error; });
  int wrong = 0;
  for (Finding* finding : unsure) {
    if (wrong == kSecondLooks) break;
    if (std::isfinite(finding->verdict.analytic)) finding->verdict = look_again(*finding, row);
    if (!finding->verdict.right) ++wrong;
  }
  return findings;
}

// Right, but so inexactly that another step might do better.
bool DerivativeCheck::is_doubtful(const Verdict& verdict) const {
  return options_.adapt_step && verdict.error > kDoubtful * standard().tolerance;
}

Verdict DerivativeCheck::look_again(const Finding& finding, std::size_t row) {
  const double analytic = finding.verdict.analytic;
  const std::vector<Difference> steps = ladder(finding.line, row);
  if (options_.adapt_step) {
    Standard strict = standard();
    strict.tolerance *= kDoubtful;
    const Verdict verdict = second_look(analytic, steps, strict);
    if (verdict.right) return verdict;
  }
  return finding.verdict.right ? finding.verdict : second_look(analytic, steps, standard());
}

// With the steps of the ladder.
std::vector<Difference> DerivativeCheck::ladder(std::size_t line, std::size_t row) {
  std::vector<Sides>& steps = ladders_[line];
  if (steps.empty()) {
    for (std::size_t i = 0; i < kLadderSteps; ++i) {
      steps.push_back(probe_.sides(lines_[line], ladder_step(i) * options_.step));
    }
  }
  return differences(steps, probe_.centre(), rows_[row].weights);
}

// Halves a direction until one element is left, going after the larger error; and compares that element and others.
void DerivativeCheck::locate(const Finding& finding, std::size_t row) {
  const Line whole = lines_[finding.line];
  const std::int64_t size = probe_.size(whole.variable);
  const std::vector<double>& gradient = rows_[row].of(finding.backward)[static_cast<std::size_t>(whole.variable)];
  const auto error_in = [&](std::int64_t begin, std::int64_t end) {
    Line part{whole.variable, 0, std::vector<double>(static_cast<std::size_t>(size), 0.0)};
    std::copy(whole.direction.begin() + begin, whole.direction.begin() + end, part.direction.begin() + begin);
    const std::vector<Sides> sides{probe_.sides(part, options_.step)};
    const double numeric = differences(sides, probe_.centre(), rows_[row].weights)[0].central;
    return std::abs((gradient.empty() ? 0 : Probe::along(part, gradient)) - numeric);
  };
  std::int64_t begin = 0, end = size;
  while (end - begin > 1) {
    const std::int64_t middle = begin + (end - begin) / 2;
    (error_in(begin, middle) >= error_in(middle, end) ? end : begin) = middle;
  }
  add_line({whole.variable, begin});
  for (std::int64_t i = 0; i < std::min(size, kSampled); ++i) {
    add_line({whole.variable, size <= kSampled ? i : random_element(size, generator_)});
  }
}

GradcheckFailure DerivativeCheck::explain(std::int64_t variable, std::size_t row,
                                          const std::vector<Finding>& findings) const {
  using enum GradcheckBackward;
  const auto wrong_in = [&](GradcheckBackward backward) {
    return std::any_of(findings.begin(), findings.end(),
                       [&](const Finding& finding) { return finding.backward == backward && !finding.verdict.right; });
  };
  const auto v = static_cast<std::size_t>(variable);
  const NamedTensor& named = function_.variables[v];
  GradcheckFailure failure{.order = function_.order, .input = named.path, .shape = named.tensor.shape()};
  const GradcheckBackward shown = wrong_in(plain) ? plain : create_graph;
  if (rows_[row].has(create_graph) && !(wrong_in(plain) && wrong_in(create_graph))) failure.backward = shown;

  Evidence evidence{.shape = failure.shape, .x = flatten({named.tensor}), .sizes = sizes()};
  evidence.undefined = rows_[row].of(shown)[v].empty();
  const Finding* worst = nullptr;
  std::map<std::int64_t, const Finding*> by_element;
  for (const Finding& finding : findings) {
    if (finding.backward != shown) continue;
    ++failure.total;
    if (lines_[finding.line].is_element()) by_element[lines_[finding.line].element] = &finding;
    if (finding.verdict.right) continue;
    ++failure.wrong;
    if (worst == nullptr || is_worse(finding.verdict, worst->verdict)) worst = &finding;
  }
  for (const auto& [element, finding] : by_element) evidence.add(element, finding->verdict);
  failure.along_direction = !lines_[worst->line].is_element();
  if (!failure.along_direction) {
    failure.coordinate = coordinate_of(failure.shape, lines_[worst->line].element);
    failure.total = static_cast<std::int64_t>(evidence.elements.size());
    failure.wrong = evidence.wrong_count();
  }
  diagnose(evidence, worst->verdict, failure);
  return failure;
}

// That occur in the shapes of the check.
std::vector<std::int64_t> DerivativeCheck::sizes() const {
  std::vector<std::int64_t> sizes;
  const auto add = [&](const Tensor& tensor) {
    sizes.insert(sizes.end(), tensor.shape().begin(), tensor.shape().end());
    sizes.push_back(tensor.numel());
  };
  for (const Tensor& output : outputs_) add(output);
  for (const NamedTensor& variable : function_.variables) {
    add(variable.tensor);
    for (const Tensor& output : outputs_) {  // elements that a sum has, or that a broadcast makes
      const auto [few, many] = std::minmax({output.numel(), variable.tensor.numel()});
      if (few > 0 && many % few == 0) sizes.push_back(many / few);
    }
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

Standard DerivativeCheck::standard() const {
  const double tolerance = function_.order == 1 ? options_.tolerance : options_.tolerance_second;
  return {tolerance, largest_, options_.adapt_step, options_.allow_kinks};
}

}  // namespace prenorm
