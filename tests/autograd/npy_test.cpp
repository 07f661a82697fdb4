#include "autograd/npy.h"

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/ops.h"
#include "autograd/safetensors.h"
#include "files.h"

namespace prenorm {
namespace {

const std::filesystem::path kSamples =
    std::filesystem::path(PRENORM_SOURCE_DIR) / "tests" / "files_from_elsewhere" / "samples";

// What make_samples.py puts into a tensor.
Tensor sample(const Shape& shape, DType dtype) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < numel(shape); ++i) {
    const auto n = static_cast<double>(i);
    values.push_back(dtype == boolean ? i % 2 == 0 : dtype == int64 ? n : n / 4 - 1);
  }
  return Tensor::of(values, shape, {.dtype = dtype});
}

void expect_same(const Tensor& got, const Tensor& want) {
  CHECK(got.dtype() == want.dtype());
  CHECK(got.shape() == want.shape());
  CHECK(got.is_contiguous());
  CHECK(got.to_vector() == want.to_vector());
}

// A file of this header, padded as NumPy pads it.
std::string assemble(std::string header, std::string_view data, char major = 1) {
  std::string file = "\x93NUMPY";
  file += major;
  file += '\0';
  const std::size_t width = major == 1 ? 2 : 4;
  header.resize((8 + width + header.size() + 1 + 63) / 64 * 64 - 8 - width - 1, ' ');
  header += '\n';
  for (std::size_t i = 0; i < width; ++i) file += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return file.append(header).append(data);
}

bool refused(std::string_view bytes, std::string_view word) {
  const Folder folder;
  put(folder / "bad.npy", bytes);
  const std::string message = error_of([&] { read_npy(folder / "bad.npy"); });
  const bool right = message.starts_with("read_npy: ") && message.find("bad.npy") != std::string::npos &&
                     message.find(word) != std::string::npos;
  if (!right) MESSAGE("got: ", message);
  return right;
}
bool refused_header(const std::string& header, std::string_view word) {
  return refused(assemble(header, std::string(24, '\0')), word);
}

TEST_CASE("npy: files of NumPy: dtypes, byte orders, memory orders, versions") {
  const std::vector<std::pair<std::string, DType>> kinds = {
      {"f4", float32}, {"f8", float64}, {"i8", int64}, {"b1", boolean}};
  for (const auto& named : kinds) {
    const std::string& kind = named.first;
    const DType dtype = named.second;
    for (const char* bytes : {"little", "big"}) {
      for (const char* order : {"C", "F"}) {
        if (dtype == boolean && bytes == std::string("big")) continue;
        CAPTURE(kind);
        CAPTURE(bytes);
        CAPTURE(order);
        expect_same(read_npy(kSamples / (kind + "." + bytes + "." + order + ".npy")), sample({2, 3, 4}, dtype));
      }
    }
  }
  for (const char* version : {"1", "2", "3"}) {
    expect_same(read_npy(kSamples / ("f4.version" + std::string(version) + ".npy")), sample({2, 3}, float32));
  }
  expect_same(read_npy(kSamples / "f8.scalar.npy"), sample({}, float64));
  expect_same(read_npy(kSamples / "i8.one.npy"), sample({5}, int64));
  expect_same(read_npy(kSamples / "f4.empty.npy"), sample({2, 0, 3}, float32));
  CHECK(error_of([] { read_npy(kSamples / "f2.unsupported.npy"); }).find("its dtype is '<f2'; float32") !=
        std::string::npos);
  CHECK(error_of([] { read_npy(kSamples / "fields.unsupported.npy"); }).find("several fields") != std::string::npos);
}

TEST_CASE("safetensors: a file of the reference implementation") {
  const SafetensorsFile file = read_safetensors(kSamples / "reference.safetensors");
  CHECK(file.tensors.size() == 7);
  expect_same(file.find("tensor.f4"), sample({2, 3, 4}, float32));
  expect_same(file.find("tensor.f8"), sample({2, 3, 4}, float64));
  expect_same(file.find("tensor.i8"), sample({2, 3, 4}, int64));
  expect_same(file.find("tensor.b1"), sample({2, 3, 4}, boolean));
  expect_same(file.find("scalar"), sample({}, float64));
  expect_same(file.find("empty"), sample({2, 0, 3}, float32));
  expect_same(file.find("naïve \"name\""), sample({5}, int64));
  CHECK(file.metadata == SafetensorsMetadata{{"made by", "safetensors"}, {"é", "ü"}});
}

