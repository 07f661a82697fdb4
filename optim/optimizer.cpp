#include "optim/optimizer.h"

#include <cmath>
#include <utility>

#include "autograd/grad_mode.h"
#include "autograd/named_tensors.h"
#include "autograd/ops.h"

namespace prenorm::optim {

Optimizer::Optimizer(std::string_view type, std::vector<ParameterGroup> groups, const std::vector<std::string>& names)
    : type_(type), names_(names), groups_(std::move(groups)) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const ParameterGroup& group = groups_[g];
    check(group.lr >= 0 && std::isfinite(group.lr), type, ": lr is not negative, got ", group.lr);
    check(group.weight_decay >= 0, type, ": weight_decay is not negative, got ", group.weight_decay);
    for (const NamedTensor& parameter : group.parameters) {
      const auto& [path, tensor] = parameter;
      check(tensor.defined() && tensor.is_leaf() && is_float(tensor.dtype()) && tensor.is_contiguous(), type, ": '",
            path, "' is no parameter: expected a contiguous leaf of a float type");
      for (const Entry& other : entries_) {
        check(!other.parameter.tensor.is(tensor) && other.parameter.path != path, type, ": '", path, "' and '",
              other.parameter.path, "' are the same parameter, which would be stepped twice");
      }
      Entry entry{g, parameter, zeros({}, int64), {}};
      for (std::size_t i = 0; i < names.size(); ++i) entry.tensors.push_back(zeros_like(tensor));
      entries_.push_back(std::move(entry));
    }
  }
  check(!entries_.empty(), type, ": there are no parameters");
}

void Optimizer::step() {
  const NoGrad no_grad;
  for (const Entry& entry : entries_) {
    const Tensor& parameter = entry.parameter.tensor;
    const Tensor gradient = parameter.grad();
    if (!gradient.defined() || !parameter.requires_grad()) continue;
    const ParameterGroup& group = groups_[entry.group];
    const std::int64_t step = ++*entry.step.mutable_data<std::int64_t>();
    update(parameter, contiguous(gradient), {step, entry.tensors}, group.lr * lr_factor_, group.weight_decay);
  }
}

void Optimizer::zero_grad() const {
  for (const Entry& entry : entries_) entry.parameter.tensor.set_grad({});
}

void Optimizer::set_lr_factor(double factor) {
  check(factor >= 0 && std::isfinite(factor), type_, ": a factor of the learning rate is not negative, got ", factor);
  lr_factor_ = factor;
}

NamedTensors Optimizer::parameters() const {
  NamedTensors all;
  for (const Entry& entry : entries_) all.push_back(entry.parameter);
  return all;
}

NamedTensors Optimizer::state_dict() const {
  NamedTensors state;
  for (const Entry& entry : entries_) {
    state.push_back({entry.parameter.path + "/step", entry.step});
    for (std::size_t i = 0; i < names_.size(); ++i) {
      state.push_back({entry.parameter.path + "/" + names_[i], entry.tensors[i]});
    }
  }
  return state;
}

void Optimizer::load_state_dict(const NamedTensors& values) { load_named(type_, state_dict(), values); }

}  // namespace prenorm::optim
