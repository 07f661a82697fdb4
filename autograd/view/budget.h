// Which tensors of an export are written in full, and how much may be said of the others.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "autograd/tensor.h"

namespace prenorm::view {

enum class Importance { failed, shown, other };  // shown: the parts at forks and norms

// The document is written twice, with the same tensors in the same order: first to find them, then, after settle(), to
// write their texts.
class TensorBudget {
 public:
  // The tensor's text; nothing before settle().
  std::string text(const Tensor& tensor, Importance importance);
  // Shares out what is left of the file beside `other_bytes`.
  void settle(std::size_t other_bytes);
  bool truncated() const { return truncated_; }

 private:
  struct Entry {
    Tensor tensor;
    Importance importance;
    bool in_full;
    std::string text;
  };
  std::vector<Entry> entries_;
  std::size_t next_ = 0;
  bool settled_ = false, truncated_ = false;
};

}  // namespace prenorm::view
