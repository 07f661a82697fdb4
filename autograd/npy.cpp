#include "autograd/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/atomic_file.h"
#include "autograd/input_file.h"
#include "autograd/row_major.h"

namespace prenorm {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "little-endian bytes are copied as they are");

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::uint64_t kMaxHeader = 1'000'000;  // eight sizes take a few hundred bytes
constexpr std::size_t kAlignment = 64;           // of the data, in the file

struct FormatDType {
  std::string_view name;  // without the byte order
  DType dtype;
};
constexpr std::array<FormatDType, 4> kDTypes{{{"f4", float32}, {"f8", float64}, {"i8", int64}, {"b1", boolean}}};

// The header: a Python dictionary with three keys, and nothing that calls for more of Python.
class HeaderParser {
 public:
  HeaderParser(const InputFile& file, std::string_view text) : file_(file), text_(text) {}

  void parse() {
    expect('{');
    while (!take('}')) {
      const std::string_view key = parse_string("a key");
      expect(':');
      if (key == "descr") {
        once(key, has_descr_);
        skip_spaces();
        file_.require(!text_.starts_with('['), "it holds records of several fields; save its fields one by one");
        parse_dtype(parse_string("descr"));
      } else if (key == "fortran_order") {
        once(key, has_order_);
        fortran_order = parse_bool();
      } else if (key == "shape") {
        once(key, has_shape_);
        parse_shape();
      } else {
        file_.require(false, "its header has the unknown key '", key, "'");
      }
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    file_.require(text_.empty(), "its header goes on after the '}'");
    file_.require(has_descr_, "its header lacks 'descr'");
    file_.require(has_order_, "its header lacks 'fortran_order'");
    file_.require(has_shape_, "its header lacks 'shape'");
  }

  DType dtype = float32;
  bool swapped = false;  // big-endian
  bool fortran_order = false;
  Shape shape;

 private:
  void once(std::string_view key, bool& seen) const {
    file_.require(!seen, "its header has the key '", key, "' twice");
    seen = true;
  }
  void skip_spaces() { text_.remove_prefix(std::min(text_.find_first_not_of(" \t\r\n\f\v"), text_.size())); }
  bool take(char c) {
    skip_spaces();
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    file_.require(take(c), "its header is not a dictionary as NumPy writes it: expected '", c, "' at \"",
                  text_.substr(0, 20), '"');
  }

  std::string_view parse_string(std::string_view what) {
    skip_spaces();
    const char quote = text_.empty() ? '\0' : text_[0];
    const std::size_t end = quote == '\'' || quote == '"' ? text_.find(quote, 1) : std::string_view::npos;
    file_.require(end != std::string_view::npos, "its header is not a dictionary as NumPy writes it: ", what,
                  " is not a string at \"", text_.substr(0, 20), '"');
    const std::string_view value = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return value;
  }

  bool parse_bool() {
    skip_spaces();
    for (const std::string_view word : {"True", "False"}) {
      if (!text_.starts_with(word)) continue;
      text_.remove_prefix(word.size());
      return word == "True";
    }
    file_.require(false, "its fortran_order is neither True nor False");
    return false;
  }

  void parse_dtype(std::string_view descr) {
    const bool has_order = !descr.empty() && std::string_view("<>=|").find(descr[0]) != std::string_view::npos;
    const char order = has_order ? descr[0] : '|';
    const std::string_view kind = descr.substr(has_order ? 1 : 0);
    const auto known =
        std::find_if(kDTypes.begin(), kDTypes.end(), [&](const FormatDType& d) { return d.name == kind; });
    file_.require(known != kDTypes.end(), "its dtype is '", descr,
                  "'; float32, float64, int64 and bool are supported: convert it with array.astype(…)");
    dtype = known->dtype;
    file_.require(size_of(dtype) == 1 || order != '|', "its dtype '", descr, "' does not say the byte order");
    swapped = order == '>' && size_of(dtype) > 1;
  }

  void parse_shape() {
    expect('(');
    while (!take(')')) {
      skip_spaces();
      std::uint64_t size = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), size);
      file_.require(error == std::errc() && size <= std::numeric_limits<std::int64_t>::max(),
                    "a size of its shape is not a whole number that int64 can hold, at \"", text_.substr(0, 24), '"');
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      if (text_.starts_with('L')) text_.remove_prefix(1);  // as Python 2 wrote them
      file_.require(shape.dims() < Shape::kMaxDims, "it has more than the ", Shape::kMaxDims,
                    " dimensions that are supported");
      shape.push_back(static_cast<std::int64_t>(size));
      if (take(',')) continue;
      file_.require(shape.dims() > 1, "its shape is not a tuple: one of one size has a comma, (5,)");
      expect(')');
      break;
    }
  }

  const InputFile& file_;
  std::string_view text_;
  bool has_descr_ = false, has_order_ = false, has_shape_ = false;
};

