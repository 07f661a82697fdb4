#include "autograd/safetensors.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "files.h"

namespace prenorm {
namespace {

namespace fs = std::filesystem;

// The file that this header and data make.
std::string assemble(std::string_view header, std::string_view data = {}) {
  std::uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file.append(header).append(data);
}

// Whether reading a file of these bytes fails with a message that names the file and says all of `words`.
bool refused(std::string_view bytes, std::initializer_list<std::string_view> words) {
  const Folder folder;
  put(folder / "bad.safetensors", bytes);
  const std::string message = error_of([&] { read_safetensors(folder / "bad.safetensors"); });
  bool named = message.find("bad.safetensors") != std::string::npos;
  for (std::string_view word : words) named = named && message.find(word) != std::string::npos;
  if (!named) MESSAGE("got: ", message);
  return named;
}

bool refused_header(std::string_view header, std::initializer_list<std::string_view> words) {
  return refused(assemble(header, std::string(8, '\0')), words);
}

// The same for one entry, of tensor "w" with eight bytes of data behind it.
bool refused_entry(std::string_view entry, std::string_view word) {
  return refused_header("{\"w\":" + std::string(entry) + "}", {"\"w\"", word});
}

std::vector<std::uint32_t> bits(const Tensor& tensor) {
  const float* data = tensor.data<float>();
  std::vector<std::uint32_t> out;
  for (std::int64_t i = 0; i < tensor.numel(); ++i) out.push_back(std::bit_cast<std::uint32_t>(data[i]));
  return out;
}

Tensor from_bits(const std::vector<std::uint32_t>& values) {
  Tensor tensor = Tensor::empty({static_cast<std::int64_t>(values.size())});
  std::memcpy(tensor.mutable_data<float>(), values.data(), values.size() * sizeof(float));
  return tensor;
}

NamedTensors small_tensors() {
  return {{"mask", Tensor::of({1, 0, 1}, {3}, {.dtype = boolean})},
          {"layers.0.weight", Tensor::of({1, -2.5, 3, 4, 5, 6}, {2, 3})},
          {"step", Tensor::scalar(7, {.dtype = int64})},
          {"empty", Tensor::empty({0, 4}, float64)},
          {"exact", Tensor::of({0.1, 0.2}, {2, 1}, {.dtype = float64})}};
}

void check_equal(const NamedTensors& got, const NamedTensors& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(want[i].path);
    CHECK(got[i].path == want[i].path);
    CHECK(got[i].tensor.dtype() == want[i].tensor.dtype());
    CHECK(got[i].tensor.shape() == want[i].tensor.shape());
    CHECK(got[i].tensor.to_vector() == want[i].tensor.to_vector());
  }
}

TEST_CASE("what was written is read: values, dtypes, shapes, order and text") {
  const Folder folder;
  const SafetensorsMetadata metadata = {
      {"options", R"({"depth": 8, "name": "a \"b\""})"}, {"log", "1,2\n3,4\n"}, {"ü", "é"}};
  write_safetensors(folder / "a.safetensors", small_tensors(), metadata);
  const SafetensorsFile file = read_safetensors(folder / "a.safetensors");
  check_equal(file.tensors, small_tensors());
  CHECK(file.metadata == metadata);
  CHECK(file.find("step").item<std::int64_t>() == 7);
  CHECK_FALSE(file.find("stop").defined());
  CHECK(folder.files() == 1);
}

TEST_CASE("a file may hold nothing") {
  const Folder folder;
  write_safetensors(folder / "a", {});
  CHECK(get(folder / "a") == assemble("{}      "));
  CHECK(read_safetensors(folder / "a").tensors.empty());
  CHECK(read_safetensors(folder / "a").metadata.empty());
}

TEST_CASE("the bytes of a file") {
  const Folder folder;
  write_safetensors(
      folder / "a",
      {{"m", Tensor::of({1, 0}, {2}, {.dtype = boolean})}, {"i", Tensor::of({-1}, {1}, {.dtype = int64})}},
      {{"k", "v"}});
  // The wider dtype comes first in the data, so that a reader that maps the file finds each tensor aligned.
  std::string header = R"({"__metadata__":{"k":"v"},"m":{"data_offsets":[8,10],"dtype":"BOOL","shape":[2]},)"
                       R"("i":{"data_offsets":[0,8],"dtype":"I64","shape":[1]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  CHECK(get(folder / "a") == assemble(header, std::string(8, '\xff') + '\1' + '\0'));
}

TEST_CASE("a file of another writer: spaces, other order of fields and entries, escapes, tensors without elements") {
  const Folder folder;
  const std::string header =
      R"({ "b\u00fc" : {"shape": [2], "dtype": "F32", "data_offsets": [8, 16]}, "none": {"dtype":"F32","shape":[3,0],)"
      R"("data_offsets":[8,8]}, "a": {"dtype":"I64","shape":[],"data_offsets":[0,8]} }      )";
  put(folder / "a", assemble(header, std::string("\5\0\0\0\0\0\0\0\0\0\x80\x3f\0\0\0\x40", 16)));
  check_equal(
      read_safetensors(folder / "a").tensors,
      {{"bü", Tensor::of({1, 2})}, {"none", Tensor::empty({3, 0})}, {"a", Tensor::scalar(5, {.dtype = int64})}});
}

TEST_CASE("tensors of any strides are written in row-major order") {
  const Folder folder;
  const Tensor base = Tensor::of({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {3, 4});
  write_safetensors(folder / "a", {{"transposed", base.view({4, 3}, {1, 4})},
                                   {"columns", base.view({3, 2}, {4, 2}, 1)},
                                   {"repeated", base.view({2, 3}, {0, 1}, 4)},
                                   {"part", base.view({2, 4}, {4, 1}, 4)},
                                   {"nothing", base.view({2, 0}, {1, 1})}});
  check_equal(read_safetensors(folder / "a").tensors,
              {{"transposed", Tensor::of({0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}, {4, 3})},
               {"columns", Tensor::of({1, 3, 5, 7, 9, 11}, {3, 2})},
               {"repeated", Tensor::of({4, 5, 6, 4, 5, 6}, {2, 3})},
               {"part", Tensor::of({4, 5, 6, 7, 8, 9, 10, 11}, {2, 4})},
               {"nothing", Tensor::empty({2, 0})}});
}

TEST_CASE("every bit survives: payloads of quiet and signalling NaNs, infinities, -0, subnormals") {
  const Folder folder;
  const std::vector<std::uint32_t> values = {0x7fc00000, 0xffc12345, 0x7f800001, 0x7fa00000,
                                             0x7f800000, 0x80000000, 1,          0x807fffff};
  const Tensor tensor = from_bits(values);
  write_safetensors(folder / "a", {{"dense", tensor}, {"backwards", tensor.view({8}, {-1}, 7)}});
  const SafetensorsFile file = read_safetensors(folder / "a");
  CHECK(bits(file.find("dense")) == values);
  CHECK(bits(file.find("backwards")) == std::vector<std::uint32_t>(values.rbegin(), values.rend()));
}

TEST_CASE("a file truncated at any byte is refused, and so is one with a byte too many") {
  const Folder folder;
  write_safetensors(folder / "a", small_tensors(), {{"k", "v"}});
  const std::string whole = get(folder / "a");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    REQUIRE(refused(std::string_view(whole).substr(0, size), {}));
  }
  CHECK(refused(whole + '\0', {"its tensors take"}));
}

TEST_CASE("with any byte changed a file is refused or is another valid file") {
  const Folder folder;
  write_safetensors(folder / "a", small_tensors(), {{"k", "v"}});
  const std::string whole = get(folder / "a");
  int refusals = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (int change : {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff}) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ change);
      put(folder / "b", changed);
      try {
        // Reading on what was read shows, under the sanitizers, that there is memory behind it.
        for (const NamedTensor& named : read_safetensors(folder / "b").tensors) named.tensor.to_vector();
      } catch (const Error&) {
        ++refusals;
      }
    }
  }
  CHECK(refusals > 1000);
}

