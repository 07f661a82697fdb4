// unsqueeze puts in a dimension of size 1, squeeze takes one out. Views.
//
//   The elements stay what they are, so each is the other's derivative.

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

struct Unsqueeze final : Node {
  explicit Unsqueeze(std::int64_t dim) : dim(dim) {}
  const std::int64_t dim;

  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "unsqueeze",
                                 .formula = "y[.., 0, ..] = x[.., ..]",
                                 .derivative = "dx = squeeze(dy, dim)",
                                 .reference = "",
                                 .file = "autograd/ops/squeeze.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    Shape shape = in[0].shape();
    Strides strides = in[0].strides();
    shape.insert(dim, 1);
    strides.insert(dim, 1);  // never stepped over
    return {in[0].view(shape, strides)};
  }

  void backward(const Tensors& dy, GradientSink& dx) const override { dx.add(0, squeeze(dy[0], dim)); }
};

struct Squeeze final : Node {
  explicit Squeeze(std::int64_t dim) : dim(dim) {}
  const std::int64_t dim;

  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "squeeze",
                                 .formula = "y[.., ..] = x[.., 0, ..]",
                                 .derivative = "dx = unsqueeze(dy, dim)",
                                 .reference = "",
                                 .file = "autograd/ops/squeeze.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    Shape shape = in[0].shape();
    Strides strides = in[0].strides();
    shape.erase(dim);
    strides.erase(dim);
    return {in[0].view(shape, strides)};
  }

  void backward(const Tensors& dy, GradientSink& dx) const override { dx.add(0, unsqueeze(dy[0], dim)); }
};

}  // namespace

Tensor unsqueeze(const Tensor& x, std::int64_t dim) {
  return apply_op<Unsqueeze>({x}, normalize_dim("unsqueeze", dim, x.dims() + 1))[0];
}

Tensor squeeze(const Tensor& x, std::int64_t dim) {
  const std::int64_t d = normalize_dim("squeeze", dim, x.dims());
  return x.dims() == 0 || x.shape()[d] != 1 ? x : apply_op<Squeeze>({x}, d)[0];
}

}  // namespace prenorm
