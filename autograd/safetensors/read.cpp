#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "autograd/input_file.h"
#include "autograd/safetensors.h"
#include "autograd/safetensors/format.h"

namespace prenorm {
namespace {

using namespace safetensors;
using Json = nlohmann::json;
namespace fs = std::filesystem;

class Reader {
 public:
  explicit Reader(const fs::path& path) : file_(path, "read_safetensors") {}

  SafetensorsFile read() {
    const std::vector<std::string> names = read_header();
    SafetensorsFile file;
    std::vector<Entry> entries;
    for (const std::string& name : names) {
      if (name == kMetadata) {
        file.metadata = parse_metadata();
      } else {
        entries.push_back(parse_entry(name));
      }
    }
    check_layout(entries);
    // Only here is memory taken for tensors: the entries have been found to fill the file exactly.
    for (Entry& entry : entries) {
      Tensor tensor = read_tensor(entry);
      file.tensors.push_back({std::move(entry.name), std::move(tensor)});
    }
    return file;
  }

 private:
  struct Entry {
    std::string name;
    DType dtype;
    Shape shape;
    std::uint64_t begin, end;  // in the data
  };

  template <class... Parts>
  void require(bool ok, const Parts&... reason) const {
    file_.require(ok, reason...);
  }
  template <class... Parts>
  void require_of(const std::string& tensor, bool ok, const Parts&... reason) const {
    require(ok, "tensor \"", tensor, "\": ", reason...);
  }

  // Parses the header into header_ and returns its keys in the order of the file.
  std::vector<std::string> read_header() {
    const std::uint64_t size = file_.size();
    std::uint64_t length = 0;
    require(size >= sizeof length, "it ends after ", size, " bytes, within the length of the header");
    file_.read(&length, sizeof length, 0);
    require(length <= kMaxHeader, "its header claims ", length, " bytes, more than the ", kMaxHeader, " allowed");
    require(length <= size - sizeof length, "its header claims ", length, " bytes, but only ", size - sizeof length,
            " follow");
    data_begin_ = sizeof length + length;
    data_size_ = size - data_begin_;
    std::string text(length, '\0');
    file_.read(text.data(), length, sizeof length);
    require(text.starts_with('{'), "its header does not begin with '{'");
    // The parser would take one for the end of the text and ignore what follows.
    require(text.find('\0') == std::string::npos, "its header holds a zero byte");

    std::vector<std::string> names;
    std::vector<std::set<std::string>> keys;  // of each object that is open
    const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
      if (event == Json::parse_event_t::object_start) keys.emplace_back();
      if (event == Json::parse_event_t::object_end) keys.pop_back();
      if (event == Json::parse_event_t::key) {
        const auto& key = value.get_ref<const std::string&>();
        require(keys.back().insert(key).second, "its header has the key \"", key, "\" twice");
        if (keys.size() == 1) names.push_back(key);
      }
      require(depth <= 3, "its header is nested deeper than the format");
      return true;
    };
    try {
      header_ = Json::parse(text, watch);
    } catch (const Json::exception& error) {  // also for strings that are not UTF-8
      require(false, "its header is not valid JSON: ", error.what());
    }
    return names;
  }

  SafetensorsMetadata parse_metadata() const {
    const Json& metadata = header_.at(std::string(kMetadata));
    require(metadata.is_object(), "its ", kMetadata, " is not an object");
    SafetensorsMetadata out;
    for (const auto& [key, value] : metadata.items()) {
      require(value.is_string(), "its metadata \"", key, "\" is not a string");
      out.emplace(key, value.get_ref<const std::string&>());
    }
    return out;
  }

  Entry parse_entry(const std::string& name) const {
    const Json& fields = header_.at(name);
    require_of(name, fields.is_object(), "its entry is not an object");
    for (const auto& field : fields.items()) {
      require_of(name, field.key() == "dtype" || field.key() == "shape" || field.key() == "data_offsets",
                 "its entry has the unknown field \"", field.key(), '"');
    }
    for (const char* field : {"dtype", "shape", "data_offsets"}) {
      require_of(name, fields.contains(field), "its entry lacks \"", field, '"');
    }
    Entry entry{.name = name, .dtype = parse_dtype(name, fields["dtype"]), .shape = {}, .begin = 0, .end = 0};

    const Json& shape = fields["shape"];
    require_of(name, shape.is_array(), "its shape is not an array");
    require_of(name, shape.size() <= Shape::kMaxDims, "it has ", shape.size(), " dimensions, at most ", Shape::kMaxDims,
               " are supported");
    for (const Json& size : shape) {
      entry.shape.push_back(static_cast<std::int64_t>(
          parse_unsigned(name, "a size of its shape", size, std::numeric_limits<std::int64_t>::max())));
    }

    const Json& offsets = fields["data_offsets"];
    require_of(name, offsets.is_array() && offsets.size() == 2, "its data_offsets are not an array of two");
    constexpr std::uint64_t any = std::numeric_limits<std::uint64_t>::max();
    entry.begin = parse_unsigned(name, "its first offset", offsets[0], any);
    entry.end = parse_unsigned(name, "its second offset", offsets[1], any);
    require_of(name, entry.begin <= entry.end, "its data_offsets [", entry.begin, ", ", entry.end, "] are inverted");
    require_of(name, entry.end <= data_size_, "its data_offsets [", entry.begin, ", ", entry.end,
               "] lead beyond the end of the data, which has ", data_size_, " bytes");
    check_span(entry);
    return entry;
  }

