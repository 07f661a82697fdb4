// expand repeats a tensor along dimensions of size 1 (and new leading ones); sum_to adds the repetitions up again. Each
// is the other's derivative: an element that was used r times collects the gradients of all r uses. Every op that
// broadcasts goes back through sum_to.

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

struct Expand final : Node {
  explicit Expand(const Shape& shape) : shape(shape) {}
  const Shape shape;

  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "expand",
                                 .formula = "y[.., i, ..] = x[.., 0, ..]",
                                 .derivative = "dx = sum_to(dy, x)",
                                 .reference = "",
                                 .file = "autograd/ops/expand.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    const Tensor& x = in[0];
    Strides strides = Shape::filled(shape.dims(), 0);
    const std::int64_t lead = shape.dims() - x.dims();
    for (std::int64_t d = 0; d < x.dims(); ++d) {
      strides[lead + d] = x.shape()[d] == 1 && shape[lead + d] != 1 ? 0 : x.strides()[d];
    }
    return {x.view(shape, strides)};
  }

  void backward(const Tensors& dy, GradientSink& dx) const override { dx.add(0, sum_to(dy[0], input_shape(0))); }
};

}  // namespace

Tensor expand(const Tensor& x, const Shape& shape) {
  Shape target = shape;
  const std::int64_t lead = shape.dims() - x.dims();
  for (std::int64_t d = std::max<std::int64_t>(lead, 0); d < shape.dims(); ++d) {
    if (shape[d] == -1) target[d] = x.shape()[d - lead];
  }
  check(broadcasts_to(x.shape(), target), "expand: ", x.shape(), " does not expand to ", shape,
        "; aligned at the right, sizes must be equal or 1 in the tensor");
  numel(target);  // refuses negative sizes
  if (target == x.shape()) return x;
  return apply_op<Expand>({x}, target)[0];
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  check(broadcasts_to(shape, x.shape()), "sum_to: ", shape, " does not broadcast to ", x.shape());
  const std::int64_t lead = x.dims() - shape.dims();
  Dims repeated;
  for (std::int64_t d = 0; d < x.dims(); ++d) {
    if (d < lead || (shape[d - lead] == 1 && x.shape()[d] != 1)) repeated.push_back(d);
  }
  return reshape(sum(x, repeated, true), shape);
}

}  // namespace prenorm
