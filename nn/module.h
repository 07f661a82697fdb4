// Module: what layers are made of. A registry of parameters, buffers and child modules by name, and one way to be
// called.
//
// A layer is a handle on one State: copying a layer copies the handle, and both share parameters; clone() makes new
// ones. Initialising is registering: parameters and children exist only in the registry, so none can be forgotten.
//
//   class Scale : public Layer<Scale> {
//    public:
//     using Layer::Layer;
//     explicit Scale(std::int64_t n) : Layer("Scale") { add_parameter("gain", ones({n})); }
//     Tensor forward(const Tensor& x) const { return x * parameter("gain"); }
//   };
//
// Calling a layer, `y = scale(x)`, opens its scope (autograd/scope.h) and runs forward(). Any layer whose forward takes
// one tensor and gives one can also be called through a plain Module handle.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "autograd/grad_mode.h"
#include "autograd/named_tensors.h"
#include "autograd/ops.h"
#include "autograd/scope.h"
#include "autograd/tensor.h"

namespace prenorm::nn {

class Module {
 public:
  // The unary call of layers that have one; an error names the type of those that do not.
  Tensor operator()(const Tensor& x) const;

  // By dotted path in order of registration; a tensor that stands at several places (a tied weight) appears once.
  NamedTensors parameters() const;
  NamedTensors buffers() const;
  // Parameters and buffers by all their paths but the repeated ones: what a checkpoint holds.
  NamedTensors state_dict() const;
  // Copies values by name into parameters and buffers. Strict: an error lists missing and unexpected names. Shapes and
  // dtypes must be equal. On an error nothing has changed.
  LoadResult load_state_dict(const NamedTensors& tensors, bool strict = true) const;
  std::int64_t parameter_count() const;  // elements

  // The module at a dotted path, "blocks.0.attn".
  Module at(std::string_view path) const;
  // Name and handle of the direct children.
  const std::vector<std::pair<std::string, Module>>& children() const { return state_->children; }
  const std::string& type() const { return state_->type; }
  // In its parent, "attn", or in a list that its parent has, "blocks.0"; "" for a root. The scope that a call opens.
  const std::string& name() const { return state_->name; }

  // Training or evaluation, of this module and all below it. Decides what dropout does.
  const Module& train(bool on = true) const;
  const Module& eval() const { return train(false); }
  bool is_training() const { return state_->training; }
  void zero_grad() const;
  // Freezes (false) or unfreezes the parameters whose path starts with `prefix`: a name or a whole part of the path, so
  // "blocks.1" does not mean "blocks.10". "" means all. An error if there are none.
  void requires_grad_(bool on, std::string_view prefix = "") const;
  // Converts parameters and float buffers in place. Parameters become new leaves, so make the optimiser afterwards.
  void to(DType dtype) const;
  bool is(const Module& other) const { return state_ == other.state_; }

  // The handle as the layer that it is on; an error tells its type if it is another one.
  template <class L>
  L as() const {
    return L::from(*this);
  }
  Module clone() const { return Module(state_->deep_copy()); }

 protected:
  struct State;
  using UnaryCall = Tensor (*)(const Module& module, const Tensor& x);

  struct State {
    std::string type;
    std::string name;
    std::vector<std::pair<std::string, Tensor>> parameters;
    std::vector<std::pair<std::string, Tensor>> buffers;
    std::vector<std::pair<std::string, Module>> children;
    bool training = true;
    bool is_list = false;  // never called itself: its items' names, and so their scopes, begin with its own
    UnaryCall unary = nullptr;

    State() = default;
    State(const State&) = default;
    virtual ~State() = default;
    // A copy with tensors and children of its own; what was tied within stays tied. Draws no random numbers.
    std::shared_ptr<State> deep_copy() const;

   private:
    friend class Module;
    virtual std::shared_ptr<State> shallow_copy() const = 0;
  };

  explicit Module(std::shared_ptr<State> state) : state_(std::move(state)) {}

  // Registering. Names are unique within a module and hold no dots. Each returns what it was given.
  Tensor add_parameter(std::string name, Tensor value);  // becomes a leaf that requires grad
  Tensor add_buffer(std::string name, Tensor value);
  void add_child(std::string name, const Module& child);
  // Makes a parameter stand at a second place, as a tied weight does.
  void tie_parameter(const std::string& name, const Tensor& parameter);

  const Tensor& parameter(std::string_view name) const;
  bool has_parameter(std::string_view name) const;
  const Tensor& buffer(std::string_view name) const;
  void set_buffer(std::string_view name, Tensor value) const;
  const Module& child(std::string_view name) const;
  template <class L>
  L child(std::string_view name) const {
    return L::from(child(name));
  }

  const std::shared_ptr<State>& state() const { return state_; }

 private:
  template <class L, class Options>
  friend class Layer;
  static std::shared_ptr<State> copy_tree(const State& state, std::vector<std::pair<const void*, Tensor>>& copied);

  std::shared_ptr<State> state_;
};

struct NoOptions {};

// The base of a layer L: keeps its options in the State and calls its forward within its scope.
template <class L, class Options = NoOptions>
class Layer : public Module {
 public:
  // Self is L: Clang 14 would look at a constraint on L itself before L is complete.
  template <class... Args, class Self = L>
  requires requires(const Self& layer, Args&&... args) { layer.forward(std::forward<Args>(args)...); }
  auto operator()(Args&&... args) const {
    const Scope scope(state()->name);
    return static_cast<const L&>(*this).forward(std::forward<Args>(args)...);
  }

  const Options& options() const { return typed_state().options; }
  L clone() const { return from(Module::clone()); }

  static L from(const Module& module) {
    const auto typed = std::dynamic_pointer_cast<TypedState>(module.state_);
    check(typed != nullptr, "module: '", module.name(), "' is a ", module.type(),
          ", which was asked for as another layer");
    return L(typed);
  }

 protected:
  struct TypedState final : State {
    Options options;
    std::shared_ptr<State> shallow_copy() const override { return std::make_shared<TypedState>(*this); }
  };

  // What a layer keeps for looking at may change; what decides its results does not.
  Options& config() const { return typed_state().options; }

  explicit Layer(const std::string& type, Options options = {}) : Module(std::make_shared<TypedState>()) {
    state()->type = type;
    if constexpr (std::is_invocable_r_v<Tensor, Forward, const L&, const Tensor&>) {
      state()->unary = [](const Module& module, const Tensor& x) { return from(module)(x); };
    }
    typed_state().options = std::move(options);
  }
  explicit Layer(std::shared_ptr<TypedState> state) : Module(std::move(state)) {}

 private:
  struct Forward {
    template <class M>
    auto operator()(const M& layer, const Tensor& x) const -> decltype(layer.forward(x));
  };
  TypedState& typed_state() const { return static_cast<TypedState&>(*state()); }
};

}  // namespace prenorm::nn
