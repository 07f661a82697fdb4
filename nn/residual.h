// The residual connection around a sublayer.
#pragma once

#include <functional>

#include "nn/module.h"
#include "nn/norm.h"

namespace prenorm::nn {

enum class Order {
  pre,   // x + f(norm(x)): the residual stream is never normalised itself
  post,  // norm(x + f(x)): as in the Transformer of 2017
};

// Any function from tensor to tensor: a module, a lambda.
using Sublayer = std::function<Tensor(const Tensor&)>;

struct SublayerConnectionOptions {
  double dropout = 0.1;
  Order order = Order::pre;
};

// x + dropout(sublayer(norm(x))), or in the post order norm(x + dropout(sublayer(x))). The sublayer keeps the shape of
// what it is given; x may have any that ends in `size`. Children norm (LayerNorm, unbiased form) and dropout.
class SublayerConnection : public Layer<SublayerConnection, SublayerConnectionOptions> {
 public:
  using Layer::Layer;
  explicit SublayerConnection(std::int64_t size, SublayerConnectionOptions options = {});

  Tensor forward(const Tensor& x, const Sublayer& sublayer) const;
};

}  // namespace prenorm::nn
