// The workloads that speed is measured on, float32 throughout. torch_peer.py has the same in PyTorch: same shapes, same
// work, and from seed 0 the same weights and batches.
//
//   tiny            TinyLM, vocab 50, d 64, 4 heads, 12 blocks, B 32, T 32; batch, forward, loss, backward, gradient
//                   norm, Adam
//   char            TinyLM, vocab 97, d 128, 4 heads, 4 blocks, B 4, T 64; the same step
//   encoder         the Annotated Transformer's encoder, 6 layers, d 512, 8 heads, d_ff 2048, B 8, T 32, no dropout;
//                   forward and backward from random cotangents
//   gpt2            the 124M shape of GPT-2: vocab 50257, d 768, 12 heads, 12 blocks, tied head, B 4, T 64; forward,
//                   loss, backward, AdamW
//   layer_norm_std, layer_norm, rms_norm
//                   x [32, 100, 768], forward and backward
//
// A language model's name may be followed by other sizes: tiny:24x64x32 has 24 blocks, B 64, T 32.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autograd/tensor.h"

namespace prenorm::bench {

// The work of a step shared by several processes, each on its own rows of the batch.
struct Sharing {
  int rank = 0, size = 1;
  std::function<void(const NamedTensors&)> begin;  // before the first step, with the parameters
  std::function<void()> finish;                    // in each, between backward and what uses the gradients
};

// Sets the seed, builds the model, and returns one step; a step returns its loss where it has one. Only language models
// can be shared.
using Step = std::function<std::optional<double>()>;
Step make_step(const std::string& workload, const Sharing& sharing = {});

}  // namespace prenorm::bench
