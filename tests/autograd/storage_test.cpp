#include "autograd/storage.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "support.h"

namespace prenorm {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t kDefaultCap = 0;
#else
constexpr std::size_t kDefaultCap = std::size_t{4} << 30;
#endif

// An empty cache of a known cap, and the default one afterwards.
struct EmptyCache {
  EmptyCache() {
    memory::set_cache_cap(std::size_t{1} << 20);
    memory::empty_cache();
  }
  ~EmptyCache() {
    memory::empty_cache();
    memory::set_cache_cap(kDefaultCap);
  }
};

using Buffer = std::shared_ptr<Storage>;

TEST_CASE_FIXTURE(EmptyCache, "buffers are aligned to 64 bytes and hold what was asked for") {
  for (std::int64_t bytes : {0, 1, 63, 64, 65, 4096, 100000}) {
    const Buffer buffer = Storage::allocate(bytes);
    CHECK(buffer->bytes() == static_cast<std::size_t>(bytes));
    REQUIRE(buffer->data() != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(buffer->data()) % 64 == 0);
    std::memset(buffer->data(), 0xab, buffer->bytes());
  }
}

TEST_CASE_FIXTURE(EmptyCache, "the version counts writes") {
  const Buffer buffer = Storage::allocate(8);
  CHECK(buffer->version() == 0);
  buffer->count_write();
  buffer->count_write();
  CHECK(buffer->version() == 2);
}

TEST_CASE_FIXTURE(EmptyCache, "a buffer starts at version 0 also where its memory is reused") {
  Buffer buffer = Storage::allocate(8);
  const void* memory = buffer->data();
  buffer->count_write();
  buffer.reset();
  buffer = Storage::allocate(8);
  CHECK(buffer->data() == memory);
  CHECK(buffer->version() == 0);
}

TEST_CASE_FIXTURE(EmptyCache, "the statistics follow each buffer") {
  const memory::Stats start = memory::stats();
  CHECK(start.cached == 0);
  Buffer a = Storage::allocate(6400), b = Storage::allocate(1);
  CHECK(memory::stats().live == start.live + 6464);
  CHECK(memory::stats().system_allocations == start.system_allocations + 2);
  memory::reset_peak();
  a.reset();
  CHECK(memory::stats().live == start.live + 64);
  CHECK(memory::stats().cached == 6400);
  CHECK(memory::stats().peak == start.live + 6464);
  memory::reset_peak();
  CHECK(memory::stats().peak == start.live + 64);
  b.reset();
  CHECK(memory::stats().cached == 6464);
  memory::empty_cache();
  CHECK(memory::stats().cached == 0);
  CHECK(memory::stats().live == start.live);
}

TEST_CASE_FIXTURE(EmptyCache, "a freed buffer is used again without asking the system") {
  Buffer buffer = Storage::allocate(6400);
  const void* memory = buffer->data();
  const std::uint64_t asked = memory::stats().system_allocations;
  for (int i = 0; i < 100; ++i) {
    buffer.reset();
    buffer = Storage::allocate(6400 - i);  // any size that wastes little
    CHECK(buffer->data() == memory);
  }
  CHECK(memory::stats().system_allocations == asked);
}

TEST_CASE_FIXTURE(EmptyCache, "of the freed buffers the smallest that fits is taken, with at most 1/8 waste") {
  Buffer a = Storage::allocate(8192), b = Storage::allocate(9216), c = Storage::allocate(16384);
  const void *at_a = a->data(), *at_b = b->data(), *at_c = c->data();
  const std::uint64_t asked = memory::stats().system_allocations;
  c.reset();
  a.reset();
  b.reset();

  CHECK(Storage::allocate(8192)->data() == at_a);
  CHECK(Storage::allocate(8193)->data() == at_b);
  CHECK(Storage::allocate(9216)->data() == at_b);
  CHECK(Storage::allocate(16384 - 2048)->data() == at_c);  // 1/8 exactly
  CHECK(memory::stats().system_allocations == asked);
  const Buffer other = Storage::allocate(16384 - 2048 - 64);  // a little more than 1/8
  CHECK(other->data() != at_c);
  CHECK(memory::stats().system_allocations == asked + 1);
  CHECK(memory::stats().cached == 8192 + 9216 + 16384);
}

TEST_CASE_FIXTURE(EmptyCache, "the cache stays below its cap") {
  memory::set_cache_cap(10000);
  Buffer a = Storage::allocate(6400), b = Storage::allocate(6400);
  a.reset();
  CHECK(memory::stats().cached == 6400);
  b.reset();  // would make 12800
  CHECK(memory::stats().cached == 6400);
  memory::set_cache_cap(6399);  // gives back what is over
  CHECK(memory::stats().cached == 0);
  Storage::allocate(6400).reset();
  CHECK(memory::stats().cached == 0);
}

// Sanitizers end the process instead of letting an allocation fail.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE_FIXTURE(EmptyCache, "a request that the system cannot meet is an error and the process goes on") {
  Storage::allocate(4096).reset();
  CHECK(memory::stats().cached == 4096);
  const memory::Stats before = memory::stats();
  expect_error([] { Storage::allocate(std::int64_t{1} << 60); },
               {"no memory for 1152921504606846976 bytes", "tensors hold"});
  expect_error([] { Tensor::empty({1 << 20, 1 << 20, 1 << 17}); }, "no memory for 576460752303423488 bytes");
  CHECK(memory::stats().live == before.live);
  CHECK(memory::stats().peak == before.peak);
  CHECK(memory::stats().system_allocations == before.system_allocations);
  CHECK(memory::stats().cached == 0);  // given back before giving up
  const Buffer buffer = Storage::allocate(4096);
  std::memset(buffer->data(), 1, 4096);
}
#endif

TEST_CASE_FIXTURE(EmptyCache, "several threads can allocate and free at once") {
  const std::size_t live = memory::stats().live;
  std::vector<int> overwritten(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t, &overwritten] {
      std::vector<Buffer> held(8);
      for (int i = 0; i < 2000; ++i) {
        Buffer& buffer = held[static_cast<std::size_t>(i % 8)];
        if (buffer != nullptr) {
          const auto* data = static_cast<const unsigned char*>(buffer->data());
          for (std::size_t k = 0; k < buffer->bytes(); ++k) overwritten[static_cast<std::size_t>(t)] += data[k] != t;
        }
        buffer = Storage::allocate(64 * (1 + i * 7 % 13));
        std::memset(buffer->data(), t, buffer->bytes());
        if (i % 500 == 0) memory::empty_cache();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(overwritten == std::vector<int>{0, 0, 0, 0});
  CHECK(memory::stats().live == live);
}

}  // namespace
}  // namespace prenorm
