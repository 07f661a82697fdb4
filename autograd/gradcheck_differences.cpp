#include "autograd/gradcheck_differences.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace prenorm {
namespace {

// b - a, and 0 for two equal infinities: an output that is -inf on purpose does not move.
double change(double a, double b) { return a == b ? 0 : b - a; }

Difference difference(const Sides& sides, const std::vector<double>& centre, const std::vector<double>& weights,
                      const std::vector<bool>& moves) {
  Difference out;
  double squares = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!moves[i]) continue;
    out.central += weights[i] * change(sides.minus[i], sides.plus[i]);
    out.left += weights[i] * change(sides.minus[i], centre[i]);
    out.right += weights[i] * change(centre[i], sides.plus[i]);
    const double size = weights[i] * std::max(std::abs(sides.minus[i]), std::abs(sides.plus[i]));
    if (std::isfinite(size)) squares += size * size;
  }
  out.central /= sides.back + sides.forth;
  out.left /= sides.back;
  out.right /= sides.forth;
  out.noise = sides.epsilon * std::sqrt(squares) / (sides.back + sides.forth);
  out.step = (sides.back + sides.forth) / 2;
  return out;
}

}  // namespace

std::vector<double> flatten(const Tensors& tensors) {
  std::vector<double> values;
  for (const Tensor& tensor : tensors) {
    if (!is_float(tensor.dtype())) continue;
    if (tensor.dtype() == float64 && tensor.is_contiguous()) {
      values.insert(values.end(), tensor.data<double>(), tensor.data<double>() + tensor.numel());
    } else {
      const std::vector<double> part = tensor.to_vector<double>();
      values.insert(values.end(), part.begin(), part.end());
    }
  }
  return values;
}

std::vector<Difference> differences(const std::vector<Sides>& steps, const std::vector<double>& centre,
                                    const std::vector<double>& weights) {
  std::vector<bool> moves(weights.size(), false);
  for (const Sides& sides : steps) {
    for (std::size_t i = 0; i < weights.size(); ++i) moves[i] = moves[i] || sides.minus[i] != sides.plus[i];
  }
  std::vector<Difference> out;
  for (const Sides& sides : steps) out.push_back(difference(sides, centre, weights, moves));
  return out;
}

Probe::Probe(const NamedTensors& variables, std::function<Tensors()> evaluate) : evaluate_(std::move(evaluate)) {
  for (const NamedTensor& variable : variables) {
    variables_.emplace_back(variable.tensor);
    const double epsilon = dispatch_float("gradcheck", variable.tensor.dtype(),
                                          [](auto t) -> double { return std::numeric_limits<decltype(t)>::epsilon(); });
    epsilon_ = std::max(epsilon_, epsilon);
  }
  centre_ = outputs();
}

std::vector<double> Probe::outputs() const { return flatten(evaluate_()); }

Sides Probe::sides(const Line& line, double step) const {
  const double by = step * scale(line);
  Sides out;
  out.epsilon = epsilon_;
  out.forth = move(line, by);
  out.plus = outputs();
  out.back = -move(line, -by);
  out.minus = outputs();
  put_back(line);
  check(out.plus.size() == centre_.size() && out.minus.size() == centre_.size(),
        "gradcheck: the outputs change their size with the inputs' values: ", centre_.size(), " elements, ",
        out.plus.size(), " and ", out.minus.size(), " beside");
  return out;
}

double Probe::scale(const Line& line) const {
  const Movable& variable = variables_[static_cast<std::size_t>(line.variable)];
  if (line.is_element()) return std::max(1.0, std::abs(variable.value(line.element)));
  double squares = 0;
  for (std::int64_t i = 0; i < variable.size(); ++i) squares += variable.value(i) * variable.value(i);
  return std::sqrt(std::max(static_cast<double>(variable.size()), squares));
}

double Probe::move(const Line& line, double by) const {
  const Movable& variable = variables_[static_cast<std::size_t>(line.variable)];
  if (line.is_element()) return variable.move(line.element, by);
  for (std::int64_t i = 0; i < variable.size(); ++i) variable.move(i, by * line.direction[static_cast<std::size_t>(i)]);
  return by;
}

void Probe::put_back(const Line& line) const {
  const Movable& variable = variables_[static_cast<std::size_t>(line.variable)];
  if (line.is_element()) return variable.put_back(line.element);
  for (std::int64_t i = 0; i < variable.size(); ++i) variable.put_back(i);
}

double Probe::along(const Line& line, const std::vector<double>& gradient) {
  if (line.is_element()) return gradient[static_cast<std::size_t>(line.element)];
  return std::inner_product(gradient.begin(), gradient.end(), line.direction.begin(), 0.0);
}

}  // namespace prenorm
