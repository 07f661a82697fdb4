#include "autograd/nan_check.h"

#include <cmath>
#include <sstream>
#include <utility>

#include "autograd/row_major.h"
#include "autograd/scope.h"

namespace prenorm {

// The first element of some tensors that is not as it should be.
struct NanCheck::Place {
  std::size_t tensor;    // which one
  std::int64_t element;  // in row-major order
  double value;
  std::int64_t count;  // of such elements in that tensor
};

namespace {

std::string where(std::string_view op, const std::string& scope) {
  return std::string(op) + (scope.empty() ? "" : " in " + scope);
}

std::string_view kind(double value) { return std::isnan(value) ? "NaN" : "infinity"; }

Shape index_of(std::int64_t element, const Shape& shape) {
  Shape index = Shape::filled(shape.dims(), 0);
  for (std::int64_t d = shape.dims() - 1; d >= 0; --d) {
    index[d] = element % shape[d];
    element /= shape[d];
  }
  return index;
}

// "float32 [2, 3], is -inf at [0, 1], the first of 2 such elements"
template <class Place>
std::string describe(const Tensor& tensor, const Place& place) {
  std::ostringstream text;
  text << tensor.dtype() << ' ' << tensor.shape() << ", is " << (std::isnan(place.value) ? NAN : place.value);
  if (tensor.dims() > 0) text << " at " << index_of(place.element, tensor.shape());
  if (place.count > 1) text << ", the first of " << place.count << " such elements";
  return text.str();
}

}  // namespace

std::optional<NanCheck::Place> NanCheck::look(const Tensors& tensors) const {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    if (!tensor.defined() || !is_float(tensor.dtype())) continue;
    const RowMajorBytes bytes(tensor);
    std::optional<Place> found;
    dispatch_float("nan_check", tensor.dtype(), [&](auto t) {
      using T = decltype(t);
      const T* values = reinterpret_cast<const T*>(bytes.data());
      for (std::int64_t e = 0; e < tensor.numel(); ++e) {
        if (std::isfinite(values[e]) || (!options_.infinity && !std::isnan(values[e]))) continue;
        if (!found) found = Place{i, e, static_cast<double>(values[e]), 0};
        ++found->count;
      }
    });
    if (found) return found;
  }
  return std::nullopt;
}

void NanCheck::report(Finding finding) {
  first_ = std::move(finding);
  if (options_.stop) fail(first_->message);
}

void NanCheck::look_forward(std::string_view op, const std::string& scope, const Tensors& inputs,
                            const Tensors& outputs) {
  if (first_) return;
  // Inputs first: what an operation only passes on was made by nobody who was observed.
  const bool input = look(inputs).has_value();
  const std::optional<Place> place = input ? look(inputs) : look(outputs);
  if (!place) return;
  std::ostringstream text;
  text << "nan_check: " << where(op, scope);
  if (input) {
    text << " was given " << kind(place->value) << ": input " << place->tensor << ", "
         << describe(inputs[place->tensor], *place) << "; it came in with the data or a parameter";
  } else {
    text << " gave " << kind(place->value) << ": output " << place->tensor << ", "
         << describe(outputs[place->tensor], *place) << "; its inputs were "
         << (options_.infinity ? "finite" : "without NaN");
    for (const Tensor& in : inputs) {
      if (in.defined()) text << (&in == &inputs.front() ? ": " : ", ") << in.shape();
    }
  }
  report({std::string(op), scope, false, text.str()});
}

void NanCheck::node_made(const std::shared_ptr<const Node>& node, const Tensors& inputs, const Tensors& outputs) {
  look_forward(node->info().name, node->scope(), inputs, outputs);
}

void NanCheck::unrecorded(std::string_view op, const Tensors& inputs, const Tensors& outputs) {
  look_forward(op, *Scope::path(), inputs, outputs);
}

void NanCheck::backward_called(const std::shared_ptr<const Node>& node, const Tensors& cotangents,
                               const Tensors& gradients) {
  if (first_) return;
  const std::string op = where(node->info().name, node->scope());
  std::ostringstream text;
  if (const auto place = look(cotangents)) {
    // All gradients so far were looked at on their own.
    text << "nan_check: the gradient that reached ";
    if (node->is_leaf()) {
      text << "a leaf, ";
    } else {
      text << "output " << place->tensor << " of " << op << ", ";
    }
    text << describe(cotangents[place->tensor], *place)
         << "; what the operations above gave was finite, so their sum, a hook or the cotangent given to backward made "
         << kind(place->value);
  } else if (const auto made = look(gradients)) {
    text << "nan_check: the backward of " << op << " gave " << kind(made->value) << ": the gradient of input "
         << made->tensor << ", " << describe(gradients[made->tensor], *made) << "; the gradient that reached it was "
         << (options_.infinity ? "finite" : "without NaN");
  } else {
    return;
  }
  report({std::string(node->info().name), node->scope(), true, text.str()});
}

}  // namespace prenorm
