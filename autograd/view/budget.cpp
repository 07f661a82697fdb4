#include "autograd/view/budget.h"

#include <algorithm>

#include "autograd/view/tensor_json.h"

namespace prenorm::view {
namespace {

constexpr std::int64_t kFullElements = 256;    // of a tensor that may be written in full
constexpr std::size_t kFullBytes = 2'000'000;  // of all such tensors together
constexpr std::size_t kFileBytes = 3'900'000;  // of the JSON; the page around it is small
constexpr std::size_t kSummaryBytes = 400;     // of a tensor that is not
constexpr std::size_t kLeastSummary = 64;      // shape, dtype and norm

}  // namespace

std::string TensorBudget::text(const Tensor& tensor, Importance importance) {
  if (settled_) return entries_[next_++].text;
  entries_.push_back({tensor, importance, false, {}});
  return {};
}

void TensorBudget::settle(std::size_t other_bytes) {
  // At first each tensor gets what the shortest summary takes; writing one in full costs what goes beyond.
  std::size_t spent = other_bytes + entries_.size() * kLeastSummary, full = 0;
  for (Importance importance : {Importance::failed, Importance::shown, Importance::other}) {
    for (Entry& entry : entries_) {
      if (entry.importance != importance || entry.tensor.numel() > kFullElements) continue;
      std::string text = full_json(entry.tensor);
      const std::size_t extra = text.size() - std::min(text.size(), kLeastSummary);
      if (full + text.size() > kFullBytes || (extra > 0 && spent + extra > kFileBytes)) {
        truncated_ = true;
        continue;
      }
      full += text.size();
      spent += extra;
      entry.in_full = true;
      entry.text = std::move(text);
    }
  }
  const auto summarised = static_cast<std::size_t>(
      std::count_if(entries_.begin(), entries_.end(), [](const Entry& entry) { return !entry.in_full; }));
  if (summarised > 0) {
    const std::size_t left = kFileBytes - std::min(kFileBytes, spent);
    const std::size_t bytes = std::min(kSummaryBytes, kLeastSummary + left / summarised);
    for (Entry& entry : entries_) {
      if (!entry.in_full) entry.text = summary_json(entry.tensor, bytes);
    }
  }
  settled_ = true;
}

}  // namespace prenorm::view
