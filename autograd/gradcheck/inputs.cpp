#include "autograd/gradcheck/inputs.h"

#include <algorithm>

namespace prenorm {
namespace {

// One element: where it lies and whose it is.
struct Place {
  std::uintptr_t address;
  std::size_t input;
};

void add_places(const Tensor& tensor, std::size_t input, std::vector<Place>& places) {
  const auto start = reinterpret_cast<std::uintptr_t>(tensor.storage()->data());
  const std::int64_t size = size_of(tensor.dtype());
  for (std::int64_t offset : element_offsets(tensor)) {
    places.push_back({start + static_cast<std::uintptr_t>((tensor.storage_offset() + offset) * size), input});
  }
}

bool is_checked(const NamedTensor& input) { return input.tensor.requires_grad(); }

// Moving an element that is there twice would move two elements. Inputs may share a storage as long as they show
// different elements of it, as slices do. Constants may repeat their own elements, as an expanded mask does.
void refuse_overlap(const NamedTensors& inputs) {
  std::vector<Place> places;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].tensor.defined()) add_places(inputs[i].tensor, i, places);
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.address < b.address; });
  for (std::size_t i = 1; i < places.size(); ++i) {
    const NamedTensor &a = inputs[places[i - 1].input], &b = inputs[places[i].input];
    if (places[i - 1].address != places[i].address || (!is_checked(a) && !is_checked(b))) continue;
    check(places[i - 1].input != places[i].input, "gradcheck: elements of the input ", a.path, " ", a.tensor.shape(),
          " overlap in memory (an expanded view?), so that none can be moved alone; pass a clone()");
    fail("gradcheck: the inputs ", a.path, " ", a.tensor.shape(), " and ", b.path, " ", b.tensor.shape(),
         " overlap in memory, so that neither can be moved alone; pass a clone() of one of them");
  }
}

std::byte* first_byte(const Tensor& tensor) {
  return static_cast<std::byte*>(tensor.storage()->data()) + tensor.storage_offset() * size_of(tensor.dtype());
}

std::vector<std::byte> bits_of(const Tensor& tensor) {
  const std::int64_t size = size_of(tensor.dtype());
  std::vector<std::byte> bits;
  bits.reserve(static_cast<std::size_t>(tensor.numel() * size));
  for (std::int64_t offset : element_offsets(tensor)) {
    const std::byte* element = first_byte(tensor) + offset * size;
    bits.insert(bits.end(), element, element + size);
  }
  return bits;
}

void set_bits(const Tensor& tensor, const std::vector<std::byte>& bits) {
  const std::int64_t size = size_of(tensor.dtype());
  tensor.count_write();
  const std::byte* next = bits.data();
  for (std::int64_t offset : element_offsets(tensor)) {
    std::copy_n(next, size, first_byte(tensor) + offset * size);
    next += size;
  }
}

}  // namespace

std::vector<std::int64_t> element_offsets(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  const Strides& strides = tensor.strides();
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(tensor.numel()));
  Shape index = Shape::filled(shape.dims(), 0);
  std::int64_t offset = 0;
  for (std::int64_t& place : offsets) {
    place = offset;
    for (std::int64_t d = shape.dims() - 1; d >= 0; --d) {
      offset += strides[d];
      if (++index[d] < shape[d]) break;
      offset -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
  return offsets;
}

void refuse_unsuitable(const NamedTensors& inputs, bool allow_float32) {
  for (const NamedTensor& input : inputs) {
    if (!input.tensor.defined() || !is_checked(input)) continue;
    check(input.tensor.is_leaf(), "gradcheck: the input ", input.path, " ", input.tensor.shape(),
          " was computed by a recorded operation; pass x.detach().requires_grad_()");
    check(allow_float32 || input.tensor.dtype() == float64, "gradcheck: the input ", input.path, " ",
          input.tensor.shape(),
          " is float32, in which differences are right to 2 or 3 digits only; convert it with "
          "to(x, float64), or pass allow_float32 for a coarse check");
  }
  check(std::any_of(inputs.begin(), inputs.end(), is_checked), "gradcheck: none of the ", inputs.size(),
        " inputs requires grad; call requires_grad_() on those to check");
  refuse_overlap(inputs);
}

Snapshot::Snapshot(const NamedTensors& inputs) {
  for (const NamedTensor& input : inputs) {
    if (input.tensor.defined()) saved_.push_back({input, bits_of(input.tensor), input.tensor.requires_grad()});
  }
}

Snapshot::~Snapshot() {
  for (Saved& saved : saved_) {
    Tensor& tensor = saved.input.tensor;
    if (tensor.is_leaf()) tensor.requires_grad_(saved.requires_grad);
    if (bits_of(tensor) != saved.bits) set_bits(tensor, saved.bits);
  }
}

void Snapshot::refuse_changes() const {
  for (const Saved& saved : saved_) {
    check(bits_of(saved.input.tensor) == saved.bits, "gradcheck: the function changed its input ", saved.input.path,
          " ", saved.input.tensor.shape(), "; it has to leave its inputs as they are, for example by clone()");
  }
}

Movable::Movable(const Tensor& tensor)
    : tensor_(tensor), offsets_(element_offsets(tensor)), values_(tensor.to_vector<double>()) {}

double Movable::set(std::int64_t i, double value) const {
  return dispatch_float("gradcheck", tensor_.dtype(), [&](auto t) -> double {
    using T = decltype(t);
    return tensor_.mutable_data<T>()[offsets_[static_cast<std::size_t>(i)]] = static_cast<T>(value);
  });
}

double Movable::move(std::int64_t i, double by) const { return set(i, value(i) + by) - value(i); }

}  // namespace prenorm
