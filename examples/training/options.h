// The command line of next_token, and what of it a checkpoint keeps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "nn/tiny_lm.h"
#include "optim/checkpoint.h"

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
  std::string text;  // path; empty: the rule. A resumed run may find the same text under another path
  std::int64_t steps = 300;
  std::int64_t batch = 32;
  double lr = 3e-4;
  std::int64_t warmup = 0;
  double clip = 0;  // 0: none
  std::uint64_t seed = 0;
  int threads = 0;  // 0: all processors. Kept because the last bits of sums may depend on it

  // This run only.
  std::string checkpoint = "next_token.safetensors";
  std::int64_t checkpoint_every = 100;
  bool save = true;
  std::string resume;
  std::string log;
  std::string report;
  bool nan_check = false;
  std::string prompt;
  double temperature = 0.8;

  nn::TinyLMOptions model() const;
  std::int64_t vocab() const;
};

// What main() is to do after the command line was read: print help, or run with the options.
struct Parsed {
  std::optional<std::string> help;
  Options options;
  std::optional<optim::Checkpoint> resumed;  // what to go on from
};

// Reads the command line and, with --resume, the checkpoint. Throws Error on everything that can be seen to be wrong
// before the work begins.
Parsed parse(int argc, const char* const* argv);

// The options that a checkpoint keeps, as text.
SafetensorsMetadata to_metadata(const Options& options);

// All options as bytes, and back: for the ranks that do not read the command line themselves.
std::string to_bytes(const Options& options);
Options from_bytes(const std::string& bytes);

}  // namespace prenorm::training
