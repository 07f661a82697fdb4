#include "autograd/allocator.h"

#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "support.h"

namespace prenorm {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20, kHeader = 64;
// Segments for buffers up to 128 KiB.
constexpr std::size_t kSegment = kMiB, kShared = kSegment / 8;

// An allocator that has back, in the end, what a test did not give back.
class Memory : public Allocator {
 public:
  using Allocator::Allocator;
  ~Memory() {
    for (void* data : taken_) Allocator::give_back(data);
  }
  void* take(std::size_t bytes) {
    void* const data = Allocator::take(bytes);
    taken_.insert(data);
    return data;
  }
  void give_back(void* data) {
    taken_.erase(data);
    Allocator::give_back(data);
  }

 private:
  std::set<void*> taken_;
};

TEST_CASE("allocator: a freed block is taken again without asking the system") {
  Memory memory(kSegment, kMiB);
  void* const at = memory.take(6400);
  for (int i = 0; i < 100; ++i) {
    memory.give_back(at);
    CHECK(memory.take(6400 - static_cast<std::size_t>(i)) == at);
  }
  CHECK(memory.stats().system_allocations == 1);
  memory.give_back(at);
}

TEST_CASE("allocator: the statistics follow each block") {
  Memory memory(kSegment, kMiB);
  CHECK(memory.stats().cached == 0);
  void *const a = memory.take(6400), *const b = memory.take(1), *const c = memory.take(0);
  CHECK(memory.stats().live == 6400 + 64 + 64);
  CHECK(memory.stats().cached == kSegment - 4 * kHeader - memory.stats().live);
  memory.give_back(a);
  CHECK(memory.stats().live == 128);
  CHECK(memory.stats().peak == 6528);
  memory.reset_peak();
  CHECK(memory.stats().peak == 128);
  memory.give_back(b);
  memory.give_back(c);
  CHECK(memory.stats().live == 0);
  CHECK(memory.stats().cached == kSegment - 4 * kHeader);
}

// Takes what was never used of a segment, but for less than a block of 1024 bytes.
void use_up(Memory& memory) {
  REQUIRE(memory.stats().system_allocations == 1);
  while (memory.stats().cached >= 1024) memory.take(1024);
}

TEST_CASE("allocator: while a segment lasts, blocks of other sizes stay as they are") {
  Memory memory(kSegment, kMiB);
  void *const a = memory.take(1024), *const b = memory.take(1024);
  memory.give_back(a);
  memory.give_back(b);
  CHECK(memory.take(512) > b);
  CHECK(memory.take(2048) > b);
  CHECK(memory.take(1000) == b);
  CHECK(memory.take(1000) == a);
}

TEST_CASE("allocator: then free neighbours become one block, whichever was freed first") {
  for (const std::vector<int>& order : {std::vector{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}}) {
    Memory memory(kSegment, kMiB);
    std::vector<void*> blocks;
    for (int i = 0; i < 3; ++i) blocks.push_back(memory.take(1024));
    use_up(memory);
    for (int i : order) memory.give_back(blocks[static_cast<std::size_t>(i)]);
    CHECK(memory.take(3 * 1024 + 2 * kHeader) == blocks[0]);
    CHECK(memory.stats().system_allocations == 1);
    memory.take(3 * 1024);
    CHECK(memory.stats().system_allocations == 2);
  }
}

TEST_CASE("allocator: then the smallest block that fits is cut, and what is over is free") {
  Memory memory(kSegment, kMiB);
  void *const large = memory.take(9216), *const wall = memory.take(64), *const small = memory.take(4096);
  use_up(memory);
  memory.give_back(large);
  memory.give_back(small);
  CHECK(memory.take(3000) == small);
  CHECK(memory.take(2048) == large);
  CHECK(memory.take(9216 - 2048 - kHeader) == static_cast<char*>(large) + 2048 + kHeader);
  CHECK(memory.stats().system_allocations == 1);
  CHECK(wall != nullptr);
}

TEST_CASE("allocator: a large buffer has a segment of its own, with at most 1/8 waste") {
  Memory memory(kSegment, 64 * kMiB);
  void* const at = memory.take(16 * kMiB);
  CHECK(reinterpret_cast<std::uintptr_t>(at) % 64 == 0);
  std::memset(at, 1, 16 * kMiB);
  memory.give_back(at);
  CHECK(memory.take(14 * kMiB + 4096) == at);
  memory.give_back(at);
  CHECK(memory.take(13 * kMiB) != at);
  CHECK(memory.stats().system_allocations == 2);
  CHECK(memory.take(64) != at);  // it is not cut either
  CHECK(memory.stats().system_allocations == 3);
  CHECK(memory.take(16 * kMiB) == at);
}

TEST_CASE("allocator: whole segments that are free beyond the cap go back to the system") {
  Memory memory(kSegment, 4 * kMiB);
  void *const a = memory.take(2 * kMiB), *const b = memory.take(2 * kMiB), *const kept = memory.take(64);
  memory.give_back(a);
  CHECK(memory.stats().cached >= 2 * kMiB);
  memory.give_back(b);  // would make more than 5
  CHECK(memory.stats().cached >= 2 * kMiB);
  CHECK(memory.stats().cached <= 4 * kMiB);
  memory.set_cap(0);  // the small one's segment is in use
  CHECK(memory.stats().cached == kSegment - 2 * kHeader - 64);
  memory.give_back(kept);
  CHECK(memory.stats().cached == 0);
  memory.set_cap(kMiB);
  memory.give_back(memory.take(64));
  CHECK(memory.stats().cached == kSegment - 2 * kHeader);
  memory.trim(0);
  CHECK(memory.stats().cached == 0);
}

// Sanitizers end the process instead of letting an allocation fail.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("allocator: what is free is given back before a request fails") {
  Memory memory(kSegment, 64 * kMiB);
  memory.give_back(memory.take(4096));
  memory.give_back(memory.take(8 * kMiB));
  CHECK(memory.stats().cached > 8 * kMiB);
  for (const std::size_t bytes : {std::size_t{1} << 60, SIZE_MAX, SIZE_MAX - 64, SIZE_MAX / 2}) {
    expect_error([&] { memory.take(bytes); }, {"no memory for", std::to_string(bytes)});
  }
  CHECK(memory.stats().cached == 0);
  CHECK(memory.stats().live == 0);
  void* const at = memory.take(4096);
  std::memset(at, 1, 4096);
  memory.give_back(at);
}
#endif

