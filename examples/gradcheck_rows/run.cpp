#include "gradcheck_rows/run.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "autograd/observer.h"
#include "autograd/ops.h"

namespace prenorm::gradcheck_rows {
namespace {

// Of a text, the same on every machine (FNV-1a).
std::uint64_t hash(const std::string& text) {
  std::uint64_t h = 14695981039346656037u;
  for (unsigned char c : text) h = (h ^ c) * 1099511628211u;
  return h;
}

// Notes the ops that are recorded while it lives.
class OpsSeen : public Observer {
 public:
  explicit OpsSeen(std::set<std::pair<std::string, std::string>>& seen) : seen_(seen) {}
  void node_made(const std::shared_ptr<const Node>& node, const Tensors&, const Tensors&) override {
    seen_.emplace(node->info().name, node->info().file);
  }

 private:
  std::set<std::pair<std::string, std::string>>& seen_;
};

void add(const Case& one, Result& result) {
  result.shapes.push_back(one.shapes);
  const auto fail = [&](const std::string& why) {
    result.passed = false;
    result.messages.push_back(one.shapes + ": " + why);
  };
  try {
    const GradcheckReport report = gradcheck(one.f, one.inputs, one.options);
    result.elements += report.elements;
    result.worst_first = std::max(result.worst_first, report.worst_first);
    result.worst_second = std::max(result.worst_second, report.worst_second);
    result.second_order = result.second_order || one.options.order > 1;
    if (!report.passed) fail(report.message);
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

}  // namespace

Cases cases_of(const Row& row, std::uint64_t seed) {
  const std::uint64_t own = (hash(row.title()) + seed) % (std::uint64_t{1} << 32);
  manual_seed(own);  // for the weights of layers
  Cases cases(own);
  row.make(cases);
  return cases;
}

Result run(const Row& row, std::uint64_t seed) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  Result result;
  try {
    const Cases cases = cases_of(row, seed);
    for (const Case& one : cases.all()) add(one, result);
  } catch (const std::exception& error) {  // of a layer that cannot be made
    result.passed = false;
    result.messages.emplace_back(error.what());
  }
  if (result.passed && result.elements == 0) {
    result.passed = false;
    result.messages.emplace_back("no element was compared, which proves nothing");
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return result;
}

std::set<std::pair<std::string, std::string>> ops_of(const Row& row, std::uint64_t seed) {
  std::set<std::pair<std::string, std::string>> seen;
  const Cases cases = cases_of(row, seed);
  const OpsSeen observer(seen);
  for (const Case& one : cases.all()) {
    Tensors inputs, outputs, wanted, cotangents;
    for (const NamedTensor& input : one.inputs) {
      inputs.push_back(input.tensor);
      if (input.tensor.requires_grad()) wanted.push_back(input.tensor);
    }
    for (const Tensor& output : one.f(inputs)) {
      if (!output.requires_grad()) continue;
      outputs.push_back(output);
      cotangents.push_back(ones_like(output).requires_grad_());
    }
    grad(outputs, wanted, cotangents, {.create_graph = true, .allow_unused = true});
  }
  return seen;
}

std::vector<SweepPoint> sweep(const Row& row, std::uint64_t seed) {
  std::vector<SweepPoint> worst;
  const Cases cases = cases_of(row, seed);
  for (const Case& one : cases.all()) {
    if (one.options.allow_vacuous || one.options.allow_kinks) continue;
    const std::vector<SweepPoint> points = prenorm::sweep(one.f, one.inputs, one.options);
    if (worst.empty()) worst = points;
    for (std::size_t i = 0; i < points.size(); ++i) worst[i].worst = std::max(worst[i].worst, points[i].worst);
  }
  return worst;
}

}  // namespace prenorm::gradcheck_rows
