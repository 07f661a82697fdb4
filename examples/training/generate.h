// Tokens that a trained model goes on with.
#pragma once

#include <cstdint>
#include <vector>

#include "nn/tiny_lm.h"

namespace prenorm::training {

// `count` tokens after `prompt` (not empty), one at a time, each from the last `length` tokens before it. Temperature 0
// takes the likeliest, ties to the first; else they are drawn from softmax(logits / temperature).
std::vector<std::int64_t> generate(const nn::TinyLM& model, std::vector<std::int64_t> prompt, std::int64_t count,
                                   std::int64_t length, double temperature);

}  // namespace prenorm::training
