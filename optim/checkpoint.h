// Checkpoints: model, optimiser and random generator in one safetensors file, so that training goes on as if it had
// never stopped, bit for bit.
//
// The model's tensors stand under their own paths, so that the file also loads as a plain model; the optimiser's under
// "optimizer.<parameter path>/<name>"; the generator's state is "generator".
#pragma once

#include <filesystem>

#include "autograd/random.h"
#include "autograd/safetensors.h"
#include "optim/optimizer.h"

namespace prenorm::optim {

struct Checkpoint {
  NamedTensors model;
  NamedTensors optimizer;
  Tensor generator;
  SafetensorsMetadata metadata;  // whatever the program adds: its options, the step
};

// Written atomically, see write_safetensors. `model` is a module's state_dict().
void save_checkpoint(const std::filesystem::path& path, const NamedTensors& model, const Optimizer& optimizer,
                     const Generator& generator, const SafetensorsMetadata& metadata);

// Throws Error on a file that is no checkpoint.
Checkpoint read_checkpoint(const std::filesystem::path& path);

// Copies everything into place. Names, shapes and dtypes must match; on an error nothing has changed.
void restore_checkpoint(const Checkpoint& checkpoint, const NamedTensors& model, Optimizer& optimizer,
                        Generator& generator);

}  // namespace prenorm::optim