TEST_CASE("lies about the length of the header") {
  for (std::uint64_t length : {std::numeric_limits<std::uint64_t>::max(), std::numeric_limits<std::uint64_t>::max() - 7,
                               std::uint64_t{1} << 63, std::uint64_t{100'000'001}}) {
    std::string file = assemble("{}");
    std::memcpy(file.data(), &length, sizeof length);
    CHECK(refused(file, {std::to_string(length), "more than the 100000000 allowed"}));
  }
  for (std::uint64_t length : {std::uint64_t{3}, std::uint64_t{100'000'000}}) {
    std::string file = assemble("{}");
    std::memcpy(file.data(), &length, sizeof length);
    CHECK(refused(file, {"but only 2 follow"}));
  }
  CHECK(refused(assemble(""), {"does not begin with '{'"}));
  CHECK(refused("", {"it ends after 0 bytes"}));
}

TEST_CASE("headers that are not JSON of the right form") {
  CHECK(refused_header("[]", {"begin"}));
  CHECK(refused_header(" {}", {"begin"}));
  CHECK(refused_header("\xef\xbb\xbf{}", {"begin"}));
  CHECK(refused_header("{", {"not valid JSON"}));
  CHECK(refused_header("{} x", {"not valid JSON"}));
  CHECK(refused_header("{}{}", {"not valid JSON"}));
  CHECK(refused_header(R"({"w":})", {"not valid JSON"}));
  CHECK(refused_header(std::string_view("{}\0\0", 4), {"zero byte"}));
  CHECK(refused_header("{\"\xff\":{}}", {"not valid JSON"}));          // not UTF-8
  CHECK(refused_header("{\"\xed\xa0\x80\":{}}", {"not valid JSON"}));  // a surrogate in UTF-8
  CHECK(refused_header(R"({"\ud800":{}})", {"not valid JSON"}));       // half a surrogate pair
  CHECK(refused_header(R"({"w":{"dtype":"F32","shape":[[[[1]]]]}})", {"nested"}));
  CHECK(refused_header("{\"w\":" + std::string(1'000'000, '['), {"nested"}));
  const std::string entry = R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  CHECK(refused_header("{\"w\":" + entry + ",\"w\":" + entry + "}", {"\"w\" twice"}));
  CHECK(refused_header(R"({"w":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", {"\"dtype\" twice"}));
}

