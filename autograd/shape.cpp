#include "autograd/shape.h"

#include "autograd/check.h"

namespace prenorm {

Shape Shape::filled(std::int64_t dims, std::int64_t value) {
  Shape shape;
  for (std::int64_t d = 0; d < dims; ++d) shape.push_back(value);
  return shape;
}

void Shape::push_back(std::int64_t size) { insert(dims_, size); }

void Shape::insert(std::int64_t position, std::int64_t size) {
  check(dims_ < kMaxDims, "shape: at most ", kMaxDims, " dimensions, cannot add another to ", *this);
  std::copy_backward(begin() + position, end(), end() + 1);
  sizes_[position] = size;
  ++dims_;
}

void Shape::erase(std::int64_t position) {
  std::copy(begin() + position + 1, end(), begin() + position);
  --dims_;
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  out << '[';
  for (std::int64_t d = 0; d < shape.dims(); ++d) out << (d == 0 ? "" : ", ") << shape[d];
  return out << ']';
}

std::int64_t numel(const Shape& shape) {
  std::int64_t count = 1;
  bool has_zero = false;
  for (std::int64_t size : shape) {
    check(size >= 0, "shape: sizes are not negative, got ", shape);
    if (size == 0) {
      has_zero = true;
      continue;
    }
    // Checked although a zero elsewhere makes the product 0: strides are products of parts of the shape.
    check(!__builtin_mul_overflow(count, size, &count), "shape: ", shape, " has more elements than int64 can count");
  }
  return has_zero ? 0 : count;
}

Strides contiguous_strides(const Shape& shape) {
  Strides strides = shape;
  std::int64_t step = 1;
  for (std::int64_t d = shape.dims() - 1; d >= 0; --d) {
    strides[d] = step;
    step *= std::max<std::int64_t>(shape[d], 1);
  }
  return strides;
}

Shape broadcast_shapes(std::string_view op, const Shape& a, const Shape& b) {
  Shape out = a.dims() >= b.dims() ? a : b;
  const Shape& shorter = a.dims() >= b.dims() ? b : a;
  const std::int64_t lead = out.dims() - shorter.dims();
  for (std::int64_t d = 0; d < shorter.dims(); ++d) {
    std::int64_t& size = out[lead + d];
    check(size == shorter[d] || size == 1 || shorter[d] == 1, op, ": shapes ", a, " and ", b,
          " do not broadcast; aligned at the right, sizes must be equal or 1");
    if (size == 1) size = shorter[d];
  }
  return out;
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  const std::int64_t lead = to.dims() - from.dims();
  if (lead < 0) return false;
  for (std::int64_t d = 0; d < from.dims(); ++d) {
    if (from[d] != to[lead + d] && from[d] != 1) return false;
  }
  return true;
}

std::int64_t normalize_dim(std::string_view op, std::int64_t dim, std::int64_t dims) {
  const std::int64_t range = std::max<std::int64_t>(dims, 1);
  check(dim >= -range && dim < range, op, ": dimension ", dim, " is out of range for a tensor of ", dims,
        " dimensions, expected ", -range, " to ", range - 1);
  return dim < 0 ? dim + range : dim;
}

Shape infer_shape(std::string_view op, const Shape& wanted, const Shape& from) {
  const std::int64_t count = numel(from);
  Shape known = wanted;
  std::int64_t unknown = -1;
  for (std::int64_t d = 0; d < wanted.dims(); ++d) {
    if (wanted[d] != -1) continue;
    check(unknown < 0, op, ": only one size may be -1, got ", wanted);
    unknown = d;
    known[d] = 1;
  }
  const std::int64_t rest = numel(known);
  if (unknown >= 0) {
    check(rest != 0 && count % rest == 0, op, ": cannot show ", from, " (", count, " elements) as ", wanted);
    known[unknown] = count / rest;
  } else {
    check(rest == count, op, ": ", from, " has ", count, " elements, ", wanted, " needs ", rest);
  }
  return known;
}

bool reshape_strides(const Shape& shape, const Strides& strides, const Shape& wanted, Strides& out) {
  out = contiguous_strides(wanted);
  if (numel(shape) == 0) return true;
  // Walk both shapes from the right. A run of dimensions of `shape` that lie without gaps in memory is one chunk; the
  // sizes of `wanted` must fill each chunk exactly.
  std::int64_t view = wanted.dims() - 1;
  std::int64_t chunk = 1;
  for (std::int64_t d = shape.dims() - 1, chunk_stride = d >= 0 ? strides[d] : 1; d >= 0; --d) {
    if (chunk == 1) chunk_stride = strides[d];
    chunk *= shape[d];
    const bool chunk_ends = d == 0 || (shape[d - 1] != 1 && strides[d - 1] != chunk * chunk_stride);
    if (!chunk_ends) continue;
    std::int64_t filled = 1;
    while (view >= 0 && (filled < chunk || wanted[view] == 1)) {
      out[view] = filled * chunk_stride;
      filled *= wanted[view--];
    }
    if (filled != chunk) return false;
    chunk = 1;
  }
  return view < 0 || std::all_of(wanted.begin(), wanted.begin() + view + 1, [](std::int64_t s) { return s == 1; });
}

}  // namespace prenorm
