// The command line of next_token, and what of it a checkpoint keeps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "autograd/safetensors.h"
#include "nn/tiny_lm.h"

namespace prenorm::training {

struct Options {
  // The model: kept in a checkpoint; a resumed run must agree.
  std::int64_t depth = 8;
  std::int64_t d_model = 64;
  std::int64_t heads = 4;
  std::int64_t length = 32;
  nn::Norm norm = nn::Norm::standard;
  nn::Order order = nn::Order::pre;
  bool residual = true;

  // The training: kept too; a resumed run may change it.
  std::string text;  // path; empty: the rule
  std::int64_t batch = 32;
  double lr = 3e-4;
  std::int64_t warmup = 0;
  double clip = 0;  // 0: none
  std::uint64_t seed = 0;

  // This run only.
  std::int64_t steps = 300;
  int threads = 0;  // 0: all processors
  std::string checkpoint = "next_token.safetensors";
  bool save = true;
  std::int64_t checkpoint_every = 100;
  std::string resume;
  std::string log;
  std::string prompt;
  double temperature = 0.8;

  nn::TinyLMOptions model() const;
  std::int64_t vocab() const;
};

// What main() is to do after the command line was read: run with the options, or exit with a code.
struct Parsed {
  Options options;
  std::optional<int> exit_code;
  std::optional<SafetensorsMetadata> resumed;  // metadata of the checkpoint to go on from
};

// Reads the command line and, with --resume, the options kept in that checkpoint; prints help and complaints.
Parsed parse(int argc, char** argv);

// The options that a checkpoint keeps, as text.
SafetensorsMetadata to_metadata(const Options& options);

}  // namespace prenorm::training
