// values = max(x) along dim, indices = where it stands: the first of equal ones. NaN counts as larger than all.
//
//   The largest element is the value, the others have no part in it (as long as they stay smaller): dx = dy at the
//   index, 0 elsewhere. Of equal ones only that first one gets the gradient.

#include "autograd/node.h"
#include "autograd/ops/reduce.h"

namespace prenorm {
namespace {

struct Max final : Node {
  Max(std::int64_t dim, bool keepdim) : dim(dim), keepdim(keepdim) {}
  const std::int64_t dim;
  const bool keepdim;

  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "max",
                                 .formula = "values = max(x, dim), indices = argmax(x, dim)",
                                 .derivative = "dx = dvalues at indices, 0 elsewhere",
                                 .reference = "",
                                 .file = "autograd/ops/max.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    const Tensor& x = in[0];
    const Reduced reduced("max", x.shape(), {dim});
    const Tensor indices = argmax(x, dim, keepdim), rows = as_rows(x, reduced);
    Tensor values = Tensor::empty(indices.shape(), x.dtype());
    dispatch_number("max", x.dtype(), [&](auto t) {
      using T = decltype(t);
      const T* from = rows.data<T>();
      const std::int64_t* index = indices.data<std::int64_t>();
      T* to = values.mutable_data<T>();
      for (std::int64_t row = 0; row < reduced.rows; ++row) to[row] = from[row * reduced.n + index[row]];
    });
    return {values, indices};
  }

  Saves saves() const override { return {.outputs = {1}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    const Shape kept = Reduced("max", input_shape(0), {dim}).keepdim_shape;
    Shape along = Shape::filled(kept.dims(), 1);
    along[dim] = input_shape(0)[dim];
    const Tensor positions = reshape(arange(static_cast<double>(along[dim])), along);
    const Tensor winner = eq(positions, reshape(output(1), kept));
    dx.add(0, where(winner, reshape(dy[0], kept), scalar_like(dy[0], 0)));
  }
};

}  // namespace

MaxResult max(const Tensor& x, std::int64_t dim, bool keepdim) {
  const std::int64_t d = normalize_dim("max", dim, x.dims());
  check(x.dtype() != boolean, "max: expected a tensor of numbers, got bool");
  if (x.dims() == 0) return max(reshape(x, {1}), 0, false);
  check(x.shape()[d] > 0, "max: x ", x.shape(), " has no element along dimension ", dim, ", expected at least 1");
  const Tensors y = apply_op<Max>({x}, d, keepdim);
  return {y[0], y[1]};
}

Tensor max(const Tensor& x) {
  check(x.numel() > 0, "max: x ", x.shape(), " has no elements, expected at least 1");
  return max(reshape(x, {x.numel()}), 0, false).values;
}

}  // namespace prenorm
