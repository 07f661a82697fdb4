#include "nn/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "autograd/grad_mode.h"
#include "autograd/random.h"

namespace prenorm::nn {
namespace {

// Of the noise on a gain or bias; a weight's is smaller by the square root of the values it sums, so that outputs stay
// in the range that the layer is made for.
constexpr double kNoise = 0.3;

void add_noise(const Module& module, std::uint64_t seed) {
  Generator generator(seed);
  const NoGrad no_grad;
  for (const auto& [path, parameter] : module.parameters()) {
    const double fan_in = parameter.dims() > 1 ? std::max<double>(1, static_cast<double>(parameter.size(-1))) : 1;
    std::vector<double> noise(static_cast<std::size_t>(parameter.numel()));
    for (double& value : noise) value = kNoise / std::sqrt(fan_in) * generator.standard_normal();
    add_(parameter, Tensor::of(noise, parameter.shape(), {.dtype = float64}));
  }
}

// A leaf of the same values in the same memory layout, where that is possible: an expanded view shows an element twice.
Tensor float64_leaf(const Tensor& x) {
  const NoGrad no_grad;
  std::int64_t span = 1;
  bool repeats = false;
  for (std::int64_t d = 0; d < x.dims(); ++d) {
    span += (x.shape()[d] - 1) * x.strides()[d];
    repeats = repeats || (x.strides()[d] == 0 && x.shape()[d] > 1);
  }
  const bool same_layout = !repeats && x.numel() > 0;
  Tensor leaf = same_layout ? zeros({span}, float64).view(x.shape(), x.strides()) : zeros(x.shape(), float64);
  copy_(leaf, x);
  return leaf.requires_grad_();
}

// Puts the default generator back to where it stood, whatever happens in between.
struct KeepGenerator {
  const Generator before = default_generator();
  KeepGenerator() = default;
  ~KeepGenerator() { default_generator() = before; }
  KeepGenerator(const KeepGenerator&) = delete;
  KeepGenerator& operator=(const KeepGenerator&) = delete;
};

// Calls a module from the same state each time: generator and buffers.
class Replay {
 public:
  Replay(const Module& module, std::function<Tensors(const Tensors&)> call)
      : call_(std::move(call)), parameters_(module.parameters().size()), start_(default_generator()) {
    for (const auto& [path, tensor] : module.buffers()) {
      buffers_.push_back({tensor, clone(tensor), tensor.version()});
    }
  }

  // Of the parameters and then the tensors that the call is about; the module has the former itself.
  Tensors operator()(const Tensors& all) {
    rewind_buffers();
    const KeepGenerator keep;
    default_generator() = start_;
    return call_(Tensors(all.begin() + static_cast<std::ptrdiff_t>(parameters_), all.end()));
  }

 private:
  struct Buffer {
    Tensor tensor, values;
    std::uint64_t version;
  };

  void rewind_buffers() {
    const NoGrad no_grad;
    for (Buffer& buffer : buffers_) {
      if (buffer.tensor.version() == buffer.version) continue;
      copy_(buffer.tensor, buffer.values);
      buffer.version = buffer.tensor.version();
    }
  }

  std::function<Tensors(const Tensors&)> call_;
  std::size_t parameters_;
  Generator start_;
  std::vector<Buffer> buffers_;
};

}  // namespace

LayerFunction detail::layer_function(const Module& copy, const Tensors& inputs,
                                     std::function<Tensors(const Tensors&)> call, std::uint64_t seed) {
  copy.to(float64);
  copy.requires_grad_(true);  // frozen ones too: the layer has a gradient to give for them
  add_noise(copy, seed);
  LayerFunction function{Replay(copy, std::move(call)), copy.parameters()};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool has_gradient = inputs[i].defined() && is_float(inputs[i].dtype());
    function.inputs.push_back({"input " + std::to_string(i), has_gradient ? float64_leaf(inputs[i]) : inputs[i]});
  }
  return function;
}

}  // namespace prenorm::nn