TEST_CASE("npy: what was written is read, from any strides, and is what NumPy writes") {
  const Folder folder;
  for (const DType dtype : {float32, float64, int64, boolean}) {
    for (const Shape& shape : {Shape{}, Shape{5}, Shape{0}, Shape{2, 3, 4}, Shape{1, 1, 1, 1, 1, 1, 2, 3}}) {
      write_npy(folder / "a.npy", sample(shape, dtype));
      expect_same(read_npy(folder / "a.npy"), sample(shape, dtype));
    }
  }
  const Tensor turned = slice(transpose(sample({4, 6}, float32), 0, 1), 0, 1, 6, 2);
  write_npy(folder / "a.npy", turned);
  expect_same(read_npy(folder / "a.npy"), clone(turned));
  write_npy(folder / "a.npy", sample({2, 3}, float32));
  CHECK(get(folder / "a.npy") == get(kSamples / "f4.version1.npy"));
  write_npy(folder / "a.npy", sample({5}, int64));
  CHECK(get(folder / "a.npy") == get(kSamples / "i8.one.npy"));
}

TEST_CASE("npy: every bit survives, those of NaNs too, swapped or not") {
  const Folder folder;
  const std::vector<std::uint32_t> bits = {0x7fc00001, 0x7f800001, 0xffc12345, 0x7f800000, 0x80000000, 0x00000001};
  std::string little(24, '\0'), big;
  std::memcpy(little.data(), bits.data(), 24);
  for (std::size_t i = 0; i < 24; ++i) big += little[i / 4 * 4 + 3 - i % 4];
  put(folder / "little.npy", assemble("{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }", little));
  put(folder / "big.npy", assemble("{'descr': '>f4', 'fortran_order': False, 'shape': (6,), }", big));
  for (const char* name : {"little.npy", "big.npy"}) {
    const Tensor tensor = read_npy(folder / name);
    const void* got = tensor.data<float>();
    CHECK(std::memcmp(got, bits.data(), 24) == 0);
    write_npy(folder / "copy.npy", tensor);
    CHECK(get(folder / "copy.npy") == get(folder / "little.npy"));
  }
}

TEST_CASE("npy: headers as other writers put them") {
  const Folder folder;
  for (const char* header : {"{\"shape\":(2L, 3),\"fortran_order\":False,\"descr\":\"<f4\"}",
                             " { 'shape' : ( 2 , 3 , ) , 'fortran_order' : False , 'descr' : '=f4' } "}) {
    CAPTURE(header);
    put(folder / "a.npy", assemble(header, std::string(24, '\0')));
    CHECK(read_npy(folder / "a.npy").shape() == Shape{2, 3});
  }
}

TEST_CASE("npy: a file truncated at any byte is refused, and so is one with a byte too many") {
  for (const char* name : {"f4.version1.npy", "f4.version3.npy", "f8.scalar.npy"}) {
    const std::string whole = get(kSamples / name);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      CAPTURE(length);
      CHECK(refused(whole.substr(0, length), ""));
    }
    CHECK(refused(whole + '\0', "bytes of data, but"));
  }
}

TEST_CASE("npy: with any byte changed a file is refused or is another valid one") {
  const std::string whole = get(kSamples / "f4.version1.npy");
  const Folder folder;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char value : {'\0', '\x7f', '\xff', ' ', '9', '\''}) {
      std::string changed = whole;
      changed[at] = value;
      put(folder / "a.npy", changed);
      std::int64_t elements = 6;
      error_of([&] { elements = read_npy(folder / "a.npy").numel(); });  // any other exception fails the test
      CHECK(elements == 6);
    }
  }
}

