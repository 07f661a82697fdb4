// Modules that hold others, named "0", "1", ….
#pragma once

#include <initializer_list>
#include <string>

#include "nn/module.h"

namespace prenorm::nn {

// A list to be indexed; the module that owns it decides how its items are called.
class ModuleList : public Layer<ModuleList> {
 public:
  using Layer::Layer;
  ModuleList() : Layer("ModuleList") { state()->is_list = true; }
  ModuleList(std::initializer_list<Module> modules) : ModuleList() {
    for (const Module& module : modules) push_back(module);
  }

  void push_back(const Module& module) { add_child(std::to_string(size()), module); }
  std::int64_t size() const { return static_cast<std::int64_t>(children().size()); }
  template <class L>
  L get(std::int64_t index) const {
    check(index >= 0 && index < size(), "ModuleList: index ", index, " of ", size(), " modules");
    return children()[static_cast<std::size_t>(index)].second.template as<L>();
  }
};

// N copies of a module, each with parameters of its own; nothing is drawn.
ModuleList clones(const Module& module, std::int64_t N);

// One after another: x -> modules[n - 1](… modules[0](x)).
// Sequential{s} of one Sequential s nests it with GCC and copies it with Clang: push_back means the same to both.
class Sequential : public Layer<Sequential> {
 public:
  using Layer::Layer;
  Sequential(std::initializer_list<Module> modules) : Layer("Sequential") {
    for (const Module& module : modules) push_back(module);
  }

  void push_back(const Module& module) { add_child(std::to_string(children().size()), module); }
  Tensor forward(const Tensor& x) const {
    Tensor y = x;
    for (const auto& [name, module] : children()) y = module(y);
    return y;
  }
};

}  // namespace prenorm::nn
