#include "autograd/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "autograd/check.h"

namespace prenorm {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian; bytes are copied as they are");

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr std::uint64_t kMaxHeader = 100'000'000;  // the reference implementation's limit, too
constexpr std::string_view kMetadata = "__metadata__";

struct FormatDType {
  std::string_view name;
  DType dtype;
};
constexpr std::array<FormatDType, 4> kDTypes{{{"F32", float32}, {"F64", float64}, {"I64", int64}, {"BOOL", boolean}}};

std::string_view format_name(DType dtype) {
  return std::find_if(kDTypes.begin(), kDTypes.end(), [&](const FormatDType& d) { return d.dtype == dtype; })->name;
}

// Prints what errno says. An object rather than a call: arguments may be evaluated before the system call beside them.
struct SystemError {};
std::ostream& operator<<(std::ostream& out, SystemError) { return out << std::strerror(errno); }

// A file or folder, closed at the end of its block.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  // False if the system had an error to report that it had kept back until now.
  bool close() { return ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

// --- reading ---------------------------------------------------------------------------------------------------------

class Reader {
 public:
  explicit Reader(const fs::path& path)
      // Without blocking, so that a pipe that nobody writes to is refused below instead of waited for.
      : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    require(file_.is_open(), "cannot open it: ", SystemError{});
    struct stat info {};
    require(::fstat(file_.get(), &info) == 0, "cannot look at it: ", SystemError{});
    require(S_ISREG(info.st_mode), "it is not a regular file");
    size_ = static_cast<std::uint64_t>(info.st_size);
  }

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
    check(ok, "read_safetensors: ", path_, ": ", reason...);
  }
  template <class... Parts>
  void require_of(const std::string& tensor, bool ok, const Parts&... reason) const {
    require(ok, "tensor \"", tensor, "\": ", reason...);
  }

