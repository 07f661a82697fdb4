// The bytes of a tensor in row-major order, for the writers of files.
#pragma once

#include <cstddef>
#include <vector>

#include "autograd/tensor.h"

namespace prenorm {

// Bytes rather than values: going through double would alter some NaNs. Valid as long as the tensor's storage is there.
class RowMajorBytes {
 public:
  explicit RowMajorBytes(const Tensor& tensor)
      : size_(static_cast<std::size_t>(tensor.numel() * size_of(tensor.dtype()))) {
    const std::int64_t width = size_of(tensor.dtype());
    first_ = static_cast<const char*>(tensor.storage()->data()) + tensor.storage_offset() * width;
    if (tensor.is_contiguous()) return;
    copy_.reserve(size_);
    gather(tensor, 0, first_, width);
    first_ = copy_.data();
  }

  const char* data() const { return first_; }
  std::size_t size() const { return size_; }

 private:
  void gather(const Tensor& tensor, std::int64_t dim, const char* from, std::int64_t width) {
    if (dim == tensor.dims()) {
      copy_.insert(copy_.end(), from, from + width);
      return;
    }
    for (std::int64_t i = 0; i < tensor.shape()[dim]; ++i)
      gather(tensor, dim + 1, from + i * tensor.strides()[dim] * width, width);
  }

  std::size_t size_;
  const char* first_;
  std::vector<char> copy_;
};

}  // namespace prenorm
