#include "autograd/gradcheck.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <sstream>

#include "autograd/grad_mode.h"
#include "autograd/gradcheck/agreement.h"
#include "autograd/gradcheck/derivative.h"
#include "autograd/gradcheck/inputs.h"
#include "autograd/gradcheck/reason.h"
#include "autograd/ops.h"

namespace prenorm {
namespace {

constexpr double kFloat32Step = 5e-3, kFloat32Tolerance = 2e-2;
// Two ways to run backward may differ by rounding only: so much smaller is their tolerance than that of differences.
constexpr double kRounding = 1e-2;

NamedTensors with_names(const Tensors& inputs) {
  NamedTensors named;
  for (std::size_t i = 0; i < inputs.size(); ++i) named.push_back({"input " + std::to_string(i), inputs[i]});
  return named;
}

GradcheckOptions suited_to(const NamedTensors& checked, GradcheckOptions options) {
  check(options.order == 1 || options.order == 2, "gradcheck: order is 1 or 2, got ", options.order);
  check(options.step > 0, "gradcheck: step is positive, got ", options.step);
  const bool any_float32 = std::any_of(checked.begin(), checked.end(),
                                       [](const NamedTensor& input) { return input.tensor.dtype() == float32; });
  if (!any_float32) return options;
  options.step = std::max(options.step, kFloat32Step);
  options.tolerance = std::max(options.tolerance, kFloat32Tolerance);
  options.tolerance_second = std::max(options.tolerance_second, kFloat32Tolerance);
  return options;
}

void refuse_undefined(const Tensors& outputs) {
  bool any_float = false;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    check(outputs[i].defined(), "gradcheck: output ", i, " of the function is undefined");
    any_float = any_float || is_float(outputs[i].dtype());
  }
  check(any_float, "gradcheck: none of the ", outputs.size(), " outputs of the function is of a float type");
}

// Differences of a function that gives another value each time are noise.
void refuse_different(const Tensors& first, const Tensors& second) {
  check(first.size() == second.size(), "gradcheck: the function is not deterministic: it gave ", first.size(),
        " outputs, then ", second.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    check(second[i].defined() && first[i].shape() == second[i].shape(),
          "gradcheck: the function is not deterministic: output ", i, " changed its shape from ", first[i].shape());
    const std::vector<double> a = first[i].to_vector<double>(), b = second[i].to_vector<double>();
    for (std::size_t e = 0; e < a.size(); ++e) {
      check(std::bit_cast<std::uint64_t>(a[e]) == std::bit_cast<std::uint64_t>(b[e]),
            "gradcheck: the function is not deterministic: output ", i, " at ",
            coordinate_of(first[i].shape(), static_cast<std::int64_t>(e)), " was ", a[e], ", then ", b[e],
            " for the same inputs; draw random numbers, such as a dropout mask, once and outside of it");
    }
  }
}

// Inputs drawn with the same seed would otherwise be their own cotangents, for which layer_norm has gradient 0.
Generator generator_for(const GradcheckOptions& options) { return Generator(options.seed ^ 0x67726164); }

GradcheckFailure vacuous() {
  GradcheckFailure failure{.reason = GradcheckReason::vacuous};
  failure.detail =
      "vacuous: all gradients are zero, analytic and numeric, which proves nothing; "
      "choose inputs at which the function changes";
  return failure;
}

void check_derivatives(const GradcheckFunction& f, const NamedTensors& inputs, const GradcheckOptions& options,
                       GradcheckReport& report) {
  Generator generator = generator_for(options);
  const Differentiable function = first_derivative(f, inputs);
  DerivativeCheck first(function, options, generator);
  if (first.is_vacuous()) {
    if (!options.allow_vacuous) report.failures.push_back(vacuous());
    if (!options.allow_vacuous || first.elements() > 0) return;  // empty tensors have backwards to run, too
  }
  first.run(report);
  if (!report.failures.empty()) return;
  if (const auto failure = find_disagreement(function, first, kRounding * options.tolerance)) {
    report.failures.push_back(*failure);
    return;
  }
  if (options.order == 1 ||
      std::none_of(first.outputs().begin(), first.outputs().end(), [](const Tensor& y) { return y.requires_grad(); }))
    return;
  DerivativeCheck second(second_derivative(function, first.outputs(), first.cotangents()), options, generator);
  second.run(report);
}

std::string summary(const GradcheckReport& report, const GradcheckOptions& options) {
  std::ostringstream out;
  out.precision(2);
  if (report.passed) {
    out << "gradcheck: right: " << report.elements << " elements compared, largest relative error "
        << report.worst_first << " at order 1";
    if (options.order > 1) out << ", " << report.worst_second << " at order 2";
    if (report.smallest_step < 0.5 * options.step) out << "; steps down to " << report.smallest_step << " were needed";
    return out.str();
  }
  for (const GradcheckFailure& failure : report.failures) {
    if (&failure != &report.failures.front()) out << '\n';
    out << "gradcheck: " << describe(failure, failure.order == 1 ? options.tolerance : options.tolerance_second);
  }
  return out.str();
}

// Runs `body` with the inputs guarded and the function found fit to be judged.
template <class Body>
void guarded(const GradcheckFunction& f, const NamedTensors& inputs, bool allow_float32, Body body) {
  refuse_unsuitable(inputs, allow_float32);
  const Snapshot snapshot(inputs);
  const SetGrad grad_mode(true);
  const Differentiable function = first_derivative(f, inputs);
  const Tensors outputs = function.record();
  snapshot.refuse_changes();
  refuse_undefined(outputs);
  for (int again = 0; again < 2; ++again) refuse_different(outputs, function.evaluate());
  body();
  snapshot.refuse_changes();
}

}  // namespace

GradcheckReport gradcheck(const GradcheckFunction& f, const NamedTensors& inputs, const GradcheckOptions& options) {
  const GradcheckOptions suited = suited_to(checked_among(inputs), options);
  GradcheckReport report;
  report.smallest_step = suited.step;
  guarded(f, inputs, suited.allow_float32, [&] { check_derivatives(f, inputs, suited, report); });
  std::stable_sort(
      report.failures.begin(), report.failures.end(),
      [](const GradcheckFailure& a, const GradcheckFailure& b) { return a.relative_error > b.relative_error; });
  report.passed = report.failures.empty();
  report.message = summary(report, suited);
  return report;
}

GradcheckReport gradcheck(const GradcheckFunction& f, const Tensors& inputs, const GradcheckOptions& options) {
  return gradcheck(f, with_names(inputs), options);
}

std::vector<SweepPoint> sweep(const GradcheckFunction& f, const NamedTensors& inputs, const GradcheckOptions& options) {
  GradcheckOptions suited = suited_to(checked_among(inputs), options);
  std::vector<SweepPoint> points;
  guarded(f, inputs, suited.allow_float32, [&] {
    for (int digits = 1; digits <= 11; ++digits) {
      suited.step = std::pow(10.0, -digits);
      Generator generator = generator_for(suited);
      points.push_back({suited.step, DerivativeCheck(first_derivative(f, inputs), suited, generator).worst()});
    }
  });
  return points;
}

std::vector<SweepPoint> sweep(const GradcheckFunction& f, const Tensors& inputs, const GradcheckOptions& options) {
  return sweep(f, with_names(inputs), options);
}

}  // namespace prenorm
