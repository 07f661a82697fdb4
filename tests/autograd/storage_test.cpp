#include "autograd/storage.h"

#include <cstdint>
#include <cstring>
#include <memory>

#include "support.h"

namespace prenorm {
namespace {

using Buffer = std::shared_ptr<Storage>;

TEST_CASE("buffers are aligned to 64 bytes and hold what was asked for") {
  for (std::int64_t bytes : {0, 1, 63, 64, 65, 4096, 100000}) {
    const Buffer buffer = Storage::allocate(bytes);
    CHECK(buffer->bytes() == static_cast<std::size_t>(bytes));
    REQUIRE(buffer->data() != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(buffer->data()) % 64 == 0);
    std::memset(buffer->data(), 0xab, buffer->bytes());
  }
}

TEST_CASE("the version counts writes") {
  const Buffer buffer = Storage::allocate(8);
  CHECK(buffer->version() == 0);
  buffer->count_write();
  buffer->count_write();
  CHECK(buffer->version() == 2);
}

TEST_CASE("the statistics follow each buffer") {
  const memory::Stats start = memory::stats();
  Buffer a = Storage::allocate(6400), b = Storage::allocate(1);
  CHECK(memory::stats().live == start.live + 6464);
  memory::reset_peak();
  a.reset();
  CHECK(memory::stats().live == start.live + 64);
  CHECK(memory::stats().peak == start.live + 6464);
  memory::reset_peak();
  CHECK(memory::stats().peak == start.live + 64);
  b.reset();
  CHECK(memory::stats().live == start.live);
}

// Sanitizers end the process instead of letting an allocation fail.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("a request that the system cannot meet is an error and the process goes on") {
  const memory::Stats before = memory::stats();
  expect_error([] { Storage::allocate(std::int64_t{1} << 60); },
               {"no memory for 1152921504606846976 bytes", "tensors hold"});
  expect_error([] { Tensor::empty({1 << 20, 1 << 20, 1 << 17}); }, "no memory for 576460752303423488 bytes");
  CHECK(memory::stats().live == before.live);
  CHECK(memory::stats().peak == before.peak);
  CHECK(memory::stats().system_allocations == before.system_allocations);
  const Buffer buffer = Storage::allocate(4096);
  std::memset(buffer->data(), 1, 4096);
}
#endif

}  // namespace
}  // namespace prenorm
