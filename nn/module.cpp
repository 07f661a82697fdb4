#include "nn/module.h"

#include <algorithm>

namespace prenorm::nn {
namespace {

using Named = std::vector<std::pair<std::string, Tensor>>;

template <class T>
auto find_named(T& list, std::string_view name) {
  return std::find_if(list.begin(), list.end(), [name](const auto& entry) { return entry.first == name; });
}

std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

void collect(const Named& list, const std::string& prefix, NamedTensors& out) {
  for (const auto& [name, tensor] : list) {
    const bool seen =
        std::any_of(out.begin(), out.end(), [&t = tensor](const NamedTensor& o) { return o.tensor.is(t); });
    if (!seen) out.push_back({joined(prefix, name), tensor});
  }
}

// Calls visit(path, module) for a module and all below it, parents first.
template <class Visit>
void walk(const Module& module, const std::string& path, const Visit& visit) {
  visit(path, module);
  for (const auto& [name, child] : module.children()) walk(child, joined(path, name), visit);
}

}  // namespace

Tensor Module::operator()(const Tensor& x) const {
  check(state_->unary != nullptr, "module: '", name(), "' is a ", type(), ", which is not a function of one tensor");
  return state_->unary(*this, x);
}

NamedTensors Module::parameters() const {
  NamedTensors out;
  walk(*this, "", [&](const std::string& path, const Module& m) { collect(m.state_->parameters, path, out); });
  return out;
}

NamedTensors Module::buffers() const {
  NamedTensors out;
  walk(*this, "", [&](const std::string& path, const Module& m) { collect(m.state_->buffers, path, out); });
  return out;
}

NamedTensors Module::state_dict() const {
  NamedTensors out = parameters();
  for (NamedTensor& buffer : buffers()) out.push_back(std::move(buffer));
  return out;
}

LoadResult Module::load_state_dict(const NamedTensors& tensors, bool strict) const {
  return load_named(type(), state_dict(), tensors, strict);
}

std::int64_t Module::parameter_count() const {
  std::int64_t count = 0;
  for (const auto& [path, tensor] : parameters()) count += tensor.numel();
  return count;
}

Module Module::at(std::string_view path) const {
  if (path.empty()) return *this;
  const std::size_t dot = path.find('.');
  const Module& first = child(path.substr(0, dot));
  return dot == std::string_view::npos ? first : first.at(path.substr(dot + 1));
}

const Module& Module::train(bool on) const {
  walk(*this, "", [on](const std::string&, const Module& m) { m.state_->training = on; });
  return *this;
}

void Module::zero_grad() const {
  for (const auto& [path, tensor] : parameters()) tensor.set_grad({});
}

void Module::requires_grad_(bool on, std::string_view prefix) const {
  bool found = prefix.empty();
  for (auto& [path, tensor] : parameters()) {
    const bool below =
        path.starts_with(prefix) && (prefix.empty() || path.size() == prefix.size() || path[prefix.size()] == '.');
    if (!below) continue;
    tensor.requires_grad_(on);
    found = true;
  }
  check(found, "requires_grad_: ", type(), " has no parameter below '", prefix, "'");
}

void Module::to(DType dtype) const {
  check(is_float(dtype), "to: a module's parameters are float32 or float64, not ", dtype);
  const NoGrad no_grad;
  std::vector<std::pair<Tensor, Tensor>> converted;
  const auto convert = [&](Tensor& tensor) {
    if (!is_float(tensor.dtype()) || tensor.dtype() == dtype) return;
    for (const auto& [from, result] : converted) {
      if (from.is(tensor)) {
        tensor = result;
        return;
      }
    }
    Tensor result = prenorm::to(tensor, dtype);
    result.requires_grad_(tensor.requires_grad());
    converted.emplace_back(tensor, result);
    tensor = result;
  };
  walk(*this, "", [&](const std::string&, const Module& m) {
    for (auto& [name, tensor] : m.state_->parameters) convert(tensor);
    for (auto& [name, tensor] : m.state_->buffers) convert(tensor);
  });
}

Tensor Module::add_parameter(std::string name, Tensor value) {
  check(!name.empty() && name.find('.') == std::string::npos, type(), ": '", name, "' is no name for a parameter");
  check(find_named(state_->parameters, name) == state_->parameters.end(), type(), ": there is a parameter '", name,
        "' already");
  value.requires_grad_();
  return state_->parameters.emplace_back(std::move(name), std::move(value)).second;
}

Tensor Module::add_buffer(std::string name, Tensor value) {
  check(!name.empty() && name.find('.') == std::string::npos, type(), ": '", name, "' is no name for a buffer");
  check(find_named(state_->buffers, name) == state_->buffers.end(), type(), ": there is a buffer '", name, "' already");
  return state_->buffers.emplace_back(std::move(name), std::move(value)).second;
}

void Module::add_child(std::string name, const Module& child) {
  check(!name.empty() && name.find('.') == std::string::npos, type(), ": '", name, "' is no name for a child");
  check(find_named(state_->children, name) == state_->children.end(), type(), ": there is a child '", name,
        "' already");
  if (child.state_->name.empty()) {
    child.state_->name = state_->is_list ? joined(state_->name, name) : name;
    if (child.state_->is_list) {
      for (auto& [item_name, item] : child.state_->children) item.state_->name = joined(name, item_name);
    }
  }
  state_->children.emplace_back(std::move(name), child);
}

void Module::tie_parameter(const std::string& name, const Tensor& parameter) {
  const auto found = find_named(state_->parameters, name);
  check(found != state_->parameters.end(), type(), ": there is no parameter '", name, "'");
  check(found->second.shape() == parameter.shape(), type(), ": '", name, "' is ", found->second.shape(),
        " and cannot be tied to a parameter of ", parameter.shape());
  found->second = parameter;
}

const Tensor& Module::parameter(std::string_view name) const {
  const auto found = find_named(state_->parameters, name);
  check(found != state_->parameters.end(), type(), ": there is no parameter '", name, "'");
  return found->second;
}

bool Module::has_parameter(std::string_view name) const {
  return find_named(state_->parameters, name) != state_->parameters.end();
}

const Tensor& Module::buffer(std::string_view name) const {
  const auto found = find_named(state_->buffers, name);
  check(found != state_->buffers.end(), type(), ": there is no buffer '", name, "'");
  return found->second;
}

void Module::set_buffer(std::string_view name, Tensor value) const {
  const auto found = find_named(state_->buffers, name);
  check(found != state_->buffers.end(), type(), ": there is no buffer '", name, "'");
  found->second = std::move(value);
}

const Module& Module::child(std::string_view name) const {
  const auto found = find_named(state_->children, name);
  check(found != state_->children.end(), type(), ": there is no child '", name, "'");
  return found->second;
}

std::shared_ptr<Module::State> Module::State::deep_copy() const {
  std::vector<std::pair<const void*, Tensor>> copied;
  std::shared_ptr<State> copy = copy_tree(*this, copied);
  copy->name.clear();  // a root until it is registered somewhere
  return copy;
}

std::shared_ptr<Module::State> Module::copy_tree(const State& state,
                                                 std::vector<std::pair<const void*, Tensor>>& copied) {
  std::shared_ptr<State> copy = state.shallow_copy();
  const auto renew = [&copied](Tensor& tensor) {
    for (const auto& [original, result] : copied) {
      if (original == tensor.impl().get()) {
        tensor = result;
        return;
      }
    }
    const void* original = tensor.impl().get();
    Tensor result = prenorm::clone(tensor.detach());
    result.requires_grad_(tensor.requires_grad());
    tensor = result;
    copied.emplace_back(original, std::move(result));
  };
  for (auto& [name, tensor] : copy->parameters) renew(tensor);
  for (auto& [name, tensor] : copy->buffers) renew(tensor);
  for (auto& [name, child] : copy->children) child = Module(copy_tree(*child.state_, copied));
  return copy;
}

}  // namespace prenorm::nn
