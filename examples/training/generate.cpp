#include "training/generate.h"

#include <algorithm>

namespace prenorm::training {

std::vector<std::int64_t> generate(const nn::TinyLM& model, std::vector<std::int64_t> prompt, std::int64_t count,
                                   std::int64_t length, double temperature) {
  const NoGrad no_grad;
  std::vector<std::int64_t> tokens = std::move(prompt);
  const std::size_t given = tokens.size();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::size_t seen = std::min(tokens.size(), static_cast<std::size_t>(length));
    const std::vector<std::int64_t> window(tokens.end() - static_cast<std::ptrdiff_t>(seen), tokens.end());
    const auto T = static_cast<std::int64_t>(seen);
    const Tensor logits = select(select(model(Tensor::of(window, {1, T}, {.dtype = int64})), 1, T - 1), 0, 0);
    const Tensor next = temperature == 0 ? argmax(logits) : multinomial(softmax(logits / temperature));
    tokens.push_back(next.item<std::int64_t>());
  }
  return {tokens.begin() + static_cast<std::ptrdiff_t>(given), tokens.end()};
}

}  // namespace prenorm::training
