// Ids (tokens, classes) that kernels use as positions in memory: checked before they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "autograd/check.h"
#include "autograd/tensor.h"

namespace prenorm {

// Throws in the name of `op` on the first of the dense int64 `ids` that is neither in [0, count) nor `ignored`. `kind`
// says what the ids are.
inline void check_ids(std::string_view op, std::string_view kind, const Tensor& ids, std::int64_t count,
                      std::optional<std::int64_t> ignored = {}) {
  const std::int64_t* id = ids.data<std::int64_t>();
  for (std::int64_t i = 0; i < ids.numel(); ++i) {
    if ((id[i] >= 0 && id[i] < count) || id[i] == ignored) [[likely]]
      continue;
    Shape position = ids.shape();
    for (std::int64_t d = ids.dims() - 1, rest = i; d >= 0; --d) {
      position[d] = rest % ids.shape()[d];
      rest /= ids.shape()[d];
    }
    fail(op, ": ", kind, " ", id[i], " at position ", position, " is not in [0, ", count, ")");
  }
}

}  // namespace prenorm