TEST_CASE("bad metadata") {
  CHECK(refused_header(R"({"__metadata__":[]})", {"__metadata__ is not an object"}));
  CHECK(refused_header(R"({"__metadata__":"x"})", {"__metadata__ is not an object"}));
  for (const char* value : {"1", "null", "true", "{}", "[\"x\"]"}) {
    CHECK(refused_header(R"({"__metadata__":{"step":)" + std::string(value) + "}}", {"\"step\" is not a string"}));
  }
  CHECK(refused_header(R"({"__metadata__":{"a":"1","a":"1"}})", {"\"a\" twice"}));
  CHECK(refused_header(R"({"__metadata__":{},"__metadata__":{}})", {"twice"}));
}

TEST_CASE("entries of the wrong form") {
  CHECK(refused_entry("[]", "not an object"));
  CHECK(refused_entry("null", "not an object"));
  CHECK(refused_entry(R"({"shape":[2],"data_offsets":[0,8]})", "lacks \"dtype\""));
  CHECK(refused_entry(R"({"dtype":"F32","data_offsets":[0,8]})", "lacks \"shape\""));
  CHECK(refused_entry(R"({"dtype":"F32","shape":[2]})", "lacks \"data_offsets\""));
  CHECK(refused_entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"order":"big"})", "\"order\""));
  CHECK(refused_entry(R"({"dtype":3,"shape":[2],"data_offsets":[0,8]})", "dtype is not a string"));
  for (const char* dtype : {"BF16", "F16", "I32", "U8", "F8_E4M3", "", "f32"}) {
    CHECK(refused_entry(R"({"dtype":")" + std::string(dtype) + R"(","shape":[2],"data_offsets":[0,8]})",
                        "its dtype is " + std::string(dtype) + "; F32, F64, I64 and BOOL are supported"));
  }
}