// Fills each block with bytes of its own, and looks whether they are still there when it is freed.
class Filled {
 public:
  explicit Filled(Allocator& memory, unsigned seed) : memory_(memory), random_(seed) {}
  ~Filled() {
    while (!blocks_.empty()) give_back();
  }

  void take(std::size_t bytes) {
    auto* const at = static_cast<unsigned char*>(memory_.take(bytes));
    misaligned += reinterpret_cast<std::uintptr_t>(at) % 64 != 0;
    const auto value = static_cast<unsigned char>(random_());
    std::memset(at, value, bytes);
    blocks_.push_back({at, bytes, value});
  }
  void give_back() {
    std::swap(blocks_[random_() % blocks_.size()], blocks_.back());
    const auto [at, bytes, value] = blocks_.back();
    blocks_.pop_back();
    for (std::size_t i = 0; i < bytes; ++i) overwritten += at[i] != value;
    memory_.give_back(at);
  }
  std::size_t draw(std::size_t below) { return random_() % below; }
  std::size_t count() const { return blocks_.size(); }

  int misaligned = 0, overwritten = 0;

 private:
  struct Block {
    unsigned char* at;
    std::size_t bytes;
    unsigned char value;
  };
  Allocator& memory_;
  std::mt19937 random_;
  std::vector<Block> blocks_;
};

TEST_CASE("allocator: blocks of all sizes, taken and freed in any order, never overlap") {
  Allocator memory(kSegment, 2 * kMiB);
  {
    Filled blocks(memory, 1);
    for (int i = 0; i < 20000; ++i) {
      if (blocks.count() > 0 && blocks.draw(100) < (i / 2000 % 2 == 0 ? 40u : 60u)) {
        blocks.give_back();
      } else {
        blocks.take(blocks.draw(blocks.draw(50) == 0 ? 2 * kShared : 2000));
      }
    }
    CHECK(blocks.misaligned == 0);
    CHECK(blocks.overwritten == 0);
  }
  CHECK(memory.stats().live == 0);
  memory.trim(0);
  CHECK(memory.stats().cached == 0);  // all of it was whole segments again
}

TEST_CASE("allocator: several threads can take and give back at once") {
  Allocator memory(kSegment, kMiB);
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t, &wrong, &memory] {
      Filled blocks(memory, static_cast<unsigned>(t));
      for (int i = 0; i < 2000; ++i) {
        blocks.take(64 * (1 + blocks.draw(13)));
        if (blocks.count() > 8) blocks.give_back();
        if (i % 500 == 0) memory.trim(0);
      }
      wrong[static_cast<std::size_t>(t)] = blocks.misaligned + blocks.overwritten;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>{0, 0, 0, 0});
  CHECK(memory.stats().live == 0);
}

}  // namespace
}  // namespace prenorm
