// What gradcheck asks of its inputs, and how it puts them back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "autograd/tensor.h"

namespace prenorm {

// Where each element lies, in elements from the tensor's first, in row-major order.
std::vector<std::int64_t> element_offsets(const Tensor& tensor);

// Throws where gradcheck cannot judge by these inputs; see gradcheck.h.
void refuse_unsuitable(const NamedTensors& inputs, bool allow_float32);

// What the inputs are before a check: bits, and whether they require grad. Puts that back when it is destroyed,
// whatever happened in between.
class Snapshot {
 public:
  explicit Snapshot(const NamedTensors& inputs);
  ~Snapshot();
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  void refuse_changes() const;  // throws if an input is not what it was

 private:
  struct Saved {
    NamedTensor input;
    std::vector<std::byte> bits;
    bool requires_grad;
  };
  std::vector<Saved> saved_;
};

// The elements of a float tensor, to be moved and put back.
class Movable {
 public:
  explicit Movable(const Tensor& tensor);
  std::int64_t size() const { return static_cast<std::int64_t>(values_.size()); }
  double value(std::int64_t i) const { return values_[static_cast<std::size_t>(i)]; }  // before any move

  // Returns how far the element went: rounding x + by to the dtype changes the step.
  double move(std::int64_t i, double by) const;
  void put_back(std::int64_t i) const { set(i, value(i)); }

 private:
  double set(std::int64_t i, double value) const;

  Tensor tensor_;
  std::vector<std::int64_t> offsets_;
  std::vector<double> values_;  // exact for float32 too
};

}  // namespace prenorm
