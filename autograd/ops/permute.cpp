// permute: y[i_dims[0], i_dims[1], …] = x[i_0, i_1, …], a view with its strides in another order. transpose swaps two.
//
//   Each element of y is one element of x, so dx is dy with the dimensions back in their places: dx = permute(dy,
//   dims^-1).

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

struct Permute final : Node {
  explicit Permute(const Dims& dims) : dims(dims) {}
  const Dims dims;

  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "permute",
                                 .formula = "y = x with its dimensions in another order",
                                 .derivative = "dx = permute(dy, dims^-1)",
                                 .reference = "",
                                 .file = "autograd/ops/permute.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    Shape shape;
    Strides strides;
    for (std::int64_t d : dims) {
      shape.push_back(in[0].shape()[d]);
      strides.push_back(in[0].strides()[d]);
    }
    return {in[0].view(shape, strides)};
  }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    Dims inverse = dims;
    for (std::int64_t d = 0; d < dims.dims(); ++d) inverse[dims[d]] = d;
    dx.add(0, permute(dy[0], inverse));
  }
};

}  // namespace

Tensor permute(const Tensor& x, const Dims& dims) {
  check(dims.dims() == x.dims(), "permute: the order ", dims, " for a tensor of shape ", x.shape(), " must name ",
        x.dims(), " dimensions");
  Dims order;
  Shape seen = Shape::filled(x.dims(), 0);
  for (std::int64_t dim : dims) {
    const std::int64_t d = normalize_dim("permute", dim, x.dims());
    check(seen[d]++ == 0, "permute: dimension ", dim, " is named twice in ", dims);
    order.push_back(d);
  }
  return apply_op<Permute>({x}, order)[0];
}

Tensor transpose(const Tensor& x, std::int64_t dim0, std::int64_t dim1) {
  const std::int64_t a = normalize_dim("transpose", dim0, x.dims()), b = normalize_dim("transpose", dim1, x.dims());
  if (a == b) return x;
  Dims order;
  for (std::int64_t d = 0; d < x.dims(); ++d) order.push_back(d == a ? b : d == b ? a : d);
  return apply_op<Permute>({x}, order)[0];
}

}  // namespace prenorm
