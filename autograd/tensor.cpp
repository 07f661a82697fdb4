#include "autograd/tensor.h"

#include <cstring>
#include <limits>

#include "autograd/convert.h"
#include "autograd/tensor_impl.h"

namespace prenorm {
namespace {

const Tensor::Impl& look(const Tensor& tensor) {
  check(tensor.defined(), "tensor: this one is undefined (default-constructed, or an absent gradient)");
  return *tensor.impl();
}

// Whether elements follow each other in row-major order; sizes of 1 are never stepped over, so their stride is free.
bool has_no_gaps(const Shape& shape, const Strides& strides) {
  std::int64_t step = 1;
  for (std::int64_t d = shape.dims() - 1; d >= 0; --d) {
    if (shape[d] != 1 && strides[d] != step) return false;
    step *= shape[d];
  }
  return true;
}

}  // namespace

Tensor Tensor::empty(const Shape& shape, DType dtype) {
  const std::int64_t count = prenorm::numel(shape);
  check(count <= std::numeric_limits<std::int64_t>::max() / 16, "empty: ", shape, " ", dtype,
        " needs more bytes than int64 can count");
  auto impl = std::make_shared<Impl>();
  impl->storage = Storage::allocate(count * size_of(dtype));
  impl->shape = shape;
  impl->strides = contiguous_strides(shape);
  impl->dtype = dtype;
  impl->numel = count;
  return Tensor(std::move(impl));
}

const Shape& Tensor::shape() const { return look(*this).shape; }
const Strides& Tensor::strides() const { return look(*this).strides; }
std::int64_t Tensor::size(std::int64_t dim) const {
  check(dims() > 0, "size: a scalar has no dimension ", dim);
  return shape()[normalize_dim("size", dim, dims())];
}
std::int64_t Tensor::numel() const { return look(*this).numel; }
DType Tensor::dtype() const { return look(*this).dtype; }
bool Tensor::is_contiguous() const { return look(*this).contiguous; }

const void* Tensor::raw_data(DType expected) const {
  const Impl& impl = look(*this);
  check(impl.dtype == expected, "data: the tensor holds ", impl.dtype, ", asked for ", expected);
  return static_cast<const char*>(impl.storage->data()) + impl.offset * size_of(impl.dtype);
}

Tensor Tensor::view(const Shape& shape, const Strides& strides, std::int64_t offset) const {
  const Impl& base = look(*this);
  auto impl = std::make_shared<Impl>();
  impl->storage = base.storage;
  impl->offset = base.offset + offset;
  impl->shape = shape;
  impl->strides = strides;
  impl->dtype = base.dtype;
  impl->numel = prenorm::numel(shape);
  impl->contiguous = impl->numel == 0 || has_no_gaps(shape, strides);
  return Tensor(std::move(impl));
}

const std::shared_ptr<Storage>& Tensor::storage() const { return look(*this).storage; }
std::int64_t Tensor::storage_offset() const { return look(*this).offset; }
std::uint64_t Tensor::version() const { return look(*this).storage->version(); }
void Tensor::count_write() const { look(*this).storage->count_write(); }
bool Tensor::is_sole_owner() const {
  return look(*this).storage.use_count() == 1 && impl_.use_count() == 1 && impl_->node == nullptr;
}

Tensor Tensor::detach() const { return view(shape(), strides()); }

std::vector<std::int64_t> Tensor::element_offsets() const {
  if (numel() == 0) return {};
  std::vector<std::int64_t> offsets{0};
  for (std::int64_t d = 0; d < dims(); ++d) {
    std::vector<std::int64_t> next;
    next.reserve(offsets.size() * static_cast<std::size_t>(shape()[d]));
    for (std::int64_t offset : offsets) {
      for (std::int64_t i = 0; i < shape()[d]; ++i) next.push_back(offset + i * strides()[d]);
    }
    offsets = std::move(next);
  }
  return offsets;
}

double Tensor::element_as_double(std::int64_t offset) const {
  return dispatch(dtype(), [&](auto t) { return static_cast<double>(data<decltype(t)>()[offset]); });
}
std::int64_t Tensor::element_as_int(std::int64_t offset) const {
  return dispatch(dtype(), [&](auto t) { return convert<std::int64_t>(data<decltype(t)>()[offset]); });
}

void Tensor::copy_in(const void* values, std::size_t count, DType from) const {
  check(static_cast<std::int64_t>(count) == numel(), "of: ", count, " values for shape ", shape(), ", which holds ",
        numel());
  dispatch(from, [&](auto f) {
    const auto* source = static_cast<const decltype(f)*>(values);
    dispatch(dtype(), [&](auto t) {
      using T = decltype(t);
      T* out = mutable_data<T>();
      for (std::size_t i = 0; i < count; ++i) out[i] = convert<T>(source[i]);
    });
  });
}

}  // namespace prenorm
