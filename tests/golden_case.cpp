#include "tests/golden_case.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <sstream>

#include "autograd/check.h"
#include "autograd/safetensors.h"

namespace prenorm::golden {
namespace {

// "[1, 2]": where an element stands, from its number in row-major order.
Shape coordinates(const Shape& shape, std::int64_t number) {
  Shape at = shape;
  for (std::int64_t d = shape.dims() - 1; d >= 0; --d) {
    at[d] = number % shape[d];
    number /= shape[d];
  }
  return at;
}

// The error in units of what is allowed: above 1 is too much. Equal values have none, be they infinite, NaN or integers
// that are too large for double.
template <class T>
double relative_error(T got, T want, double tolerance) {
  const auto x = static_cast<double>(got), y = static_cast<double>(want);
  if (got == want || (std::isnan(x) && std::isnan(y))) return 0;
  const double ratio = std::abs(x - y) / (tolerance * (1 + std::abs(y)));
  return std::isnan(ratio) ? INFINITY : ratio;
}

// What is wrong with `got`, empty if nothing is.
template <class T>
std::string difference(const Tensor& got, const Tensor& want, double tolerance) {
  const std::vector<T> got_values = got.to_vector<T>();
  const std::vector<T> want_values = want.to_vector<T>();
  std::size_t worst = 0;
  double worst_error = 0;
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < want_values.size(); ++i) {
    const double error = relative_error(got_values[i], want_values[i], tolerance);
    if (error > 1) ++wrong;
    if (error > worst_error) {
      worst = i;
      worst_error = error;
    }
  }
  if (wrong == 0) return {};
  std::ostringstream text;
  text.precision(17);
  text << wrong << " of " << want_values.size() << " elements are wrong, worst "
       << coordinates(want.shape(), static_cast<std::int64_t>(worst)) << ": got " << got_values[worst] << ", want "
       << want_values[worst];
  text.precision(3);
  text << ", error " << std::abs(static_cast<double>(got_values[worst]) - static_cast<double>(want_values[worst]))
       << " against tolerance " << tolerance;
  return text.str();
}

bool starts_with_any(const std::string& name, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

Case::Case(const std::filesystem::path& file) {
  SafetensorsFile content = read_safetensors(file);
  kind_ = content.metadata.at("case");
  config_ = Json::parse(content.metadata.at("config"));
  tolerance_ = std::stod(content.metadata.at("tolerance"));
  for (NamedTensor& named : content.tensors) tensors_.emplace(std::move(named.path), std::move(named.tensor));
  for (const auto& [name, tensor] : tensors_) {
    if (name.starts_with("grad.")) find(name.substr(5)).requires_grad_();
  }
}

Tensor Case::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? Tensor() : found->second;
}

Tensor Case::in(const std::string& name) const {
  Tensor tensor = optional_in(name);
  check(tensor.defined(), "the file has no input ", name);
  return tensor;
}

Tensor Case::param(const std::string& name) const {
  Tensor tensor = optional_param(name);
  check(tensor.defined(), "the file has no parameter ", name);
  return tensor;
}

NamedTensors Case::params() const {
  NamedTensors params;
  for (const auto& [name, tensor] : tensors_) {
    if (name.starts_with("param.")) params.push_back({name.substr(6), tensor});
  }
  return params;
}

void Case::compare(const std::string& name, const Tensor& got, double tolerance) {
  const Tensor want = find(name);
  check(want.defined(), "the file has no tensor ", name);
  check(compared_.insert(name).second, name, " was compared twice");
  std::ostringstream fault;
  if (!got.defined()) {
    fault << "got none";
  } else if (got.dtype() != want.dtype() || !(got.shape() == want.shape())) {
    fault << "got " << got.dtype() << ' ' << got.shape() << ", want " << want.dtype() << ' ' << want.shape();
  } else {
    fault << (is_float(want.dtype()) ? difference<double>(got, want, tolerance)
                                     : difference<std::int64_t>(got, want, 0));
  }
  if (!fault.str().empty()) faults_.push_back(name + ": " + fault.str());
}

void Case::out(const std::string& name, const Tensor& got, double tolerance) {
  compare("out." + name, got, tolerance);
  outputs_[name] = got;
}

void Case::use_params(const NamedTensors& params) {
  for (const NamedTensor& named : params) tensors_["param." + named.path] = named.tensor;
}

void Case::backward() {
  for (const auto& [name, output] : outputs_) {
    const Tensor cotangent = find("cotangent." + name);
    if (cotangent.defined()) output.backward(cotangent, {.keep_graph = true});  // outputs may share a graph
  }
  for (const auto& [name, tensor] : tensors_) {
    if (name.starts_with("grad.")) compare(name, find(name.substr(5)).grad(), tolerance_);
  }
}

std::vector<std::string> Case::faults() const {
  std::vector<std::string> faults = faults_;
  for (const auto& [name, tensor] : tensors_) {
    if (starts_with_any(name, {"out.", "grad."}) && !compared_.contains(name))
      faults.push_back(name + ": was not compared");
  }
  return faults;
}

Shape to_shape(const Json& sizes) {
  const auto values = sizes.get<std::vector<std::int64_t>>();
  return Shape(values.begin(), values.end());
}

}  // namespace prenorm::golden
