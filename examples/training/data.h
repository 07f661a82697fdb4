// What next_token learns from: the rule "next = current + 1", or the bytes of a text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "autograd/tensor.h"

namespace prenorm::training {

struct Batch {
  Tensor ids;      // int64 [B, T]
  Tensor targets;  // int64 [B, T], the ids one position later
};

// Next token = (current token + 1) mod 50, from a random start.
struct Rule {
  static constexpr std::int64_t kVocab = 50;
  static Batch batch(std::int64_t B, std::int64_t T);
};

// A text file as bytes. Its last tenth is held out.
class Text {
 public:
  static constexpr std::int64_t kVocab = 256;

  // Throws Error if the file cannot be read, or either part is too short for a sequence of T + 1 bytes.
  Text(const std::string& path, std::int64_t T);

  // Sequences from random places of the training part.
  Batch batch(std::int64_t B, std::int64_t T) const;
  // Back-to-back windows of the held-out part, at most B a batch, each position but the first predicted once.
  std::vector<Batch> held_out(std::int64_t B, std::int64_t T) const;

  // The held-out loss, in nats a byte, of p(next | current) as counted on the training part (add 1/256 smoothing).
  double pair_table_loss() const;

  std::int64_t training_bytes() const { return split_; }
  std::int64_t held_out_bytes() const { return static_cast<std::int64_t>(bytes_.size()) - split_; }
  std::string fingerprint() const;  // length and checksum, to tell one text from another

 private:
  Batch windows(const std::vector<std::int64_t>& starts, std::int64_t T) const;

  std::string bytes_;
  std::int64_t split_ = 0;  // the first byte held out
};

}  // namespace prenorm::training
