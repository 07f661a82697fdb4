// A recorded node's forward run again from its recorded inputs, with one of them changed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "autograd/gradcheck/differences.h"
#include "autograd/view/record.h"

namespace prenorm::view {

// In float64, where all that is float32 in the record is converted exactly; in the recorded dtypes where an op does not
// run in float64. An op may also give float32 out, whatever it is given (a conversion): `epsilon` tells.
class Replay {
 public:
  // `cotangents`: one an output, undefined ones take no part. An op's hidden outputs have none; their shape may depend
  // on the dtype.
  Replay(const RecordedNode& node, const Tensors& cotangents);

  // Why there is nothing to compare with, in words; "" where all is well: the forward fails, gives other outputs than
  // were recorded, or cotangents are not finite.
  const std::string& obstacle() const { return obstacle_; }
  double epsilon() const { return epsilon_; }                      // of the outputs' dtype
  const std::vector<double>& weights() const { return weights_; }  // the cotangents, flattened
  const std::vector<double>& centre() const { return centre_; }    // the outputs, flattened in the same order
  std::vector<double> input(std::int64_t index) const;             // its values
  std::int64_t elements() const;                                   // of all inputs and outputs together

  // How much rounding the outputs to float32 changes the gradient of an input, by element: what a recorded float32
  // gradient cannot know better. By the node's own backward in float64, from exact outputs and from rounded ones. Far
  // more than the gradient's own last digit where it is a small difference of large numbers (softmax near 0 or 1).
  std::vector<double> rounding(std::int64_t input) const;

  // The outputs beside the inputs as they are: `line.variable` is the input's number.
  Sides sides(const Line& line, double step) const;

 private:
  std::vector<double> run() const;
  std::vector<double> flattened(const Tensors& outputs) const;  // those in use
  bool reproduces(const Tensors& outputs) const;

  const RecordedNode& node_;
  Tensors cotangents_;
  std::vector<std::size_t> used_;  // numbers of the outputs that have a cotangent
  Tensors inputs_;
  std::vector<double> weights_, centre_;
  double epsilon_ = 0;
  std::string obstacle_;
};

}  // namespace prenorm::view
