// split: x cut along dim into parts of the given sizes. chunk: into equal parts, the last one maybe shorter.
//
//   Each part is a slice of x (see slice.cpp), and its gradient goes back to where it was cut out.

#include <algorithm>
#include <numeric>

#include "autograd/ops.h"

namespace prenorm {

Tensors split(const Tensor& x, const std::vector<std::int64_t>& sizes, std::int64_t dim) {
  check(x.dims() > 0, "split: a scalar has no dimension ", dim);
  const std::int64_t n = x.size(normalize_dim("split", dim, x.dims()));
  const std::int64_t total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  const bool negative = std::any_of(sizes.begin(), sizes.end(), [](std::int64_t size) { return size < 0; });
  check(total == n && !negative, "split: sizes add up to ", total, negative ? " with a negative one among them" : "",
        ", expected ", n, " along dimension ", dim, " of ", x.shape());
  Tensors parts;
  std::int64_t begin = 0;
  for (std::int64_t size : sizes) {
    parts.push_back(slice(x, dim, begin, begin + size));
    begin += size;
  }
  return parts;
}

Tensors chunk(const Tensor& x, std::int64_t chunks, std::int64_t dim) {
  check(chunks > 0, "chunk: expected at least one chunk, got ", chunks);
  check(x.dims() > 0, "chunk: a scalar has no dimension ", dim);
  const std::int64_t n = x.size(normalize_dim("chunk", dim, x.dims()));
  if (n == 0) return split(x, std::vector<std::int64_t>(static_cast<std::size_t>(chunks), 0), dim);
  const std::int64_t size = (n - 1) / chunks + 1;
  std::vector<std::int64_t> sizes(static_cast<std::size_t>((n - 1) / size + 1), size);
  sizes.back() = n - size * (static_cast<std::int64_t>(sizes.size()) - 1);
  return split(x, sizes, dim);
}

}  // namespace prenorm
