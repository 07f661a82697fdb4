#include "autograd/ops/reduce.h"

#include <algorithm>
#include <type_traits>

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
using Wide = std::conditional_t<std::is_same_v<T, float>, double, T>;

// Adds all rows to `totals`: in T within short runs (`run` is room for one, zeros before and after), wide across them.
template <class T>
PRENORM_VECTORIZED void add_rows(const T* x, std::int64_t rows, std::int64_t columns, T* run, Wide<T>* totals) {
  constexpr std::int64_t kRun = 64;
  for (std::int64_t begin = 0; begin < rows; begin += kRun) {
    const std::int64_t end = begin + kRun < rows ? begin + kRun : rows;
    for (std::int64_t r = begin; r < end; ++r) {
      const T* row = x + r * columns;
#pragma omp simd
      for (std::int64_t c = 0; c < columns; ++c) run[c] += row[c];
    }
    end_run(columns, run, totals);
  }
}

}  // namespace

template <class T>
void column_sums(const T* x, std::int64_t rows, std::int64_t columns, T* out, bool add) {
  // One partial sum a block, added in order: the same bits with any number of threads. Few blocks, as each has memory
  // of its own.
  constexpr std::int64_t kMostBlocks = 32;
  const std::int64_t blocks = std::clamp<std::int64_t>(block_count(rows, columns), 1, kMostBlocks);
  const Tensor memory = zeros({blocks, columns}, dtype_of<T>()), wide = zeros({blocks, columns}, dtype_of<Wide<T>>());
  T* const runs = memory.mutable_data<T>();
  Wide<T>* const totals = wide.mutable_data<Wide<T>>();
  parallel_for(blocks, [=](std::int64_t block) {
    const auto [begin, end] = block_range(rows, blocks, block);
    add_rows(x + begin * columns, end - begin, columns, runs + block * columns, totals + block * columns);
  });
  for (std::int64_t block = 1; block < blocks; ++block) {
    for (std::int64_t c = 0; c < columns; ++c) totals[c] += totals[block * columns + c];
  }
  for (std::int64_t c = 0; c < columns; ++c) out[c] = (add ? out[c] : T{0}) + static_cast<T>(totals[c]);
}

template void column_sums(const float*, std::int64_t, std::int64_t, float*, bool);
template void column_sums(const double*, std::int64_t, std::int64_t, double*, bool);
template void column_sums(const std::int64_t*, std::int64_t, std::int64_t, std::int64_t*, bool);

}  // namespace prenorm