  DType parse_dtype(const std::string& name, const Json& field) const {
    require_of(name, field.is_string(), "its dtype is not a string");
    const auto& dtype = field.get_ref<const std::string&>();
    const auto known =
        std::find_if(kDTypes.begin(), kDTypes.end(), [&](const FormatDType& d) { return d.name == dtype; });
    require_of(name, known != kDTypes.end(), "its dtype is ", dtype, "; F32, F64, I64 and BOOL are supported");
    return known->dtype;
  }

  // Numbers beyond 64 bits, with a fraction or an exponent are of another type for the parser, and refused.
  std::uint64_t parse_unsigned(const std::string& name, std::string_view what, const Json& field,
                               std::uint64_t limit) const {
    require_of(name, field.is_number_unsigned() && field.get<std::uint64_t>() <= limit, what,
               " is not a whole number from 0 to ", limit);
    return field.get<std::uint64_t>();
  }

  void check_span(const Entry& entry) const {
    // Sizes of 0 are left out at first: an overflow is one although 0 elements remain, since strides are products, too.
    std::int64_t bytes = size_of(entry.dtype);
    bool overflows = false;
    for (std::int64_t size : entry.shape)
      overflows |= __builtin_mul_overflow(bytes, std::max<std::int64_t>(size, 1), &bytes);
    require_of(entry.name, !overflows, "its shape ", entry.shape, " has more bytes than int64 can count");
    if (std::find(entry.shape.begin(), entry.shape.end(), 0) != entry.shape.end()) bytes = 0;
    require_of(entry.name, entry.end - entry.begin == static_cast<std::uint64_t>(bytes), "its data_offsets [",
               entry.begin, ", ", entry.end, "] span ", entry.end - entry.begin, " bytes, but ",
               format_name(entry.dtype), ' ', entry.shape, " takes ", bytes);
  }

  // Every byte of the data belongs to exactly one tensor.
  void check_layout(const std::vector<Entry>& entries) const {
    std::vector<const Entry*> by_place;
    by_place.reserve(entries.size());
    for (const Entry& entry : entries) by_place.push_back(&entry);
    std::sort(by_place.begin(), by_place.end(),
              [](const Entry* a, const Entry* b) { return std::pair(a->begin, a->end) < std::pair(b->begin, b->end); });
    std::uint64_t covered = 0;
    for (const Entry* entry : by_place) {
      require_of(entry->name, entry->begin >= covered, "its data begins at ", entry->begin,
                 " and overlaps that of another tensor, which ends at ", covered);
      require_of(entry->name, entry->begin == covered, "its data begins at ", entry->begin, ", after a gap from ",
                 covered);
      covered = entry->end;
    }
    require(covered == data_size_, "its tensors take ", covered, " bytes, but the file holds ", data_size_,
            " bytes of data");
  }

  Tensor read_tensor(const Entry& entry) const {
    Tensor tensor = Tensor::empty(entry.shape, entry.dtype);
    dispatch(entry.dtype, [&](auto t) {
      using T = decltype(t);
      T* data = tensor.mutable_data<T>();
      file_.read(data, entry.end - entry.begin, data_begin_ + entry.begin);
      if constexpr (std::is_same_v<T, bool>) {
        // Looked at as bytes: a bool with another value in it must not be read at all.
        const auto* bytes = reinterpret_cast<const unsigned char*>(data);
        const auto* bad = std::find_if(bytes, bytes + tensor.numel(), [](unsigned char byte) { return byte > 1; });
        require_of(entry.name, bad == bytes + tensor.numel(), "element ", bad - bytes,
                   " of its BOOL data is neither 0 nor 1");
      }
    });
    return tensor;
  }

  InputFile file_;
  std::uint64_t data_begin_ = 0, data_size_ = 0;
  Json header_;
};

}  // namespace

Tensor SafetensorsFile::find(std::string_view name) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const NamedTensor& named) { return named.path == name; });
  return found == tensors.end() ? Tensor() : found->tensor;
}

SafetensorsFile read_safetensors(const std::filesystem::path& path) { return Reader(path).read(); }

}  // namespace prenorm
