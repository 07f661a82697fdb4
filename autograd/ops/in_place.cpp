// fill_, copy_, add_, mul_: writes to a tensor's memory. Never recorded, so they refuse to touch what a graph may need.

#include <string_view>

#include "autograd/convert.h"
#include "autograd/observer.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

void check_writable(std::string_view op, const Tensor& x, const Tensor& from = {}) {
  for (std::int64_t d = 0; d < x.dims(); ++d) {
    check(x.strides()[d] != 0 || x.shape()[d] <= 1 || x.numel() == 0, op, ": the tensor of shape ", x.shape(),
          " repeats its elements along dimension ", d, " (expand); write to a clone() instead");
  }
  if (!GradMode::enabled()) return;
  check(!x.requires_grad(), op, ": the tensor of shape ", x.shape(),
        " requires grad, and writes are not recorded; write under NoGrad or use the op that returns a new tensor");
  check(!from.requires_grad(), op, ": the values to write into shape ", x.shape(),
        " require grad, and writes are not recorded; detach() them or use the op that returns a new tensor");
}

// Calls f(element of x, element of `from` broadcast to x) for all elements of x, which may be a view of any strides.
template <class T, class U, class F>
void write(const Tensor& x, const Tensor& from, F f) {
  const Broadcast loop(x.shape(), x, from);
  T* out = x.mutable_data<T>();
  const U* in = from.data<U>();
  if (x.numel() == 0) return;
  if (loop.rows == 1 && loop.stride_a == 1 && loop.stride_b <= 1) {
    parallel_rows(loop.n, 4, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) f(out[i], in[i * loop.stride_b]);
    });
    return;
  }
  for (std::int64_t row = 0; row < loop.rows; ++row) {
    const auto [offset_x, offset_from] = loop.at(row);
    for (std::int64_t i = 0; i < loop.n; ++i) {
      f(out[offset_x + i * loop.stride_a], in[offset_from + i * loop.stride_b]);
    }
  }
}

// Whether two tensors are parts of one storage and not the same elements in the same order: then an element could be
// read after it was written.
bool shares_memory(const Tensor& x, const Tensor& from) {
  return x.storage() == from.storage() &&
         !(x.storage_offset() == from.storage_offset() && x.shape() == from.shape() && x.strides() == from.strides());
}

// The values to read, broadcastable to x and safe to read while x is written.
Tensor readable(std::string_view op, const Tensor& x, const Tensor& from) {
  check(broadcasts_to(from.shape(), x.shape()), op, ": values of shape ", from.shape(),
        " do not broadcast to the tensor's ", x.shape());
  return shares_memory(x, from) ? clone(from.detach()) : from;
}

}  // namespace

const Tensor& fill_(const Tensor& x, double value) {
  check_writable("fill_", x);
  dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    const T converted = convert<T>(value);
    write<T, T>(x, x, [converted](T& element, const T&) { element = converted; });
  });
  if (Observer::any_for_unrecorded()) Observer::tell_unrecorded("fill_", {}, {x});
  return x;
}

const Tensor& copy_(const Tensor& x, const Tensor& from) {
  check_writable("copy_", x, from);
  const Tensor source = readable("copy_", x, from);
  dispatch(x.dtype(), [&](auto t) {
    dispatch(from.dtype(), [&](auto u) {
      using T = decltype(t);
      using U = decltype(u);
      write<T, U>(x, source, [](T& element, U value) { element = convert<T>(value); });
    });
  });
  if (Observer::any_for_unrecorded()) Observer::tell_unrecorded("copy_", {x, from}, {x});
  return x;
}

const Tensor& add_(const Tensor& x, const Tensor& y, double scale) {
  check_writable("add_", x, y);
  check_same_dtype("add_", x, y);
  const Tensor source = readable("add_", x, y);
  dispatch_number("add_", x.dtype(), [&](auto t) {
    using T = decltype(t);
    const T factor = convert<T>(scale);
    write<T, T>(x, source, [factor](T& element, T value) { element += factor * value; });
  });
  if (Observer::any_for_unrecorded()) Observer::tell_unrecorded("add_", {x, y}, {x});
  return x;
}

const Tensor& mul_(const Tensor& x, double factor) {
  check_writable("mul_", x);
  dispatch_number("mul_", x.dtype(), [&](auto t) {
    using T = decltype(t);
    const T converted = convert<T>(factor);
    write<T, T>(x, x, [converted](T& element, T) { element *= converted; });
  });
  if (Observer::any_for_unrecorded()) Observer::tell_unrecorded("mul_", {}, {x});
  return x;
}

}  // namespace prenorm
