#include "autograd/ops/reduce.h"

#include <algorithm>
#include <vector>

namespace prenorm {

Reduced::Reduced(std::string_view op, const Shape& shape, const Dims& dims) : rows(1), n(1) {
  Shape goes = Shape::filled(shape.dims(), dims.empty() ? 1 : 0);
  for (std::int64_t dim : dims) {
    const std::int64_t d = normalize_dim(op, dim, shape.dims());
    if (shape.dims() == 0) continue;  // a scalar takes 0 and -1
    check(goes[d] == 0, op, ": dimension ", dim, " is named twice in ", dims);
    goes[d] = 1;
  }
  Dims last;
  for (std::int64_t d = 0; d < shape.dims(); ++d) {
    const std::int64_t size = shape[d];
    keepdim_shape.push_back(goes[d] != 0 ? 1 : size);
    if (goes[d] != 0) {
      n *= size;
      last.push_back(d);
    } else {
      rows *= size;
      squeezed_shape.push_back(size);
      order.push_back(d);
    }
  }
  for (std::int64_t d : last) order.push_back(d);
}

Tensor as_rows(const Tensor& x, const Reduced& reduced) {
  Shape shape;
  Strides strides;
  for (std::int64_t d : reduced.order) {
    shape.push_back(x.shape()[d]);
    strides.push_back(x.strides()[d]);
  }
  return dense(x.view(shape, strides));
}

namespace {

template <class T>
PRENORM_VECTORIZED void add_rows(const T* x, std::int64_t rows, std::int64_t columns, T* out) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* row = x + r * columns;
#pragma omp simd
    for (std::int64_t c = 0; c < columns; ++c) out[c] += row[c];
  }
}

}  // namespace

template <class T>
void column_sums(const T* x, std::int64_t rows, std::int64_t columns, T* out, bool add) {
  if (!add) std::fill_n(out, columns, T{0});
  const std::int64_t blocks = block_count(rows, columns);
  if (blocks <= 1) return add_rows(x, rows, columns, out);
  // One partial sum a block, added in order: the same bits with any number of threads.
  std::vector<T> partials(static_cast<std::size_t>(blocks * columns), T{0});
  parallel_for(blocks, [&](std::int64_t block) {
    const auto [begin, end] = block_range(rows, blocks, block);
    add_rows(x + begin * columns, end - begin, columns, partials.data() + block * columns);
  });
  add_rows(partials.data(), blocks, columns, out);
}

template void column_sums(const float*, std::int64_t, std::int64_t, float*, bool);
template void column_sums(const double*, std::int64_t, std::int64_t, double*, bool);
template void column_sums(const std::int64_t*, std::int64_t, std::int64_t, std::int64_t*, bool);

}  // namespace prenorm
