// Layers without parameters.
#pragma once

#include "nn/module.h"

namespace prenorm::nn {

class Identity : public Layer<Identity> {
 public:
  using Layer::Layer;
  Identity() : Layer("Identity") {}
  Tensor forward(const Tensor& x) const { return x; }
};

class ReLU : public Layer<ReLU> {
 public:
  using Layer::Layer;
  ReLU() : Layer("ReLU") {}
  Tensor forward(const Tensor& x) const { return relu(x); }
};

struct GELUOptions {
  Gelu form = Gelu::exact;
};

class GELU : public Layer<GELU, GELUOptions> {
 public:
  using Layer::Layer;
  explicit GELU(GELUOptions options = {}) : Layer("GELU", options) {}
  Tensor forward(const Tensor& x) const { return gelu(x, options().form); }
};

}  // namespace prenorm::nn
