// The token that a trained model goes on with.
#pragma once

#include <cstdint>
#include <vector>

#include "nn/tiny_lm.h"

namespace prenorm::training {

// The token after `tokens` (not empty), judged from the last `length` of them: later positions were never trained.
// Temperature 0, and any below 0.001, takes the likeliest, ties to the first; else it is drawn from
// softmax(logits / temperature).
std::int64_t next_token(const nn::TinyLM& model, const std::vector<std::int64_t>& tokens, std::int64_t length,
                        double temperature);

}  // namespace prenorm::training
