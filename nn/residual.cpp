#include "nn/residual.h"

#include "nn/dropout.h"

namespace prenorm::nn {

SublayerConnection::SublayerConnection(std::int64_t size, SublayerConnectionOptions options)
    : Layer("SublayerConnection", options) {
  add_child("norm", LayerNorm(size));
  add_child("dropout", Dropout(options.dropout));
}

Tensor SublayerConnection::forward(const Tensor& x, const Sublayer& sublayer) const {
  const bool pre = options().order == Order::pre;
  const Tensor in = pre ? child("norm")(x) : x;
  const Tensor branch = [&] {
    const OuterScope caller;  // the sublayer is the caller's, not a part of this module
    return sublayer(in);
  }();
  check(branch.defined() && branch.shape() == x.shape(), "SublayerConnection: the sublayer gave ",
        branch.defined() ? branch.shape() : Shape{}, " for x ", x.shape(), "; the residual sum needs the same shape");
  const Tensor sum = residual_add(x, child("dropout")(branch));
  return pre ? sum : child("norm")(sum);
}

}  // namespace prenorm::nn