TEST_CASE("npy: beginnings that are none") {
  CHECK(refused("", "not an .npy file"));
  CHECK(refused("PK\x03\x04 an .npz archive", "not an .npy file"));
  CHECK(refused("\x93NUMPY", "within its version"));
  CHECK(refused(assemble("{}", "", 4), "its version is 4.0"));
  CHECK(refused(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12), "claims 4294967295 bytes, more than"));
  CHECK(refused(std::string("\x93NUMPY\x01\x00\xff\xff", 10), "claims 65535 bytes, but only 0 follow"));
}

TEST_CASE("npy: headers that say something else") {
  const std::string descr = "'descr': '<f4'", order = "'fortran_order': False", shape = "'shape': (6,)";
  CHECK(refused_header("", "expected '{'"));
  CHECK(refused_header("[1]", "expected '{'"));
  CHECK(refused_header("{}", "lacks 'descr'"));
  CHECK(refused_header("{" + descr + "," + shape + "}", "lacks 'fortran_order'"));
  CHECK(refused_header("{" + descr + "," + order + "}", "lacks 'shape'"));
  CHECK(refused_header("{" + descr + "," + descr + "}", "'descr' twice"));
  CHECK(refused_header("{" + descr + "," + order + "," + shape + ",'more': 1}", "unknown key 'more'"));
  CHECK(refused_header("{" + descr + "," + order + "," + shape + "} import os", "goes on after"));
  CHECK(refused_header("{" + descr + " " + order, "expected '}'"));
  CHECK(refused_header("{'descr", "a key is not a string"));
  CHECK(refused_header("{'fortran_order': 0", "neither True nor False"));
  for (const char* dtype : {"<f2", "<i4", "<u8", "<c8", "|O", "<U3", "f16", "", "<", "<b2"})
    CHECK(refused_header("{'descr': '" + std::string(dtype) + "'", "its dtype is '" + std::string(dtype) + "'"));
  CHECK(refused_header("{'descr': '|f4'", "does not say the byte order"));
  CHECK(refused_header("{'descr': 'f4'", "does not say the byte order"));
  CHECK(refused_header("{'descr': [('a', '<f4')]", "several fields"));
}

TEST_CASE("npy: shapes that cannot be, without asking for their memory") {
  const auto file = [](const std::string& shape) {
    return "{'descr': '<f4', 'fortran_order': True, 'shape': " + shape + "}";
  };
  CHECK(refused_header(file("(6)"), "has a comma"));
  CHECK(refused_header(file("[6,]"), "expected '('"));
  CHECK(refused_header(file("(6"), "has a comma"));
  CHECK(refused_header(file("(2 3)"), "has a comma"));
  CHECK(refused_header(file("(2, 3 4)"), "expected ')'"));
  CHECK(refused_header(file("(-1,)"), "not a whole number"));
  CHECK(refused_header(file("(1.5,)"), "has a comma"));
  CHECK(refused_header(file("(9223372036854775808,)"), "not a whole number"));
  CHECK(refused_header(file("(99999999999999999999999,)"), "not a whole number"));
  CHECK(refused_header(file("(1,1,1,1,1,1,1,1,6)"), "more than the 8 dimensions"));
  CHECK(refused_header(file("(4294967296, 4294967296)"), "more bytes than int64"));
  CHECK(refused_header(file("(4294967296, 0, 4294967296)"), "more bytes than int64"));
  CHECK(refused_header(file("(2305843009213693952,)"), "more bytes than int64"));
  CHECK(refused_header(file("(1099511627776,)"), "24 bytes of data, but float32 [1099511627776] takes"));
}

TEST_CASE("npy: bool bytes are 0 or 1") {
  const std::string header = "{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }";
  CHECK(refused(assemble(header, std::string("\1\2", 2)), "element 1 of its bool data"));
}

TEST_CASE("npy: what cannot be written is refused, and an old file stays") {
  const Folder folder;
  put(folder / "a", "old");
  CHECK(error_of([&] { write_npy(folder / "a", Tensor()); }).find("undefined") != std::string::npos);
  CHECK(get(folder / "a") == "old");
  CHECK(error_of([&] { write_npy(folder / "none" / "a", Tensor::scalar(1)); }).find("write_npy: ") == 0);
}

}  // namespace
}  // namespace prenorm
