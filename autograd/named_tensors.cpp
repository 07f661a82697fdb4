#include "autograd/named_tensors.h"

#include <unordered_map>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"

namespace prenorm {
namespace {

std::unordered_map<std::string_view, const Tensor*> by_path(std::string_view what, const NamedTensors& tensors) {
  std::unordered_map<std::string_view, const Tensor*> map;
  for (const auto& [path, tensor] : tensors) {
    check(map.emplace(path, &tensor).second, what, ": two tensors are named '", path, "'");
  }
  return map;
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 8;
  std::string text = names.empty() ? "none" : "";
  for (std::size_t i = 0; i < names.size() && i < kShown; ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  return text;
}

}  // namespace

LoadResult match_named(std::string_view what, const NamedTensors& into, const NamedTensors& values, bool strict) {
  LoadResult result;
  const auto given = by_path(what, values), asked = by_path(what, into);
  for (const auto& [path, tensor] : into) {
    const auto found = given.find(path);
    if (found == given.end()) {
      result.missing.push_back(path);
      continue;
    }
    const Tensor& value = *found->second;
    check(value.shape() == tensor.shape() && value.dtype() == tensor.dtype(), what, ": '", path, "' is ",
          tensor.shape(), " ", tensor.dtype(), " here, the value to load is ", value.shape(), " ", value.dtype());
  }
  for (const auto& [path, tensor] : values) {
    if (asked.find(path) == asked.end()) result.unexpected.push_back(path);
  }
  check(!strict || (result.missing.empty() && result.unexpected.empty()), what,
        ": names do not match; missing: ", listed(result.missing), "; unexpected: ", listed(result.unexpected));
  return result;
}

LoadResult load_named(std::string_view what, const NamedTensors& into, const NamedTensors& values, bool strict) {
  LoadResult result = match_named(what, into, values, strict);
  const NoGrad no_grad;
  const auto given = by_path(what, values);
  for (const auto& [path, tensor] : into) {
    if (const auto found = given.find(path); found != given.end()) copy_(tensor, *found->second);
  }
  return result;
}

}  // namespace prenorm
