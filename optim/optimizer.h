// What the optimisers share: parameter groups, the state they keep a parameter, and its saving by name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/tensor.h"

namespace prenorm::optim {

// Parameters with a learning rate and weight decay of their own.
struct ParameterGroup {
  NamedTensors parameters;
  double lr;
  double weight_decay = 0;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // One update from the gradients as they stand. A parameter whose gradient is absent, or that is frozen, is left as it
  // is, without decay too; a gradient of zeros is a gradient.
  void step();
  void zero_grad() const;  // makes the gradients absent

  // Multiplies the learning rate of every group from now on: what a schedule gives for a step (optim/schedule.h).
  void set_lr_factor(double factor);
  double lr_factor() const { return lr_factor_; }
  const std::vector<ParameterGroup>& groups() const { return groups_; }
  std::vector<ParameterGroup>& groups() { return groups_; }
  NamedTensors parameters() const;  // of all groups

  // The state by "<parameter path>/<name>", handles on the memory itself. All of it is there from the start.
  NamedTensors state_dict() const;
  // Copies values by name; names, shapes and dtypes must be those of state_dict(). On an error nothing has changed.
  void load_state_dict(const NamedTensors& values);

 protected:
  // `names`: the tensors like the parameter to keep for each, from zeros.
  Optimizer(std::string_view type, std::vector<ParameterGroup> groups, const std::vector<std::string>& names);

  // One parameter's state.
  struct Slot {
    std::int64_t step;       // updates so far, this one included
    const Tensors& tensors;  // in the order of `names`
  };
  // Updates a parameter from its gradient; all tensors are dense and of one dtype.
  virtual void update(const Tensor& parameter, const Tensor& gradient, const Slot& slot, double lr,
                      double weight_decay) const = 0;

 private:
  struct Entry {
    std::size_t group;
    NamedTensor parameter;
    Tensor step;  // int64 []
    Tensors tensors;
  };
  std::string type_;
  std::vector<std::string> names_;
  std::vector<ParameterGroup> groups_;
  std::vector<Entry> entries_;
  double lr_factor_ = 1;
};

}  // namespace prenorm::optim
