// Tensor: a handle on n-dimensional data, and on the place in the graph that computed it.
//
// Copying a Tensor copies the handle. Several tensors may view one storage with different shapes and strides. All maths
// is in free functions (autograd/ops.h); this file knows of storage, shape and gradients only.
//
// Concurrency: several threads may at once
// - read tensors, and compute with shared ones, under a grad mode, scope and observers of their own (all three are each
//   thread's); with shared layers, too, unless these note something of a call, as attention does its weights;
// - run backward through graphs that share no node and no leaf; call grad() on graphs that share no node but leaves.
// Not allowed: writing to a tensor that another thread uses; backward() through a shared leaf from two threads (both
// add to its grad()); two runs through one graph; registering hooks meanwhile; random numbers, as dropout draws (the
// default generator is one for all). Optimisers, loading and the switches of modules write.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "autograd/dtype.h"
#include "autograd/shape.h"
#include "autograd/storage.h"

namespace prenorm {

class Node;
class Tensor;
using Tensors = std::vector<Tensor>;

struct TensorOptions {
  DType dtype = float32;
  bool requires_grad = false;
};

struct BackwardOptions {
  bool keep_graph = false;  // true: saved values stay, so that backward can run through the same nodes again
};

// Sees a gradient and may return another to be used in its place; an undefined return value leaves it as it is.
using GradientHook = std::function<Tensor(const Tensor& gradient)>;
// Called with a leaf whose grad() is final for this run of backward.
using AccumulateHook = std::function<void(const Tensor& leaf)>;

class Tensor {
 public:
  // Undefined: no data. Stands for "absent" (no bias) and for "no gradient".
  Tensor() = default;

  // Contents undefined; the creation functions in ops.h fill. Throws on sizes that overflow, before allocating.
  static Tensor empty(const Shape& shape, DType dtype = float32);
  // Copies `values` in row-major order.
  template <class T>
  static Tensor of(const std::vector<T>& values, const Shape& shape, TensorOptions options = {});
  static Tensor of(std::initializer_list<double> values, const Shape& shape, TensorOptions options = {}) {
    return of(std::vector<double>(values), shape, options);
  }
  // A 1-D tensor of the values.
  static Tensor of(std::initializer_list<double> values, TensorOptions options = {}) {
    return of(values, Shape{static_cast<std::int64_t>(values.size())}, options);
  }
  static Tensor scalar(double value, TensorOptions options = {}) { return of({value}, Shape{}, options); }

  bool defined() const { return impl_ != nullptr; }
  explicit operator bool() const = delete;  // neither "defined" nor "true" would be clear

  const Shape& shape() const;
  const Strides& strides() const;  // in elements
  std::int64_t dims() const { return shape().dims(); }
  std::int64_t size(std::int64_t dim) const;  // negative dims count from the end
  std::int64_t numel() const;
  DType dtype() const;
  bool is_contiguous() const;  // row-major without gaps

  // The first element. T must be the C++ type of dtype().
  template <class T>
  const T* data() const {
    return static_cast<const T*>(raw_data(dtype_of<T>()));
  }
  // The same for writing: counts the version up. Does not look at requires_grad; that is for in-place functions.
  template <class T>
  T* mutable_data() const {
    count_write();
    return const_cast<T*>(data<T>());
  }

  // The value of a tensor of one element, converted to T.
  template <class T = double>
  T item() const;
  // All values in row-major order, converted to T.
  template <class T = double>
  std::vector<T> to_vector() const;

  // --- memory -------------------------------------------------------------------------------------------------------
  // Another view of the same storage, without a place in the graph. `offset` in elements from this tensor's first.
  // Ops build on this; it is not recorded.
  Tensor view(const Shape& shape, const Strides& strides, std::int64_t offset = 0) const;
  const std::shared_ptr<Storage>& storage() const;
  std::int64_t storage_offset() const;
  std::uint64_t version() const;  // writes so far to the storage, through any view
  void count_write() const;
  // True where nobody else can see this tensor's elements: one handle, on the only view of its storage.
  bool is_sole_owner() const;
  // True where both handles are on one and the same tensor.
  bool is(const Tensor& other) const { return impl_ == other.impl_; }

