// Shapes and the arithmetic on them: strides, broadcasting, dimension numbers.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <string_view>

namespace prenorm {

// Up to kMaxDims sizes, kept inline so that a tensor's shape costs no allocation. Also used for strides (in elements).
class Shape {
 public:
  static constexpr std::int64_t kMaxDims = 8;

  Shape() = default;  // [], a scalar
  Shape(std::initializer_list<std::int64_t> sizes) {
    for (std::int64_t size : sizes) push_back(size);
  }
  template <class Iterator>
  Shape(Iterator first, Iterator last) {
    for (; first != last; ++first) push_back(*first);
  }
  static Shape filled(std::int64_t dims, std::int64_t value);

  std::int64_t dims() const { return dims_; }
  bool empty() const { return dims_ == 0; }
  std::int64_t& operator[](std::int64_t d) { return sizes_[d]; }
  std::int64_t operator[](std::int64_t d) const { return sizes_[d]; }
  std::int64_t& back() { return sizes_[dims_ - 1]; }
  std::int64_t back() const { return sizes_[dims_ - 1]; }
  std::int64_t* begin() { return sizes_.data(); }
  std::int64_t* end() { return sizes_.data() + dims_; }
  const std::int64_t* begin() const { return sizes_.data(); }
  const std::int64_t* end() const { return sizes_.data() + dims_; }

  void push_back(std::int64_t size);
  void insert(std::int64_t position, std::int64_t size);
  void erase(std::int64_t position);

  friend bool operator==(const Shape& a, const Shape& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

 private:
  std::array<std::int64_t, kMaxDims> sizes_{};
  std::int64_t dims_ = 0;
};

using Strides = Shape;

std::ostream& operator<<(std::ostream& out, const Shape& shape);  // "[2, 3]"

// The number of elements. Throws on a negative size and on a product that int64 cannot hold.
std::int64_t numel(const Shape& shape);

// Row-major strides of a tensor without gaps.
Strides contiguous_strides(const Shape& shape);

// NumPy's rule: aligned at the right, sizes are equal or one of them is 1. Throws in the name of `op`, showing both.
Shape broadcast_shapes(std::string_view op, const Shape& a, const Shape& b);
bool broadcasts_to(const Shape& from, const Shape& to);

// Turns a dimension number in [-dims, dims) into one in [0, dims). A scalar takes 0 and -1.
std::int64_t normalize_dim(std::string_view op, std::int64_t dim, std::int64_t dims);

// Replaces one size of -1 by what `count` elements leave for it; throws where the sizes do not hold `count` elements.
Shape infer_shape(std::string_view op, const Shape& wanted, const Shape& from);

// The strides that show a tensor of `shape` and `strides` as `wanted` without a copy. False where that takes a copy.
bool reshape_strides(const Shape& shape, const Strides& strides, const Shape& wanted, Strides& out);

}  // namespace prenorm