// The text of the header; moves `offset` from the start of the file to that of the data.
std::string read_header(const InputFile& file, std::uint64_t& offset) {
  std::array<unsigned char, 12> start{};
  const std::uint64_t there = std::min<std::uint64_t>(file.size(), start.size());
  file.read(start.data(), there, 0);
  file.require(there >= 6 && std::equal(kMagic.begin(), kMagic.end(), start.begin(),
                                        [](char a, unsigned char b) { return static_cast<unsigned char>(a) == b; }),
               "it does not begin with \"\\x93NUMPY\": not an .npy file");
  file.require(there >= 8, "it ends within its version");
  const int major = start[6], minor = start[7];
  file.require(major >= 1 && major <= 3 && minor == 0, "its version is ", major, '.', minor,
               "; 1.0, 2.0 and 3.0 are supported");
  const std::uint64_t width = major == 1 ? 2 : 4;
  file.require(there >= 8 + width, "it ends within the length of its header");
  std::uint64_t length = 0;
  std::memcpy(&length, start.data() + 8, width);
  offset = 8 + width;
  file.require(length <= kMaxHeader, "its header claims ", length, " bytes, more than the ", kMaxHeader, " allowed");
  file.require(length <= file.size() - offset, "its header claims ", length, " bytes, but only ", file.size() - offset,
               " follow");
  std::string text(length, '\0');
  file.read(text.data(), length, offset);
  offset += length;
  return text;
}

// Sizes of 0 are left out at first: an overflow is one although 0 elements remain, since strides are products, too.
std::uint64_t count_bytes(const InputFile& file, const Shape& shape, DType dtype) {
  std::int64_t bytes = size_of(dtype);
  bool overflows = false;
  for (std::int64_t size : shape) overflows |= __builtin_mul_overflow(bytes, std::max<std::int64_t>(size, 1), &bytes);
  file.require(!overflows, "its shape ", shape, " has more bytes than int64 can count");
  return std::find(shape.begin(), shape.end(), 0) != shape.end() ? 0 : static_cast<std::uint64_t>(bytes);
}

void swap_bytes(char* data, std::int64_t count, std::int64_t width) {
  for (std::int64_t i = 0; i < count; ++i, data += width) std::reverse(data, data + width);
}

// A column-major tensor is a row-major one of the reversed shape, seen with its dimensions in reverse.
Tensor from_column_major(const Tensor& reversed) {
  Shape shape, strides;
  for (std::int64_t d = reversed.dims() - 1; d >= 0; --d) {
    shape.push_back(reversed.shape()[d]);
    strides.push_back(reversed.strides()[d]);
  }
  const RowMajorBytes bytes(reversed.view(shape, strides));
  Tensor tensor = Tensor::empty(shape, reversed.dtype());
  dispatch(tensor.dtype(), [&](auto t) {
    if (bytes.size() > 0) std::memcpy(tensor.mutable_data<decltype(t)>(), bytes.data(), bytes.size());
  });
  return tensor;
}

}  // namespace

Tensor read_npy(const fs::path& path) {
  const InputFile file(path, "read_npy");
  std::uint64_t offset = 0;
  const std::string text = read_header(file, offset);
  HeaderParser header(file, text);
  header.parse();
  const std::uint64_t bytes = count_bytes(file, header.shape, header.dtype);
  file.require(file.size() - offset == bytes, "it holds ", file.size() - offset, " bytes of data, but ", header.dtype,
               ' ', header.shape, " takes ", bytes);

  Shape order = header.shape;
  if (header.fortran_order) std::reverse(order.begin(), order.end());
  Tensor tensor = Tensor::empty(order, header.dtype);
  dispatch(header.dtype, [&](auto t) {
    using T = decltype(t);
    auto* data = reinterpret_cast<char*>(tensor.mutable_data<T>());
    file.read(data, bytes, offset);
    if (header.swapped) swap_bytes(data, tensor.numel(), sizeof(T));
    if constexpr (std::is_same_v<T, bool>) {
      // Looked at as bytes: a bool with another value in it must not be read at all.
      const char* bad = std::find_if(data, data + bytes, [](char byte) { return byte != 0 && byte != 1; });
      file.require(bad == data + bytes, "element ", bad - data, " of its bool data is neither 0 nor 1");
    }
  });
  return header.fortran_order && order.dims() > 1 ? from_column_major(tensor) : tensor;
}

void write_npy(const fs::path& path, const Tensor& tensor) {
  check(tensor.defined(), "write_npy: ", path, ": the tensor is undefined");
  const auto known =
      std::find_if(kDTypes.begin(), kDTypes.end(), [&](const FormatDType& d) { return d.dtype == tensor.dtype(); });
  std::string header = "{'descr': '";
  header += size_of(tensor.dtype()) == 1 ? '|' : '<';
  header += std::string(known->name) + "', 'fortran_order': False, 'shape': (";
  for (std::int64_t d = 0; d < tensor.dims(); ++d) {
    header += (d > 0 ? ", " : "") + std::to_string(tensor.shape()[d]);
  }
  header += tensor.dims() == 1 ? ",), }" : "), }";
  constexpr std::size_t kStart = 10;  // magic, version, length
  const std::size_t whole = (kStart + header.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  header.resize(whole - kStart - 1, ' ');
  header += '\n';

  std::string start(kMagic);
  start += '\x01';
  start += '\0';
  start += static_cast<char>(header.size() & 0xff);
  start += static_cast<char>(header.size() >> 8);
  const RowMajorBytes bytes(tensor);
  AtomicFile file(path, "write_npy");
  file.write(start);
  file.write(header);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

}  // namespace prenorm
