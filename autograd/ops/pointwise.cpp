#include "autograd/ops/pointwise.h"

namespace prenorm {

void check_same_dtype(std::string_view op, const Tensor& a, const Tensor& b) {
  check(a.defined() && b.defined(), op, ": an operand is undefined");
  check(a.dtype() == b.dtype(), op, ": dtypes differ: ", a.dtype(), " ", a.shape(), " and ", b.dtype(), " ", b.shape(),
        "; convert one with to(x, dtype)");
}

namespace {

// Strides of x over the shape it broadcasts to: 0 where it repeats.
Strides strides_over(const Shape& out, const Tensor& x) {
  Strides strides = Shape::filled(out.dims(), 0);
  const std::int64_t lead = out.dims() - x.dims();
  for (std::int64_t d = 0; d < x.dims(); ++d) strides[lead + d] = x.shape()[d] == 1 ? 0 : x.strides()[d];
  return strides;
}

}  // namespace

Broadcast::Broadcast(const Shape& out, const Tensor& a, const Tensor& b) : n(1), stride_a(0), stride_b(0), rows(1) {
  const Strides all_a = strides_over(out, a), all_b = strides_over(out, b);
  // From the right, take a dimension into the run before it where both inputs step evenly across the border.
  Shape sizes;
  Strides steps_a, steps_b;  // innermost first
  for (std::int64_t d = out.dims() - 1; d >= 0; --d) {
    if (out[d] == 1) continue;
    if (!sizes.empty() && all_a[d] == steps_a.back() * sizes.back() && all_b[d] == steps_b.back() * sizes.back()) {
      sizes.back() *= out[d];
      continue;
    }
    sizes.push_back(out[d]);
    steps_a.push_back(all_a[d]);
    steps_b.push_back(all_b[d]);
  }
  if (sizes.empty()) return;
  n = sizes[0];
  stride_a = steps_a[0];
  stride_b = steps_b[0];
  for (std::int64_t d = sizes.dims() - 1; d >= 1; --d) {
    rows *= sizes[d];
    outer.push_back(sizes[d]);
    outer_a.push_back(steps_a[d]);
    outer_b.push_back(steps_b[d]);
  }
}

std::pair<std::int64_t, std::int64_t> Broadcast::at(std::int64_t row) const {
  std::int64_t offset_a = 0, offset_b = 0;
  for (std::int64_t d = outer.dims() - 1; d >= 0; --d) {
    const std::int64_t i = row % outer[d];
    row /= outer[d];
    offset_a += i * outer_a[d];
    offset_b += i * outer_b[d];
  }
  return {offset_a, offset_b};
}

Tensor dense(const Tensor& x) {
  if (x.is_contiguous()) return x;
  return dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    Tensor y = Tensor::empty(x.shape(), x.dtype());
    const Broadcast loop(x.shape(), x, x);
    const T* in = x.data<T>();
    T* out = y.mutable_data<T>();
    parallel_rows(loop.rows, loop.n * 2, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const T* from = in + loop.at(row).first;
        T* to = out + row * loop.n;
        for (std::int64_t i = 0; i < loop.n; ++i) to[i] = from[i * loop.stride_a];
      }
    });
    return y;
  });
}

}  // namespace prenorm
