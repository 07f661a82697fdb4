#include "autograd/gradcheck/differences.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <string>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"

namespace prenorm {
namespace {

Tensors tensors_of(const NamedTensors& named) {
  Tensors tensors;
  for (const NamedTensor& one : named) tensors.push_back(one.tensor);
  return tensors;
}

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

NamedTensors checked_among(const NamedTensors& inputs) {
  NamedTensors checked;
  std::copy_if(inputs.begin(), inputs.end(), std::back_inserter(checked),
               [](const NamedTensor& input) { return input.tensor.requires_grad(); });
  return checked;
}

Differentiable first_derivative(const GradcheckFunction& f, const NamedTensors& inputs) {
  const auto record = [&f, tensors = tensors_of(inputs)] { return f(tensors); };  // one f: it may keep state
  const auto evaluate = [record] {
    const NoGrad no_grad;
    return record();
  };
  return {1, checked_among(inputs), record, evaluate};
}

Differentiable second_derivative(const Differentiable& first, const Tensors& outputs, const Tensors& cotangents) {
  Differentiable second{2, first.variables, {}, {}};
  std::vector<std::size_t> places;  // of the outputs to differentiate
  Tensors u;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].requires_grad()) continue;
    places.push_back(i);
    u.push_back(clone(cotangents[i]).detach().requires_grad_());
    second.variables.push_back({"cotangent " + std::to_string(i), u.back()});
  }
  const auto gradients = [record = first.record, inputs = tensors_of(first.variables), places, u](bool create_graph) {
    const Tensors all = record();
    Tensors differentiable;
    for (std::size_t place : places) differentiable.push_back(all[place]);
    Tensors results = grad(differentiable, inputs, u, {.create_graph = create_graph, .allow_unused = true});
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!results[i].defined()) results[i] = zeros_like(inputs[i]);
    }
    return results;
  };
  second.record = [gradients] { return gradients(true); };
  second.evaluate = [gradients] { return gradients(false); };
  return second;
}

std::vector<double> random_weights(std::int64_t count, Generator& generator) {
  std::vector<double> weights(static_cast<std::size_t>(count));
  for (double& weight : weights) {
    const double size = 0.5 + generator.uniform();
    weight = generator.uniform() < 0.5 ? -size : size;
  }
  return weights;
}

Tensors random_cotangents(const Tensors& outputs, Generator& generator) {
  Tensors cotangents;
  for (const Tensor& output : outputs) {
    if (!is_float(output.dtype())) {
      cotangents.emplace_back();
      continue;
    }
    const std::vector<double> weights = random_weights(output.numel(), generator);
    cotangents.push_back(Tensor::of(weights, output.shape(), {.dtype = output.dtype()}));
  }
  return cotangents;
}

Gradients gradients_of(const Tensors& outputs, const NamedTensors& variables, const Tensors& cotangents,
                       bool create_graph) {
  Tensors differentiable, their_cotangents, inputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].requires_grad()) continue;
    differentiable.push_back(outputs[i]);
    their_cotangents.push_back(cotangents[i]);
  }
  Gradients gradients(variables.size());
  if (differentiable.empty()) return gradients;
  for (const NamedTensor& variable : variables) inputs.push_back(variable.tensor);
  const Tensors results = grad(differentiable, inputs, their_cotangents,
                               {.create_graph = create_graph, .keep_graph = true, .allow_unused = true});
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].defined()) gradients[i] = flatten({results[i]});
  }
  return gradients;
}

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
  out.reserve(steps.size());
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
