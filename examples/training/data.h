// What next_token learns from: the rule "next = current + 1", or the bytes of a text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/tensor.h"

namespace prenorm::training {

struct Batch {
  Tensor ids;      // int64 [B, T]
  Tensor targets;  // int64 [B, T], the ids one position later
};

// Rows begin … end - 1 of a batch.
Batch rows(const Batch& batch, std::int64_t begin, std::int64_t end);

// Next token = (current token + 1) mod 50, from a random start.
struct Rule {
  static constexpr std::int64_t kVocab = 50;
  static Batch batch(std::int64_t B, std::int64_t T);
  // Ids int64 [B, T] that follow the rule and are always the same: no random number is drawn for them.
  static Tensor fixed_ids(std::int64_t B, std::int64_t T);
};

// The bytes of a text file. Throws Error if it cannot be read.
std::string read_text(const std::string& path);

// A text as bytes. Its last tenth is held out.
class Text {
 public:
  static constexpr std::int64_t kVocab = 256;

  // Throws Error, which names the path, if the held-out part is too short for a sequence of T + 1 bytes.
  Text(std::string bytes, const std::string& path, std::int64_t T);

  // Sequences from random places of the training part.
  Batch batch(std::int64_t B, std::int64_t T) const;
  // The held-out part, cut into sequences that follow on each other: each byte but the first is predicted once. In
  // batches of B sequences of T bytes; what is left over comes as smaller ones.
  std::int64_t held_out_batches(std::int64_t B, std::int64_t T) const;
  Batch held_out_batch(std::int64_t index, std::int64_t B, std::int64_t T) const;

  // The held-out loss, in nats a byte, of p(next | current) = (count of the pair + 1/256) / (count of current + 1), as
  // counted on the training part.
  double pair_table_loss() const;

  std::string_view training() const { return std::string_view(bytes_).substr(0, split_); }
  std::string_view held_out() const { return std::string_view(bytes_).substr(split_); }
  const std::string& fingerprint() const { return fingerprint_; }  // length and checksum, to tell texts apart

 private:
  Batch sequences(const std::vector<std::size_t>& starts, std::int64_t T) const;

  std::string bytes_;
  std::size_t split_ = 0;  // the first byte held out
  std::string fingerprint_;
};

// Bytes as text that is safe to show on a terminal: valid UTF-8, tabs and line ends stay; control characters and all
// else become \xNN.
std::string printable(std::string_view bytes);

}  // namespace prenorm::training
