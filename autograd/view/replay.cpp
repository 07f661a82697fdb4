#include "autograd/view/replay.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <utility>

#include "autograd/gradcheck/inputs.h"
#include "autograd/ops.h"
#include "autograd/view/trace.h"

namespace prenorm::view {
namespace {

double epsilon_of(DType dtype) {
  return dtype == float32 ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
}

Tensors converted(const Tensors& tensors, bool to_float64) {
  const NoGrad no_grad;
  Tensors out;
  for (const Tensor& tensor : tensors) {
    const bool convert = to_float64 && tensor.defined() && tensor.dtype() == float32;
    out.push_back(convert ? to(tensor, float64) : copy_of(tensor));
  }
  return out;
}

// The largest absolute value; what is not finite is left out.
double largest(const std::vector<double>& values) {
  double most = 0;
  for (double value : values) most = std::isfinite(value) ? std::max(most, std::abs(value)) : most;
  return most;
}

// Infinite where one is finite and the other is not.
double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return INFINITY;
    most = std::max(most, std::abs(a[i] - b[i]));
  }
  return most;
}

double length(const std::vector<double>& values) {
  double squares = 0;
  for (double value : values) squares += value * value;
  return std::sqrt(squares);
}

}  // namespace

Replay::Replay(const RecordedNode& node, const Tensors& cotangents) : node_(node), cotangents_(cotangents) {
  for (std::size_t i = 0; i < cotangents.size(); ++i) {
    if (!cotangents[i].defined()) continue;
    used_.push_back(i);
    const std::vector<double> values = cotangents[i].to_vector<double>();
    weights_.insert(weights_.end(), values.begin(), values.end());
  }
  if (!std::all_of(weights_.begin(), weights_.end(), [](double weight) { return std::isfinite(weight); })) {
    obstacle_ = "the incoming gradient is not finite";
    return;
  }
  for (bool in_float64 : {true, false}) {
    try {
      inputs_ = converted(node.input_values, in_float64);
      const NoGrad no_grad;
      const Tensors outputs = node.node->forward(inputs_);
      for (std::size_t i : used_) epsilon_ = std::max(epsilon_, epsilon_of(outputs.at(i).dtype()));
      obstacle_ = reproduces(outputs) ? "" : "run again, the forward gives other values than were recorded";
      centre_ = flattened(outputs);
      return;
    } catch (const std::exception& error) {
      obstacle_ = std::string("the forward cannot be run again: ") + error.what();
      epsilon_ = 0;
    }
  }
}

// Far from exact equality: what was recorded may be float32, and an op of another value is far off. An output that is a
// small difference of large inputs may be all rounding.
bool Replay::reproduces(const Tensors& outputs) const {
  double inputs = 0;
  for (const Tensor& input : inputs_) {
    if (input.defined() && is_float(input.dtype())) inputs = std::max(inputs, largest(input.to_vector<double>()));
  }
  return std::all_of(used_.begin(), used_.end(), [&](std::size_t i) {
    const Tensor &again = outputs[i], &recorded = node_.outputs[i];
    if (again.shape() != recorded.shape()) return false;
    const std::vector<double> expected = recorded.to_vector<double>();
    const bool single = recorded.dtype() == float32;
    const double tolerance = (single ? 1e-3 : 1e-9) * largest(expected) + 16 * epsilon_of(recorded.dtype()) * inputs;
    return largest_difference(again.to_vector<double>(), expected) <= tolerance;
  });
}

std::vector<double> Replay::flattened(const Tensors& outputs) const {
  Tensors used;
  for (std::size_t i : used_) used.push_back(outputs[i]);
  return flatten(used);
}

std::vector<double> Replay::run() const {
  const NoGrad no_grad;
  return flattened(node_.node->forward(inputs_));
}

std::vector<double> Replay::rounding(std::int64_t input) const {
  const auto at = static_cast<std::size_t>(input);
  const NoGrad no_grad;
  RecordedNode again;
  again.node = node_.node;
  again.inputs = node_.inputs;
  again.input_values = inputs_;
  std::vector<bool> wanted(again.inputs.size(), false);
  wanted[at] = true;
  const Tensors cotangents = converted(cotangents_, true);
  const auto gradient = [&](bool rounded) {
    again.outputs = node_.node->forward(inputs_);
    for (Tensor& output : again.outputs) {
      if (rounded && output.defined() && output.dtype() == float64) output = to(to(output, float32), float64);
    }
    const Tensor dx = backward_of(again, cotangents, wanted)[at];
    return dx.defined() ? dx.to_vector<double>() : std::vector<double>();
  };
  try {
    const std::vector<double> exact = gradient(false);
    std::vector<double> change = gradient(true);
    for (std::size_t i = 0; i < change.size(); ++i) change[i] -= exact[i];
    return change;
  } catch (const std::exception&) {
    return {};  // this backward does not run in float64
  }
}

std::vector<double> Replay::input(std::int64_t index) const {
  return inputs_[static_cast<std::size_t>(index)].to_vector<double>();
}

std::int64_t Replay::elements() const {
  auto count = static_cast<std::int64_t>(centre_.size());
  for (const Tensor& input : inputs_) count += input.defined() ? input.numel() : 0;
  return count;
}

// Each element of a direction moves by about as much as an element alone would.
Sides Replay::sides(const Line& line, double step) const {
  const Movable movable(inputs_[static_cast<std::size_t>(line.variable)]);
  Sides out;
  out.epsilon = epsilon_;
  const auto move = [&](double by) {
    if (line.is_element()) return movable.move(line.element, by);
    for (std::int64_t i = 0; i < movable.size(); ++i) {
      movable.move(i, by * line.direction[static_cast<std::size_t>(i)]);
    }
    return by;
  };
  const std::vector<double> values = input(line.variable);
  const double by =
      step * (line.is_element() ? std::max(1.0, std::abs(values[static_cast<std::size_t>(line.element)]))
                                : std::max(std::sqrt(static_cast<double>(values.size())), length(values)));
  out.forth = move(by);
  out.plus = run();
  out.back = -move(-by);
  out.minus = run();
  for (std::int64_t i = 0; i < movable.size(); ++i) movable.put_back(i);
  return out;
}

}  // namespace prenorm::view
