#include "training/generate.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"

namespace prenorm::training {

std::int64_t next_token(const nn::TinyLM& model, const std::vector<std::int64_t>& tokens, std::int64_t length,
                        double temperature) {
  const NoGrad no_grad;
  const auto T = std::min(static_cast<std::int64_t>(tokens.size()), length);
  const std::vector<std::int64_t> window(tokens.end() - T, tokens.end());
  const Tensor logits = select(select(model(Tensor::of(window, {1, T}, {.dtype = int64})), 1, T - 1), 0, 0);
  const Tensor next = temperature < 1e-3 ? argmax(logits) : multinomial(softmax(logits / temperature));
  return next.item<std::int64_t>();
}

}  // namespace prenorm::training
