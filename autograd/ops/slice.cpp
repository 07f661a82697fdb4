// slice: y[.., i, ..] = x[.., start + i step, ..], a view. select: one element along dim, which vanishes.
//
//   An element of x that is in y has its gradient there, the others have no part in y: dx = zeros with dy in the places
//   that were taken out. That is an op too, "unslice"; its derivative is slice.

#include <algorithm>

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

// The elements start, start + step, … along dim, `length` of them.
struct Part {
  std::int64_t dim, start, step, length;

  Tensor of(const Tensor& x) const {
    Shape shape = x.shape();
    Strides strides = x.strides();
    shape[dim] = length;
    strides[dim] *= step;
    return x.view(shape, strides, length > 0 ? start * x.strides()[dim] : 0);
  }
};

struct Unslice final : Node {
  Unslice(const Part& part, const Shape& shape) : part(part), shape(shape) {}
  const Part part;
  const Shape shape;

  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "unslice",
                                 .formula = "y[.., start + i * step, ..] = x[.., i, ..], 0 elsewhere",
                                 .derivative = "dx = slice(dy)",
                                 .reference = "",
                                 .file = "autograd/ops/slice.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    Tensor y = zeros(shape, in[0].dtype());
    copy_(part.of(y), in[0].detach());
    return {y};
  }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    dx.add(0, slice(dy[0], part.dim, part.start, part.start + part.length * part.step, part.step));
  }
};

struct Slice final : Node {
  explicit Slice(const Part& part) : part(part) {}
  const Part part;

  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "slice",
                                 .formula = "y[.., i, ..] = x[.., start + i * step, ..]",
                                 .derivative = "dx = 0; dx[.., start + i * step, ..] = dy[.., i, ..]",
                                 .reference = "",
                                 .file = "autograd/ops/slice.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override { return {part.of(in[0])}; }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    if (GradMode::enabled()) return dx.add(0, apply_op<Unslice>({dy[0]}, part, input_shape(0))[0]);
    // Into one gradient for all slices of x: the parts of a split need no dense one each.
    const auto [target, fresh] = dx.accumulator(0);
    if (fresh) fill_(target, 0);
    add_(part.of(target), dy[0]);
  }
};

}  // namespace

Tensor slice(const Tensor& x, std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step) {
  check(x.dims() > 0, "slice: a scalar has no dimension ", dim);
  const std::int64_t d = normalize_dim("slice", dim, x.dims()), n = x.shape()[d];
  check(step >= 1, "slice: the step is positive, got ", step);
  const auto clamp = [n](std::int64_t i) { return std::clamp<std::int64_t>(i < 0 ? i + n : i, 0, n); };
  const std::int64_t from = clamp(start), span = std::max<std::int64_t>(clamp(end) - from, 0);
  if (span == n && step == 1) return x;
  const std::int64_t length = span == 0 ? 0 : (span - 1) / step + 1;
  return apply_op<Slice>({x}, Part{d, from, length > 1 ? step : 1, length})[0];
}

Tensor select(const Tensor& x, std::int64_t dim, std::int64_t index) {
  check(x.dims() > 0, "select: a scalar has no dimension ", dim);
  const std::int64_t d = normalize_dim("select", dim, x.dims()), n = x.shape()[d];
  check(index >= -n && index < n, "select: index ", index, " is out of range along dimension ", dim, " of ", x.shape(),
        ", which has ", n);
  const std::int64_t i = index < 0 ? index + n : index;
  return squeeze(slice(x, d, i, i + 1), d);
}

}  // namespace prenorm