TEST_CASE("shapes that cannot be") {
  CHECK(refused_entry(R"({"dtype":"F32","shape":2,"data_offsets":[0,8]})", "not an array"));
  CHECK(refused_entry(R"({"dtype":"F32","shape":{"0":2},"data_offsets":[0,8]})", "not an array"));
  for (const char* size :
       {"-1", "2.0", "2e0", "\"2\"", "null", "true", "9223372036854775808", "18446744073709551616"}) {
    CHECK(refused_entry(R"({"dtype":"F32","shape":[)" + std::string(size) + R"(],"data_offsets":[0,8]})",
                        "a size of its shape is not a whole number"));
  }
  CHECK(refused_header(R"({"w":{"dtype":"F32","shape":[1e400],"data_offsets":[0,8]}})", {"not valid JSON"}));
  CHECK(refused_entry(R"({"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]})", "9 dimensions"));
  // Products that a 64-bit multiplication would turn into 2, or 0, elements.
  CHECK(refused_entry(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]})", "more bytes"));
  CHECK(refused_entry(R"({"dtype":"F32","shape":[4611686018427387906],"data_offsets":[0,8]})", "more bytes"));
  CHECK(refused_entry(R"({"dtype":"F64","shape":[2305843009213693953],"data_offsets":[0,8]})", "more bytes"));
  CHECK(refused_entry(R"({"dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0]})", "more bytes"));
}

TEST_CASE("offsets that cannot be") {
  CHECK(refused_entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})", "array of two"));
  CHECK(refused_entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8,8]})", "array of two"));
  CHECK(refused_entry(R"({"dtype":"F32","shape":[2],"data_offsets":"08"})", "array of two"));
  CHECK(refused_entry(R"({"dtype":"F32","shape":[2],"data_offsets":[-8,0]})", "whole number"));
  CHECK(refused_entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8.0]})", "whole number"));
  CHECK(refused_entry(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})", "inverted"));
  CHECK(refused_entry(R"({"dtype":"F32","shape":[2],"data_offsets":[18446744073709551615,7]})", "inverted"));
  CHECK(refused_entry(R"({"dtype":"F32","shape":[2],"data_offsets":[8,16]})", "beyond the end"));
  CHECK(refused_entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,18446744073709551615]})", "beyond the end"));
  CHECK(refused_entry(R"({"dtype":"F32","shape":[1],"data_offsets":[0,8]})", "span 8 bytes, but F32 [1] takes 4"));
  CHECK(refused_entry(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})", "takes 12"));
  CHECK(refused_entry(R"({"dtype":"F32","shape":[0],"data_offsets":[0,8]})", "takes 0"));
  CHECK(refused_entry(R"({"dtype":"F32","shape":[],"data_offsets":[0,0]})", "takes 4"));
}

