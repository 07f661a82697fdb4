// Any bytes as a text to learn: it is refused as too short, or its batches are ids of bytes, all of the held-out part
// is predicted once, and what is shown on a terminal is safe.

#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>

#include "autograd/check.h"
#include "memory_file.h"
#include "training/data.h"

namespace {

using namespace prenorm;

void require(bool ok) {
  if (!ok) std::abort();
}

void check_ids(const Tensor& ids) {
  for (const std::int64_t id : ids.to_vector<std::int64_t>()) require(id >= 0 && id < training::Text::kVocab);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static MemoryFile file;
  if (size == 0) return 0;
  const std::int64_t T = data[0] % 16 + 1, B = data[0] / 16 + 1;
  ++data;
  --size;
  const std::string shown = training::printable(std::string_view(reinterpret_cast<const char*>(data), size));
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const char c = shown[i];
    const bool line_end = c == '\r' && i + 1 < shown.size() && shown[i + 1] == '\n';
    require((c < 0 || c >= ' ' || c == '\n' || c == '\t' || line_end) && c != '\x7f');
  }
  require(training::printable(shown) == shown);
  try {
    const std::string path = file.put(data, size);
    const training::Text text(training::read_text(path), path, T);
    require(text.training().size() + text.held_out().size() == size);
    const training::Batch batch = text.batch(B, T);
    check_ids(batch.ids);
    check_ids(batch.targets);
    std::int64_t predicted = 0;
    for (std::int64_t i = 0; i < text.held_out_batches(B, T); ++i) {
      const training::Batch held_out = text.held_out_batch(i, B, T);
      check_ids(held_out.targets);
      predicted += held_out.targets.numel();
    }
    require(predicted == static_cast<std::int64_t>(text.held_out().size()) - 1);
    require(std::isfinite(text.pair_table_loss()));
  } catch (const Error& error) {
    require(std::string_view(error.what()).find("/proc/self/fd/") != std::string_view::npos);
  }
  return 0;
}
