// y = a where the condition holds, else b; all three broadcast.
//
//   Each element of y is one of a or one of b and does not depend on the other: dy goes to the one that was taken, and
//   the other gets 0. Both are summed over the dimensions along which their operand was repeated.

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

// The condition as bytes, since GCC has no vectors of bool.
template <class T>
PRENORM_VECTORIZED void where_row(std::int64_t n, const unsigned char* condition, const T* a, std::int64_t stride_a,
                                  const T* b, std::int64_t stride_b, T* y) {
  const auto either = [](unsigned char first, T p, T q) { return first != 0 ? p : q; };
  if (stride_a == 1 && stride_b == 1) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = either(condition[i], a[i], b[i]);
  } else if (stride_a == 0 && stride_b == 1) {
    const T scalar = *a;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = either(condition[i], scalar, b[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = either(condition[i], a[i * stride_a], b[i * stride_b]);
  }
}

struct Where final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{
        .name = "where",
        .formula = "y = a where condition, else b",
        .derivative = "da = sum_to(dy where condition, else 0, a); db = sum_to(0 where condition, else dy, b)",
        .reference = "",
        .file = "autograd/ops/where.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    const Tensor &a = in[1], &b = in[2];
    const Shape shape = broadcast_shapes("where", in[0].shape(), broadcast_shapes("where", a.shape(), b.shape()));
    const Tensor condition = dense(expand(in[0], shape));
    Tensor y = Tensor::empty(shape, a.dtype());
    const Broadcast loop(shape, a, b);
    dispatch(a.dtype(), [&](auto t) {
      using T = decltype(t);
      const auto* chosen = reinterpret_cast<const unsigned char*>(condition.data<bool>());
      const T *from_a = a.data<T>(), *from_b = b.data<T>();
      T* out = y.mutable_data<T>();
      parallel_rows(loop.rows, loop.n * 3, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          const auto [offset_a, offset_b] = loop.at(row);
          where_row(loop.n, chosen + row * loop.n, from_a + offset_a, loop.stride_a, from_b + offset_b, loop.stride_b,
                    out + row * loop.n);
        }
      });
    });
    return {y};
  }

  Saves saves() const override { return {.inputs = {0}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    const Tensor condition = input(0), zero = scalar_like(dy[0], 0);
    if (dx.needs(1)) dx.add(1, sum_to(where(condition, dy[0], zero), input_shape(1)));
    if (dx.needs(2)) dx.add(2, sum_to(where(condition, zero, dy[0]), input_shape(2)));
  }
};

}  // namespace

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  check(condition.defined() && condition.dtype() == boolean, "where: the condition is bool, got ",
        condition.defined() ? name(condition.dtype()) : "undefined");
  check_same_dtype("where", a, b);
  return apply_op<Where>({condition, a, b})[0];
}

}  // namespace prenorm