TEST_CASE("tensors that do not fill the data exactly") {
  const auto entry = [](std::string_view name, int begin, int end) {
    return "\"" + std::string(name) + R"(":{"dtype":"BOOL","shape":[)" + std::to_string(end - begin) +
           R"(],"data_offsets":[)" + std::to_string(begin) + ',' + std::to_string(end) + "]}";
  };
  const auto header = [&](const std::vector<std::string>& entries) {
    std::string text = "{";
    for (const std::string& each : entries) text += (text.size() > 1 ? "," : "") + each;
    return text + "}";
  };
  CHECK(refused_header(header({entry("a", 0, 5), entry("b", 4, 8)}), {"\"b\"", "overlaps"}));
  CHECK(refused_header(header({entry("b", 0, 8), entry("a", 0, 8)}), {"overlaps"}));
  CHECK(refused_header(header({entry("a", 0, 8), entry("b", 4, 4)}), {"\"b\"", "overlaps"}));
  CHECK(refused_header(header({entry("b", 5, 8), entry("a", 0, 4)}), {"\"b\"", "gap from 4"}));
  CHECK(refused_header(header({entry("a", 1, 8)}), {"\"a\"", "gap from 0"}));
  CHECK(refused_header(header({entry("a", 0, 4), entry("b", 4, 7)}), {"take 7 bytes, but the file holds 8"}));
  CHECK(refused_header("{}", {"take 0 bytes, but the file holds 8"}));
}

TEST_CASE("BOOL bytes are 0 or 1") {
  const std::string header = R"({"m":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})";
  CHECK(refused(assemble(header, std::string("\0\1\2", 3)), {"\"m\"", "element 2"}));
  CHECK(refused(assemble(header, std::string("\xff\1\0", 3)), {"\"m\"", "element 0"}));
}

TEST_CASE("a lying header is not believed about memory") {
  const std::size_t before = memory::stats().peak;
  // Consistent in itself, but the data is not there.
  CHECK(refused_entry(R"({"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4398046511104]})", "beyond the end"));
  CHECK(memory::stats().peak == before);
}

TEST_CASE("what is no file cannot be read") {
  const Folder folder;
  CHECK(error_of([&] { read_safetensors(folder / "none"); }).find("No such file") != std::string::npos);
  CHECK(error_of([&] { read_safetensors(folder / "."); }).find("not a regular file") != std::string::npos);
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(error_of([&] { read_safetensors(folder / "pipe"); }).find("not a regular file") != std::string::npos);
}

// Whether writing fails with this word, and leaves the folder with as many files as before.
bool refuses_to_write(const Folder& folder, const fs::path& path, const NamedTensors& tensors, std::string_view word,
                      const SafetensorsMetadata& metadata = {}) {
  const std::size_t files = folder.files();
  const std::string message = error_of([&] { write_safetensors(path, tensors, metadata); });
  const bool refused = message.find(word) != std::string::npos && message.find(path.string()) != std::string::npos;
  if (!refused) MESSAGE("got: ", message);
  return !message.empty() && refused && folder.files() == files;
}

TEST_CASE("what cannot be written is refused, and an old file stays") {
  const Folder folder;
  write_safetensors(folder / "a", small_tensors());
  const std::string old = get(folder / "a");
  const Tensor one = Tensor::scalar(1);
  CHECK(refuses_to_write(folder, folder / "a", {{"w", one}, {"w", one}}, "\"w\": there are two"));
  CHECK(refuses_to_write(folder, folder / "a", {{"w", one}, {"v", Tensor()}}, "\"v\": it is undefined"));
  CHECK(refuses_to_write(folder, folder / "a", {{"__metadata__", one}}, "keeps this name"));
  CHECK(refuses_to_write(folder, folder / "a", {{"\xff", one}}, "UTF-8"));
  CHECK(refuses_to_write(folder, folder / "a", {}, "UTF-8", {{"k", "\xc3"}}));
  std::string long_text;
  long_text.resize(100'000'000, 'x');
  CHECK(refuses_to_write(folder, folder / "a", {}, "more than the 100000000 allowed", {{"k", long_text}}));
  CHECK(get(folder / "a") == old);
  CHECK(refuses_to_write(folder, folder / "none" / "a", {{"w", one}}, "No such file"));
}

}  // namespace
}  // namespace prenorm
