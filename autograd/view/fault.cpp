#include "autograd/view/fault.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "autograd/ops.h"
#include "autograd/view/norm_parts.h"

namespace prenorm::view {
namespace {

constexpr std::string_view kSign = "sign", kFactor = "factor ", kNothing = "nothing is passed on",
                           kOverwrite = "= for +=", kMean = "the mean part is not taken away",
                           kXHat = "the x_hat part is not taken away", kSigma = "it is not divided by sigma";

void scale_all(Tensors& gradients, double factor) {
  const NoGrad no_grad;
  for (Tensor& gradient : gradients) {
    if (gradient.defined()) gradient = gradient * factor;
  }
}

// dx of a norm, put together from its parts in a wrong way.
auto wrong_norm(const std::string& name) {
  return [name](const RecordedNode& node, const Tensors& cotangents, Tensors& gradients) {
    const std::optional<NormParts> parts = norm_parts(node, cotangents);
    if (!parts.has_value() || !gradients[0].defined()) return;
    const NoGrad no_grad;
    Tensor dx = parts->passed;
    if (name == kMean) dx = dx + parts->mean_part;
    if (name == kXHat) dx = dx + parts->x_hat_part;
    if (name != kSigma) dx = dx / unsqueeze(parts->sigma, -1);
    gradients[0] = to(dx, gradients[0].dtype());
  };
}

std::optional<double> factor_in(const std::string& name) {
  if (!name.starts_with(kFactor)) return std::nullopt;
  double factor = 0;
  const char *begin = name.data() + kFactor.size(), *end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(begin, end, factor);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return factor;
}

}  // namespace

std::vector<std::string> faults_of(std::string_view op) {
  std::vector<std::string> faults{std::string(kOverwrite)};
  if (op == "leaf" || op == "constant") return faults;
  for (std::string_view name : {kSign, std::string_view("factor 1.01"), kNothing}) faults.emplace_back(name);
  if (!is_norm(op)) return faults;
  if (op != "rms_norm") faults.emplace_back(kMean);
  faults.emplace_back(kXHat);
  faults.emplace_back(kSigma);
  return faults;
}

Fault make_fault(const Record& record, std::int64_t id, const std::string& name) {
  const RecordedNode& node = record[id];
  const std::vector<std::string> known = faults_of(node.op());
  const std::optional<double> factor = node.is_op() ? factor_in(name) : std::nullopt;
  if (!factor.has_value() && std::find(known.begin(), known.end(), name) == known.end()) {
    std::string list;
    for (const std::string& one : known) list += (list.empty() ? "\"" : ", \"") + one + '"';
    fail("view::Recording: there is no fault \"", name, "\" for node ", id, ", ", node.op(), "; expected one of ",
         list);
  }
  Fault fault{.node = id, .name = name};
  if (factor.has_value()) {
    fault.change = [f = *factor](const RecordedNode&, const Tensors&, Tensors& gradients) { scale_all(gradients, f); };
  } else if (name == kSign) {
    fault.change = [](const RecordedNode&, const Tensors&, Tensors& gradients) { scale_all(gradients, -1); };
  } else if (name == kNothing) {
    fault.change = [](const RecordedNode&, const Tensors&, Tensors& gradients) { scale_all(gradients, 0); };
  } else if (name == kOverwrite) {
    fault.overwrites = true;
  } else {
    fault.change = wrong_norm(name);
  }
  return fault;
}

}  // namespace prenorm::view
