// Gradcheck of a layer: every parameter, by its dotted path, and every input.
//
//   GradcheckReport report = gradcheck(model.blocks(0), {x});
//   GradcheckReport report = gradcheck(mha, {q, k, v}, [mask](const auto& layer, const Tensors& in) {
//     return layer(in[0], in[1], in[2], mask);
//   });
//
// A copy in float64 is checked; the layer and the tensors given are left alone. How it is checked, and what is refused,
// stands in autograd/gradcheck.h.
//
// The copy's parameters get noise first. A fresh layer is a special point: where gamma is ones, a backward that forgets
// the factor gamma is right; where a bias is zeros, so is one that treats it as absent.
//
// Dropout is drawn in training. Each evaluation starts from the same state of the default generator, so that all draw
// the same mask; the generator is left as it was. Buffers that a call updates, such as running statistics, start from
// the same values in each evaluation as well.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "autograd/gradcheck.h"
#include "nn/module.h"

namespace prenorm::nn {

// What a check of a layer comes down to: `f` calls the copy; `inputs` are its parameters, then the tensors it is
// called with ("input 0", …).
struct LayerFunction {
  GradcheckFunction f;
  NamedTensors inputs;
};

namespace detail {

// The most tensors that a layer may be called with.
constexpr std::size_t kMostInputs = 6;

// layer(in[0], in[1], …), if its forward takes so many tensors and nothing else.
template <std::derived_from<Module> L, class... Taken>
Tensors call_layer(const L& layer, const Tensors& in, const Taken&... taken) {
  if (sizeof...(taken) == in.size()) {
    constexpr bool kPlainHandle = std::same_as<L, Module> && sizeof...(taken) == 1;
    if constexpr (kPlainHandle || requires { layer.forward(taken...); }) return {layer(taken...)};
    fail("gradcheck: a ", layer.type(), " cannot be called with ", in.size(),
         " tensors alone; pass a function that calls it");
  }
  if constexpr (sizeof...(taken) < kMostInputs) return call_layer(layer, in, taken..., in[sizeof...(taken)]);
  fail("gradcheck: ", in.size(), " tensors; pass a function that calls the ", layer.type(), " with them");
}

// Converts `copy` to float64 and adds the noise; `call` calls it.
LayerFunction layer_function(const Module& copy, const Tensors& inputs, std::function<Tensors(const Tensors&)> call,
                             std::uint64_t seed);

}  // namespace detail

// Anything that calls a layer L with tensors and gives one tensor or several.
template <class F, class L>
concept LayerCall = std::derived_from<L, Module> && std::invocable<const F&, const L&, const Tensors&>;

// For gradcheck and sweep of autograd/gradcheck.h. Float tensors among the inputs are copied, to float64; int64 and
// bool ones are handed on, as are undefined ones. A float tensor that `call` captures has to be float64. `seed`: of the
// noise.
template <class L, LayerCall<L> F>
LayerFunction layer_function(const L& layer, const Tensors& inputs, F call, std::uint64_t seed = 0) {
  const L copy = layer.clone();
  return detail::layer_function(
      copy, inputs, [copy, call](const Tensors& in) -> Tensors { return {call(copy, in)}; }, seed);
}
template <std::derived_from<Module> L>
LayerFunction layer_function(const L& layer, const Tensors& inputs, std::uint64_t seed = 0) {
  const L copy = layer.clone();
  return detail::layer_function(
      copy, inputs, [copy](const Tensors& in) { return detail::call_layer(copy, in); }, seed);
}

template <class L, LayerCall<L> F>
GradcheckReport gradcheck(const L& layer, const Tensors& inputs, F call, const GradcheckOptions& options = {}) {
  const LayerFunction function = layer_function(layer, inputs, std::move(call), options.seed);
  return prenorm::gradcheck(function.f, function.inputs, options);
}
template <std::derived_from<Module> L>
GradcheckReport gradcheck(const L& layer, const Tensors& inputs, const GradcheckOptions& options = {}) {
  const LayerFunction function = layer_function(layer, inputs, options.seed);
  return prenorm::gradcheck(function.f, function.inputs, options);
}

}  // namespace prenorm::nn
