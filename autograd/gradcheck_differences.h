// Differences of a function along lines through its inputs.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "autograd/gradcheck_inputs.h"
#include "autograd/tensor.h"

namespace prenorm {

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
  double noise = 0;  // what rounding of the outputs may add to `central`
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