  // --- gradients (defined in engine.cpp) ---

  bool requires_grad() const;  // a leaf that asked for it, or computed from one
  bool is_leaf() const;        // not computed by a recorded operation
  // Leaves of a float type only. Returns this tensor.
  Tensor& requires_grad_(bool on = true);
  // The accumulated gradient of a leaf, or of a tensor with retain_grad(). Undefined before backward.
  Tensor grad() const;
  void set_grad(const Tensor& gradient) const;  // stored as given; undefined clears it
  // The same data without its place in the graph. Shares storage and version.
  Tensor detach() const;

  // Adds the derivative of this scalar (or of sum(this * cotangent)) to grad() of every leaf it was computed from.
  void backward(const Tensor& cotangent = {}, BackwardOptions options = {}) const;

  // Called once a run with the total gradient, before it is stored or passed on. Returns a function that removes the
  // hook. One that holds its own tensor keeps it alive until it is removed; let it hold a detach() instead.
  std::function<void()> register_hook(GradientHook hook) const;
  // Leaves only: called when grad() is final in a run of backward.
  std::function<void()> register_post_accumulate_hook(AccumulateHook hook) const;
  // Makes backward store grad() of a tensor that is no leaf.
  void retain_grad() const;

  // The node that computed this tensor, null for leaves, and which of its outputs this is.
  const std::shared_ptr<Node>& node() const;
  std::int64_t output_index() const;

  struct Impl;
  const std::shared_ptr<Impl>& impl() const { return impl_; }  // for node.cpp and engine.cpp
  explicit Tensor(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

 private:
  const void* raw_data(DType expected) const;
  void copy_in(const void* values, std::size_t count, DType from) const;
  double element_as_double(std::int64_t offset) const;
  std::int64_t element_as_int(std::int64_t offset) const;
  std::vector<std::int64_t> element_offsets() const;

  std::shared_ptr<Impl> impl_;
};

// A tensor with its dotted path, "blocks.0.attn.qkv.weight".
struct NamedTensor {
  std::string path;
  Tensor tensor;
};
using NamedTensors = std::vector<NamedTensor>;

// Derivatives of sum_i sum(outputs[i] * cotangents[i]) with respect to `inputs`, leaves or not. Gradients of the
// leaves are not touched. Cotangents may be left out for scalars. An input that no path reaches gets an undefined
// tensor where `allow_unused`, else an error.
struct GradOptions {
  bool create_graph = false;  // true: the results can be differentiated again
  bool keep_graph = false;    // implied by create_graph
  bool allow_unused = false;
};
Tensors grad(const Tensors& outputs, const Tensors& inputs, const Tensors& cotangents = {}, GradOptions options = {});

// --- templates ---

template <class T>
Tensor Tensor::of(const std::vector<T>& values, const Shape& shape, TensorOptions options) {
  Tensor out = empty(shape, options.dtype);
  if constexpr (std::is_same_v<T, bool>) {  // std::vector<bool> has no data()
    const std::vector<std::int64_t> wide(values.begin(), values.end());
    out.copy_in(wide.data(), wide.size(), int64);
  } else if constexpr (std::is_same_v<T, double> || std::is_same_v<T, float> || std::is_same_v<T, std::int64_t>) {
    out.copy_in(values.data(), values.size(), dtype_of<T>());
  } else {
    static_assert(std::is_integral_v<T>, "values are numbers");
    const std::vector<std::int64_t> wide(values.begin(), values.end());
    out.copy_in(wide.data(), wide.size(), int64);
  }
  out.requires_grad_(options.requires_grad);
  return out;
}

template <class T>
T Tensor::item() const {
  check(numel() == 1, "item: expected a tensor of one element, got ", shape());
  return to_vector<T>()[0];
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  std::vector<T> values;
  values.reserve(static_cast<std::size_t>(numel()));
  for (std::int64_t offset : element_offsets()) {
    if constexpr (std::is_floating_point_v<T>) {
      values.push_back(static_cast<T>(element_as_double(offset)));
    } else {
      values.push_back(static_cast<T>(element_as_int(offset)));
    }
  }
  return values;
}

}  // namespace prenorm
