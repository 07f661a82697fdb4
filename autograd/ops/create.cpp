// zeros, ones, full, arange and their _like forms: tensors that nothing was computed from.

#include <algorithm>
#include <cmath>

#include "autograd/observer.h"
#include "autograd/ops.h"

namespace prenorm {

Tensor full(const Shape& shape, double value, DType dtype) {
  Tensor out = Tensor::empty(shape, dtype);
  const Observer::Inside inside;  // a new tensor is not a write into one
  return fill_(out, value);
}
Tensor zeros(const Shape& shape, DType dtype) { return full(shape, 0, dtype); }
Tensor ones(const Shape& shape, DType dtype) { return full(shape, 1, dtype); }
Tensor zeros_like(const Tensor& x) { return full(x.shape(), 0, x.dtype()); }
Tensor ones_like(const Tensor& x) { return full(x.shape(), 1, x.dtype()); }
Tensor full_like(const Tensor& x, double value) { return full(x.shape(), value, x.dtype()); }

Tensor arange(double start, double end, double step, DType dtype) {
  check(step != 0 && std::isfinite((end - start) / step), "arange: from ", start, " to ", end, " in steps of ", step);
  const double count = std::ceil((end - start) / step);
  check(count >= 0, "arange: from ", start, " to ", end, " never gets there in steps of ", step);
  check(count < 4e18, "arange: from ", start, " to ", end, " in steps of ", step,
        " are more elements than int64 can count");
  Tensor out = Tensor::empty({static_cast<std::int64_t>(count)}, dtype);
  dispatch_number("arange", dtype, [&](auto t) {
    using T = decltype(t);
    T* values = out.mutable_data<T>();
    for (std::int64_t i = 0; i < out.numel(); ++i) values[i] = static_cast<T>(start + static_cast<double>(i) * step);
  });
  return out;
}

}  // namespace prenorm
