#include "training/data.h"

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "autograd/ops.h"

namespace prenorm::training {

Batch Rule::batch(std::int64_t B, std::int64_t T) {
  const Tensor start = randint(0, kVocab, {B, 1});
  const Tensor sequence = mod(start + arange(static_cast<double>(T + 1)), kVocab);
  return {slice(sequence, 1, 0, T), slice(sequence, 1, 1, T + 1)};
}

Text::Text(const std::string& path, std::int64_t T) {
  std::ifstream file(path, std::ios::binary);
  check(file.good(), path, ": cannot be read: ", std::strerror(errno));
  std::ostringstream contents;
  contents << file.rdbuf();
  check(!file.bad(), path, ": cannot be read as a file");
  bytes_ = contents.str();
  check(!bytes_.empty(), path, ": the text is empty");
  const auto size = static_cast<std::int64_t>(bytes_.size());
  split_ = size - size / 10;
  check(size - split_ > T, path, ": a text of ", size, " bytes is too short: a tenth of it is held out, and must hold ",
        T + 1, " bytes for a length of ", T);
}

Batch Text::windows(const std::vector<std::int64_t>& starts, std::int64_t T) const {
  const auto B = static_cast<std::int64_t>(starts.size());
  const Batch batch{Tensor::empty({B, T}, int64), Tensor::empty({B, T}, int64)};
  auto *ids = batch.ids.mutable_data<std::int64_t>(), *targets = batch.targets.mutable_data<std::int64_t>();
  for (std::int64_t b = 0; b < B; ++b) {
    for (std::int64_t t = 0; t < T; ++t) {
      const auto at = static_cast<std::size_t>(starts[static_cast<std::size_t>(b)] + t);
      ids[b * T + t] = static_cast<unsigned char>(bytes_[at]);
      targets[b * T + t] = static_cast<unsigned char>(bytes_[at + 1]);
    }
  }
  return batch;
}

Batch Text::batch(std::int64_t B, std::int64_t T) const {
  return windows(randint(0, split_ - T, {B}).to_vector<std::int64_t>(), T);
}

std::vector<Batch> Text::held_out(std::int64_t B, std::int64_t T) const {
  std::vector<Batch> batches;
  std::vector<std::int64_t> starts;
  const auto size = static_cast<std::int64_t>(bytes_.size());
  for (std::int64_t start = split_; start + T + 1 <= size; start += T) {
    starts.push_back(start);
    if (static_cast<std::int64_t>(starts.size()) == B) {
      batches.push_back(windows(starts, T));
      starts.clear();
    }
  }
  if (!starts.empty()) batches.push_back(windows(starts, T));
  return batches;
}

double Text::pair_table_loss() const {
  std::vector<std::array<double, kVocab>> counts(kVocab);
  for (auto& row : counts) row.fill(1.0 / kVocab);
  const auto byte = [this](std::int64_t i) { return static_cast<unsigned char>(bytes_[static_cast<std::size_t>(i)]); };
  for (std::int64_t i = 0; i + 1 < split_; ++i) ++counts[byte(i)][byte(i + 1)];
  std::array<double, kVocab> totals{};
  for (std::size_t a = 0; a < kVocab; ++a) {
    for (double count : counts[a]) totals[a] += count;
  }
  double loss = 0;
  const auto size = static_cast<std::int64_t>(bytes_.size());
  for (std::int64_t i = split_; i + 1 < size; ++i) loss -= std::log(counts[byte(i)][byte(i + 1)] / totals[byte(i)]);
  return loss / static_cast<double>(size - split_ - 1);
}

std::string Text::fingerprint() const {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a, 64 bits
  for (unsigned char c : bytes_) hash = (hash ^ c) * 1099511628211U;
  char text[64];
  std::snprintf(text, sizeof text, "%zu bytes, fnv1a %016llx", bytes_.size(), static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace prenorm::training
