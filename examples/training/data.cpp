#include "training/data.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "autograd/ops.h"

namespace prenorm::training {
namespace {

std::size_t index(char byte) { return static_cast<unsigned char>(byte); }

// The length of the UTF-8 character at the start of `bytes`, 0 if there is no valid one (Unicode 15, table 3-7).
std::size_t utf8_length(std::string_view bytes) {
  const std::size_t lead = index(bytes[0]);
  if (lead < 0x80) return 1;
  const std::size_t length = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (length == 0 || bytes.size() < length) return 0;
  const bool follows = std::all_of(bytes.begin() + 1, bytes.begin() + static_cast<std::ptrdiff_t>(length),
                                   [](char byte) { return (index(byte) & 0xC0) == 0x80; });
  const std::size_t second = index(bytes[1]);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool beyond = (lead == 0xED && second > 0x9F) || (lead == 0xF4 && second > 0x8F);  // surrogates, or too large
  return follows && !overlong && !beyond ? length : 0;
}

bool is_control(std::string_view character) {
  const std::size_t lead = index(character[0]);
  if (character.size() == 1) return lead == 0x7F || (lead < 0x20 && lead != '\n' && lead != '\t');
  return lead == 0xC2 && index(character[1]) < 0xA0;  // U+0080 … U+009F: some terminals obey them
}

}  // namespace

Batch rows(const Batch& batch, std::int64_t begin, std::int64_t end) {
  return {slice(batch.ids, 0, begin, end), slice(batch.targets, 0, begin, end)};
}

Tensor Rule::fixed_ids(std::int64_t B, std::int64_t T) {
  std::vector<std::int64_t> ids;
  for (std::int64_t b = 0; b < B; ++b) {
    for (std::int64_t t = 0; t < T; ++t) ids.push_back((7 * b + t) % kVocab);
  }
  return Tensor::of(ids, {B, T}, {.dtype = int64});
}

Batch Rule::batch(std::int64_t B, std::int64_t T) {
  const Tensor start = randint(0, kVocab, {B, 1});
  const Tensor sequence = mod(start + arange(static_cast<double>(T + 1)), kVocab);
  return {slice(sequence, 1, 0, T), slice(sequence, 1, 1, T + 1)};
}

std::string read_text(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  check(fs::exists(status), path, ": cannot be read: ", error ? error.message() : "it is not there");
  check(status.type() != fs::file_type::directory, path, ": is a folder, expected a text file");
  // Devices may never end. A pipe does.
  check(status.type() == fs::file_type::regular || status.type() == fs::file_type::fifo, path,
        ": is not a file, expected a text file");
  std::ifstream file(path, std::ios::binary);
  check(file.is_open(), path, ": cannot be read: ", std::strerror(errno));
  std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  check(!file.bad(), path, ": cannot be read");
  return bytes;
}

Text::Text(std::string bytes, const std::string& path, std::int64_t T) : bytes_(std::move(bytes)) {
  const std::size_t size = bytes_.size(), needed = static_cast<std::size_t>(T) + 1;
  check(size > 0, path, ": the text is empty");
  split_ = size - size / 10;
  check(size - split_ >= needed, path, ": a text of ", size,
        " bytes is too short: its last tenth is held out and must ", "have ", needed, " bytes for a --length of ", T);

  std::uint64_t hash = 14695981039346656037U;  // FNV-1a, 64 bits
  for (char c : bytes_) hash = (hash ^ index(c)) * 1099511628211U;
  char text[64];
  std::snprintf(text, sizeof text, "%zu bytes, fnv1a %016llx", size, static_cast<unsigned long long>(hash));
  fingerprint_ = text;
}

Batch Text::sequences(const std::vector<std::size_t>& starts, std::int64_t T) const {
  const auto B = static_cast<std::int64_t>(starts.size());
  const Batch batch{Tensor::empty({B, T}, int64), Tensor::empty({B, T}, int64)};
  auto *ids = batch.ids.mutable_data<std::int64_t>(), *targets = batch.targets.mutable_data<std::int64_t>();
  for (std::size_t start : starts) {
    for (std::size_t i = start; i < start + static_cast<std::size_t>(T); ++i) {
      *ids++ = static_cast<std::int64_t>(index(bytes_[i]));
      *targets++ = static_cast<std::int64_t>(index(bytes_[i + 1]));
    }
  }
  return batch;
}

Batch Text::batch(std::int64_t B, std::int64_t T) const {
  const Tensor starts = randint(0, static_cast<std::int64_t>(split_) - T, {B});
  const std::vector<std::int64_t> values = starts.to_vector<std::int64_t>();
  return sequences({values.begin(), values.end()}, T);
}

// With R bytes to predict there are R / T whole sequences, and one of R % T bytes.
std::int64_t Text::held_out_batches(std::int64_t B, std::int64_t T) const {
  const auto R = static_cast<std::int64_t>(held_out().size()) - 1;
  const std::int64_t whole = R / T;
  return (whole + B - 1) / B + (R % T > 0 ? 1 : 0);
}

Batch Text::held_out_batch(std::int64_t index, std::int64_t B, std::int64_t T) const {
  const auto R = static_cast<std::int64_t>(held_out().size()) - 1;
  const std::int64_t whole = R / T, first = std::min(index * B, whole), last = std::min(first + B, whole);
  const auto start = [&](std::int64_t sequence) { return split_ + static_cast<std::size_t>(sequence * T); };
  if (first == whole) return sequences({start(whole)}, R % T);
  std::vector<std::size_t> starts;
  for (std::int64_t sequence = first; sequence < last; ++sequence) starts.push_back(start(sequence));
  return sequences(starts, T);
}

double Text::pair_table_loss() const {
  constexpr auto n = static_cast<std::size_t>(kVocab);
  std::vector<std::array<double, n>> counts(n);
  for (auto& row : counts) row.fill(1.0 / kVocab);
  std::vector<double> totals(n, 1.0);
  for (std::size_t i = 0; i + 1 < split_; ++i) {
    ++counts[index(bytes_[i])][index(bytes_[i + 1])];
    ++totals[index(bytes_[i])];
  }
  double loss = 0;
  for (std::size_t i = split_; i + 1 < bytes_.size(); ++i) {
    loss -= std::log(counts[index(bytes_[i])][index(bytes_[i + 1])] / totals[index(bytes_[i])]);
  }
  return loss / static_cast<double>(bytes_.size() - split_ - 1);
}

std::string printable(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const std::size_t length = utf8_length(bytes);
    const std::string_view character = bytes.substr(0, std::max<std::size_t>(1, length));
    const bool line_end = bytes.starts_with("\r\n");
    if (line_end || (length > 0 && !is_control(character))) {
      out += character;
    } else {
      for (char byte : character) {
        char escape[8];
        std::snprintf(escape, sizeof escape, "\\x%02zx", index(byte));
        out += escape;
      }
    }
    bytes.remove_prefix(character.size());
  }
  return out;
}

}  // namespace prenorm::training