  void read_bytes(void* out, std::uint64_t count, std::uint64_t offset) const {
    auto* bytes = static_cast<char*>(out);
    while (count > 0) {
      const ssize_t got = ::pread(file_.get(), bytes, count, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      require(got >= 0, "cannot read it: ", SystemError{});
      require(got > 0, "it became shorter while it was read");
      bytes += got;
      offset += static_cast<std::uint64_t>(got);
      count -= static_cast<std::uint64_t>(got);
    }
  }

  // Parses the header into header_ and returns its keys in the order of the file.
  std::vector<std::string> read_header() {
    std::uint64_t length = 0;
    require(size_ >= sizeof length, "it ends after ", size_, " bytes, within the length of the header");
    read_bytes(&length, sizeof length, 0);
    require(length <= kMaxHeader, "its header claims ", length, " bytes, more than the ", kMaxHeader, " allowed");
    require(length <= size_ - sizeof length, "its header claims ", length, " bytes, but only ", size_ - sizeof length,
            " follow");
    data_begin_ = sizeof length + length;
    data_size_ = size_ - data_begin_;
    std::string text(length, '\0');
    read_bytes(text.data(), length, sizeof length);
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
      read_bytes(data, entry.end - entry.begin, data_begin_ + entry.begin);
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

  fs::path path_;
  Descriptor file_;
  std::uint64_t size_ = 0, data_begin_ = 0, data_size_ = 0;
  Json header_;
};

// --- writing ---------------------------------------------------------------------------------------------------------

// The bytes of a tensor in row-major order. Bytes rather than values: going through double would alter some NaNs.
class RowMajorBytes {
 public:
  explicit RowMajorBytes(const Tensor& tensor)
      : size_(static_cast<std::size_t>(tensor.numel() * size_of(tensor.dtype()))) {
    const std::int64_t width = size_of(tensor.dtype());
    first_ = static_cast<const char*>(tensor.storage()->data()) + tensor.storage_offset() * width;
    if (tensor.is_contiguous()) return;
    copy_.reserve(size_);
    gather(tensor, 0, first_, width);
    first_ = copy_.data();
  }

  const char* data() const { return first_; }
  std::size_t size() const { return size_; }

 private:
  void gather(const Tensor& tensor, std::int64_t dim, const char* from, std::int64_t width) {
    if (dim == tensor.dims()) {
      copy_.insert(copy_.end(), from, from + width);
      return;
    }
    for (std::int64_t i = 0; i < tensor.shape()[dim]; ++i)
      gather(tensor, dim + 1, from + i * tensor.strides()[dim] * width, width);
  }

  std::size_t size_;
  const char* first_;
  std::vector<char> copy_;
};

class Writer {
 public:
  explicit Writer(const fs::path& path)
      : path_(path), target_(follow_links(path)), folder_(open_folder()), name_(target_.filename().string()) {
    struct stat info {};
    if (::fstatat(folder_.get(), name_.c_str(), &info, 0) == 0) {
      require(S_ISREG(info.st_mode), "there is something else of that name, not a regular file");
      require(::faccessat(folder_.get(), name_.c_str(), W_OK, AT_EACCESS) == 0,
              "it is there and may not be written: ", SystemError{});
      replaced_ = info;
    } else {
      require(errno == ENOENT, "cannot look at it: ", SystemError{});
    }
  }

  ~Writer() {
    if (!temporary_.empty()) ::unlinkat(folder_.get(), temporary_.c_str(), 0);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void write(const NamedTensors& tensors, const SafetensorsMetadata& metadata) {
    const std::vector<const NamedTensor*> order = data_order(tensors);
    const std::string header = make_header(tensors, order, metadata);
    Descriptor file(create_temporary());
    require(file.is_open(), "cannot create a temporary file beside it: ", SystemError{});
    keep_permissions(file);
    const std::uint64_t length = header.size();
    write_bytes(file, &length, sizeof length);
    write_bytes(file, header.data(), header.size());
    for (const NamedTensor* named : order) {
      const RowMajorBytes bytes(named->tensor);
      write_bytes(file, bytes.data(), bytes.size());
    }
    // On the disk before the name leads to it: the other way round, a crash could leave an empty file under the name.
    require(::fsync(file.get()) == 0, "cannot write it to the disk: ", SystemError{});
    require(file.close(), "cannot write it: ", SystemError{});
    require(::renameat(folder_.get(), temporary_.c_str(), folder_.get(), name_.c_str()) == 0,
            "cannot put the new file in its place: ", SystemError{});
    temporary_.clear();
    // Some file systems have no fsync for folders and say so by EINVAL.
    require(::fsync(folder_.get()) == 0 || errno == EINVAL,
            "it is in place, but its folder cannot be written to the disk: ", SystemError{});
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

  // The file that a symbolic link leads to, at the end of a chain, there or not.
  fs::path follow_links(fs::path path) const {
    std::error_code ignored;
    for (int links = 0; fs::is_symlink(path, ignored); ++links) {
      require(links < 40, "its symbolic links go in circles");
      const fs::path next = fs::read_symlink(path, ignored);
      require(!next.empty(), "cannot follow its symbolic link");
      path = path.parent_path() / next;  // an absolute `next` replaces all of it
    }
    return path;
  }

  // Held open, so that all that follows happens in one and the same folder.
  int open_folder() const {
    require(target_.has_filename(), "expected the name of a file");
    const fs::path folder = target_.has_parent_path() ? target_.parent_path() : fs::path(".");
    const int number = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    require(number >= 0, "cannot open the folder ", folder, ": ", SystemError{});
    return number;
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

  // Sets temporary_ and returns the number of the open file, or -1.
  int create_temporary() {
    static std::atomic<std::uint64_t> counter{0};
    // Of someone else's file nobody else shall read the new content before it has that file's permissions.
    const mode_t mode = replaced_ ? S_IRUSR | S_IWUSR : S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;
    for (int attempt = 0; attempt < 100; ++attempt) {
      // Cut, so that a name of the greatest length leaves room for the rest.
      const std::string name =
          "." + name_.substr(0, 200) + "." + std::to_string(::getpid()) + "-" + std::to_string(counter++) + ".tmp";
      const int number = ::openat(folder_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
      if (number >= 0) temporary_ = name;
      if (number >= 0 || errno != EEXIST) return number;
    }
    return -1;
  }

  void keep_permissions(const Descriptor& file) const {
    if (!replaced_) return;
    // Only root can give a file away; anyone else's new file is their own.
    [[maybe_unused]] const int given = ::fchown(file.get(), replaced_->st_uid, replaced_->st_gid);
    require(::fchmod(file.get(), replaced_->st_mode & 0777) == 0, "cannot set its permissions: ", SystemError{});
  }

  void write_bytes(const Descriptor& file, const void* data, std::size_t count) const {
    const auto* bytes = static_cast<const char*>(data);
    while (count > 0) {
      const ssize_t written = ::write(file.get(), bytes, count);
      if (written < 0 && errno == EINTR) continue;
      require(written >= 0, "cannot write it: ", SystemError{});
      bytes += written;
      count -= static_cast<std::size_t>(written);
    }
  }

  fs::path path_, target_;
  Descriptor folder_;
  std::string name_;
  std::optional<struct stat> replaced_;
  std::string temporary_;  // empty: there is none
};

}  // namespace

Tensor SafetensorsFile::find(std::string_view name) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const NamedTensor& named) { return named.path == name; });
  return found == tensors.end() ? Tensor() : found->tensor;
}

SafetensorsFile read_safetensors(const std::filesystem::path& path) { return Reader(path).read(); }

void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const SafetensorsMetadata& metadata) {
  Writer(path).write(tensors, metadata);
}

}  // namespace prenorm
