#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "autograd/atomic_file.h"
#include "autograd/check.h"
#include "autograd/row_major.h"
#include "autograd/safetensors.h"
#include "autograd/safetensors/format.h"

namespace prenorm {
namespace {

using namespace safetensors;
using Json = nlohmann::json;
namespace fs = std::filesystem;

class Writer {
 public:
  explicit Writer(const fs::path& path) : path_(path) {}

  void write(const NamedTensors& tensors, const SafetensorsMetadata& metadata) const {
    const std::vector<const NamedTensor*> order = data_order(tensors);
    const std::string header = make_header(tensors, order, metadata);
    AtomicFile file(path_, "write_safetensors");
    const std::uint64_t length = header.size();
    file.write(&length, sizeof length);
    file.write(header);
    for (const NamedTensor* named : order) {
      const RowMajorBytes bytes(named->tensor);
      file.write(bytes.data(), bytes.size());
    }
    file.commit();
  }

 private:
  template <class... Parts>
  void require(bool ok, const Parts&... reason) const {
    check(ok, "write_safetensors: ", path_, ": ", reason...);
  }
  template <class... Parts>
  void require_of(const std::string& tensor, bool ok, const Parts&... reason) const {
    require(ok, "tensor \"", tensor, "\": ", reason...);
  }

  // Wide elements first, so that every tensor's data is aligned for its dtype: the header's length is a multiple of 8.
  std::vector<const NamedTensor*> data_order(const NamedTensors& tensors) const {
    std::vector<const NamedTensor*> order;
    for (const NamedTensor& named : tensors) {
      require_of(named.path, named.tensor.defined(), "it is undefined");
      order.push_back(&named);
    }
    std::stable_sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
      return size_of(a->tensor.dtype()) > size_of(b->tensor.dtype());
    });
    return order;
  }

  std::string make_header(const NamedTensors& tensors, const std::vector<const NamedTensor*>& order,
                          const SafetensorsMetadata& metadata) const {
    std::map<std::string_view, std::pair<std::uint64_t, std::uint64_t>> offsets;
    std::uint64_t end = 0;
    for (const NamedTensor* named : order) {
      require_of(named->path, named->path != kMetadata, "the format keeps this name for itself");
      const std::uint64_t begin = end;
      end += static_cast<std::uint64_t>(named->tensor.numel() * size_of(named->tensor.dtype()));
      require_of(named->path, offsets.try_emplace(named->path, begin, end).second, "there are two of this name");
    }
    std::string header = "{";
    if (!metadata.empty()) header += to_text(std::string(kMetadata)) + ':' + to_text(metadata);
    for (const NamedTensor& named : tensors) {
      const Shape& shape = named.tensor.shape();
      const Json entry = {{"dtype", format_name(named.tensor.dtype())},
                          {"shape", std::vector<std::int64_t>(shape.begin(), shape.end())},
                          {"data_offsets", offsets.at(named.path)}};
      if (header.size() > 1) header += ',';
      header += to_text(named.path) + ':' + entry.dump();
    }
    header += '}';
    header.resize((header.size() + 7) / 8 * 8, ' ');
    require(header.size() <= kMaxHeader, "names and metadata take ", header.size(), " bytes, more than the ",
            kMaxHeader, " allowed");
    return header;
  }

  std::string to_text(const Json& value) const {
    try {
      return value.dump();
    } catch (const Json::exception& error) {
      fail("write_safetensors: ", path_, ": a name or a text of its metadata is not UTF-8: ", error.what());
    }
  }

  const fs::path& path_;
};

}  // namespace

void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const SafetensorsMetadata& metadata) {
  Writer(path).write(tensors, metadata);
}

}  // namespace prenorm
