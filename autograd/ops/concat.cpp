// y = the parts, one after another along dim. They agree in all other sizes.
//
//   Each part is a slice of y, and its gradient is that slice of dy.

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

struct Concat final : Node {
  explicit Concat(std::int64_t dim) : dim(dim) {}
  const std::int64_t dim;

  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "concat",
                                 .formula = "y = [x_0, x_1, ..] along dim",
                                 .derivative = "dx_i = the slice of dy that x_i filled",
                                 .reference = "",
                                 .file = "autograd/ops/concat.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    Shape shape = in[0].shape();
    shape[dim] = 0;
    for (const Tensor& part : in) shape[dim] += part.shape()[dim];
    Tensor y = Tensor::empty(shape, in[0].dtype());
    std::int64_t begin = 0;
    for (const Tensor& part : in) {
      const std::int64_t end = begin + part.shape()[dim];
      copy_(slice(y, dim, begin, end), part.detach());
      begin = end;
    }
    return {y};
  }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    std::int64_t begin = 0;
    for (std::int64_t i = 0; i < input_count(); ++i) {
      const std::int64_t end = begin + input_shape(i)[dim];
      if (dx.needs(i)) dx.add(i, slice(dy[0], dim, begin, end));
      begin = end;
    }
  }
};

}  // namespace

Tensor concat(const Tensors& parts, std::int64_t dim) {
  check(!parts.empty(), "concat: expected at least one part");
  const Tensor& first = parts[0];
  check(first.dims() > 0, "concat: scalars have no dimension to stand along; unsqueeze(x, 0) them first");
  const std::int64_t d = normalize_dim("concat", dim, first.dims());
  for (const Tensor& part : parts) {
    check_same_dtype("concat", first, part);
    Shape expected = first.shape();
    if (part.dims() == first.dims()) expected[d] = part.shape()[d];
    check(part.shape() == expected, "concat: parts ", first.shape(), " and ", part.shape(),
          " differ in more than dimension ", dim);
  }
  return apply_op<Concat>(parts, d)[0];
}

}  // namespace prenorm
