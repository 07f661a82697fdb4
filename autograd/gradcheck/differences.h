// A function of tensors that stay where they are: its gradients by backward, and its differences by moving them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "autograd/gradcheck.h"
#include "autograd/gradcheck/inputs.h"
#include "autograd/random.h"
#include "autograd/tensor.h"

namespace prenorm {

// --- gradients

// A function whose first derivative is checked. It reads its variables where they are.
struct Differentiable {
  int order = 1;  // of the derivative of f that this comes to
  NamedTensors variables;
  std::function<Tensors()> record;    // the outputs, in a graph
  std::function<Tensors()> evaluate;  // the same values
};

// f as a function of the inputs that require grad; the others are constants. Refers to f.
Differentiable first_derivative(const GradcheckFunction& f, const NamedTensors& inputs);
// The gradients of `first` as a function of its variables and of the cotangents, at `cotangents` of its `outputs`.
Differentiable second_derivative(const Differentiable& first, const Tensors& outputs, const Tensors& cotangents);
// The inputs that require grad.
NamedTensors checked_among(const NamedTensors& inputs);

// By variable, row-major; empty where backward gives none.
using Gradients = std::vector<std::vector<double>>;

// Of either sign, and away from 0, where a weight would hide a wrong element.
std::vector<double> random_weights(std::int64_t count, Generator& generator);
// One for each output; undefined for those of no float type.
Tensors random_cotangents(const Tensors& outputs, Generator& generator);
// Gradients of sum(outputs * cotangents) with respect to the variables; the graph is kept.
Gradients gradients_of(const Tensors& outputs, const NamedTensors& variables, const Tensors& cotangents,
                       bool create_graph = false);

// --- differences

// The elements of float tensors, one tensor after the other in row-major order; others are left out.
std::vector<double> flatten(const Tensors& tensors);

// Where to go from the inputs: along one element of one of them, or along a direction of length 1.
struct Line {
  std::int64_t variable = 0;
  std::int64_t element = 0;            // row-major
  std::vector<double> direction = {};  // one number an element; empty: along `element` alone
  bool is_element() const { return direction.empty(); }
};

// The outputs at two points of a line, and how far these are from the inputs.
struct Sides {
  std::vector<double> minus, plus;
  double back = 0, forth = 0;
  double epsilon = 0;  // of the dtype they were computed in
};

// A derivative along a line, of sum(weights * outputs).
struct Difference {
  double left = 0, central = 0, right = 0;
  double noise = 0;  // the size of what rounding of the outputs adds to `central`
  double step = 0;
};
// For each step its difference; all on one line. Outputs that move at none of them add no noise.
std::vector<Difference> differences(const std::vector<Sides>& steps, const std::vector<double>& centre,
                                    const std::vector<double>& weights);

// A function of variables that are moved in place.
class Probe {
 public:
  // `evaluate` computes the outputs from the values that the variables have when it is called.
  Probe(const NamedTensors& variables, std::function<Tensors()> evaluate);

  std::int64_t size(std::int64_t variable) const { return variables_[static_cast<std::size_t>(variable)].size(); }
  double epsilon() const { return epsilon_; }                    // the coarsest of the variables' dtypes
  const std::vector<double>& centre() const { return centre_; }  // the outputs at the inputs as they are
  // A step to both sides, `step` times the size of what moves: each element of a direction moves by about as much as
  // an element alone.
  Sides sides(const Line& line, double step) const;
  // The derivative along a line from a gradient with respect to its variable.
  static double along(const Line& line, const std::vector<double>& gradient);

 private:
  std::vector<double> outputs() const;
  double scale(const Line& line) const;
  double move(const Line& line, double by) const;
  void put_back(const Line& line) const;

  std::vector<Movable> variables_;
  std::function<Tensors()> evaluate_;
  double epsilon_ = 0;
  std::vector<double> centre_;
};

}  // namespace prenorm
