#include "autograd/view/numbers.h"

#include "autograd/view/json_text.h"

namespace prenorm::view {
namespace {

std::string first_element(std::string_view symbol, const Tensor& tensor) {
  if (!tensor.defined() || tensor.numel() == 0) return "";
  std::string place;
  for (std::int64_t d = 0; d < tensor.dims(); ++d) place += d == 0 ? "0" : ", 0";
  return std::string(symbol) + (place.empty() ? "" : "[" + place + "]") + " = " +
         json_number(tensor.to_vector<double>()[0], 4);
}

}  // namespace

std::string numbers_of(const RecordedNode& node) { return first_element("y", node.outputs[0]); }

std::string backward_numbers_of(const RecordedNode& node, const NodeTrace& trace) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (trace.gradients[i].defined()) return first_element("dx", trace.gradients[i]);
  }
  return "";
}

}  // namespace prenorm::view
