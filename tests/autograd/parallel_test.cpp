#include "autograd/parallel.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "autograd/check.h"

using namespace prenorm;

namespace {

// Sets the number of threads for a scope.
class Threads {
 public:
  explicit Threads(int n) : before_(num_threads()) { set_num_threads(n); }
  ~Threads() { set_num_threads(before_); }

 private:
  int before_;
};

// True if parallel_for over `pieces` runs each of them exactly once.
bool runs_each_once(int64_t pieces) {
  std::vector<int> runs(static_cast<std::size_t>(pieces));  // plain ints: a piece run twice at once is a data race
  parallel_for(pieces, [&](int64_t piece) { ++runs[static_cast<std::size_t>(piece)]; });
  for (const int n : runs) {
    if (n != 1) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("parallel_for runs every piece exactly once") {
  for (const int threads : {1, 2, 3, 4, 9}) {
    const Threads setting(threads);
    CHECK(num_threads() == threads);
    for (const int64_t pieces : {0, 1, 2, 3, 4, 7, 64, 1000}) {
      CAPTURE(threads);
      CAPTURE(pieces);
      for (int i = 0; i < 20; ++i) REQUIRE(runs_each_once(pieces));
    }
  }
}

TEST_CASE("parallel_for uses its workers, also when they have gone to sleep") {
  const Threads setting(2);
  for (int i = 0; i < 3; ++i) {
    std::atomic<int> here{0};
    // Each piece waits for the other, so this ends only if two threads take part.
    parallel_for(2, [&](int64_t) {
      ++here;
      while (here < 2) std::this_thread::yield();
    });
    CHECK(here == 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST_CASE("what pieces write is seen after parallel_for") {
  const Threads setting(3);
  std::vector<int64_t> values(256);
  for (int64_t round = 0; round < 2000; ++round) {
    parallel_for(8, [&](int64_t piece) {
      for (int64_t i = piece * 32; i < (piece + 1) * 32; ++i) values[static_cast<std::size_t>(i)] += i + round;
    });
  }
  bool right = true;
  for (int64_t i = 0; i < 256; ++i) right &= values[static_cast<std::size_t>(i)] == 2000 * i + 1999 * 1000;
  CHECK(right);
}

TEST_CASE("a callable may be const, an lvalue or stateful") {
  const Threads setting(2);
  std::atomic<int64_t> sum{0};
  const auto add = [&sum](int64_t piece) { sum += piece; };
  parallel_for(10, add);
  CHECK(sum == 45);
  struct Counter {
    std::atomic<int> calls{0};
    void operator()(int64_t) { ++calls; }
  } counter;
  parallel_for(10, counter);
  CHECK(counter.calls == 10);
}

TEST_CASE("nested calls run inline, on the thread of the outer piece") {
  const Threads setting(3);
  std::atomic<int64_t> inner_pieces{0};
  std::atomic<bool> moved{false};
  parallel_for(6, [&](int64_t) {
    const std::thread::id outer = std::this_thread::get_id();
    int64_t expected = 0;
    parallel_for(50, [&](int64_t piece) {
      if (std::this_thread::get_id() != outer || piece != expected++) moved = true;
      ++inner_pieces;
    });
  });
  CHECK(inner_pieces == 300);
  CHECK_FALSE(moved);
}

TEST_CASE("concurrent calls from several threads all finish") {
  const Threads setting(3);
  std::atomic<int> wrong{0};
  const auto caller = [&] {
    for (int i = 0; i < 500; ++i) {
      if (!runs_each_once(i % 17)) ++wrong;
    }
  };
  std::thread one(caller), two(caller);
  caller();
  one.join();
  two.join();
  CHECK(wrong == 0);
}

TEST_CASE("set_num_threads waits for the work of other threads") {
  const Threads setting(2);
  std::atomic<int> wrong{0};
  std::thread other([&] {
    for (int i = 0; i < 300; ++i) {
      if (!runs_each_once(8)) ++wrong;
    }
  });
  for (int i = 0; i < 60; ++i) {
    set_num_threads(1 + i % 4);
    if (!runs_each_once(5)) ++wrong;
  }
  other.join();
  CHECK(wrong == 0);
}

TEST_CASE("an exception from a piece reaches the caller, and the pool lives on") {
  for (const int threads : {1, 2, 4}) {
    const Threads setting(threads);
    CAPTURE(threads);
    for (int64_t thrower = 0; thrower < 40; ++thrower) {
      std::atomic<int> runs{0};
      CHECK_THROWS_WITH_AS(parallel_for(40,
                                        [&](int64_t piece) {
                                          ++runs;
                                          if (piece == thrower) throw std::runtime_error("from a piece");
                                        }),
                           "from a piece", std::runtime_error);
      CHECK(runs > thrower);
      CHECK(runs <= 40);
      REQUIRE(runs_each_once(10));
    }
  }
}

TEST_CASE("when all pieces throw, one exception arrives") {
  const Threads setting(4);
  for (int i = 0; i < 100; ++i) {
    try {
      parallel_for(16, [](int64_t piece) { throw piece; });
      FAIL("nothing was thrown");
    } catch (int64_t piece) {
      CHECK(piece < 16);
    }
  }
}

TEST_CASE("an exception from a nested call passes through both") {
  const Threads setting(3);
  CHECK_THROWS_AS(
      parallel_for(8, [](int64_t) { parallel_for(8, [](int64_t piece) { check(piece < 5, "inner piece ", piece); }); }),
      Error);
  CHECK(runs_each_once(30));
}

TEST_CASE("set_num_threads refuses what cannot be") {
  CHECK_THROWS_WITH_AS(set_num_threads(0), "set_num_threads: got 0, expected at least 1", Error);
  CHECK_THROWS_AS(set_num_threads(-3), Error);
  const Threads setting(2);
  CHECK_THROWS_AS(parallel_for(2, [](int64_t) { set_num_threads(3); }), Error);
  CHECK(num_threads() == 2);
}

TEST_CASE("blocks cover the rows in order and do not depend on the number of threads") {
  for (const int64_t rows : std::initializer_list<int64_t>{0, 1, 2, 31, 1000, 1024, 65537, 10'000'000, INT64_MAX / 2}) {
    for (const int64_t cost : std::initializer_list<int64_t>{0, 1, 64, 4096, 1 << 20, INT64_MAX}) {
      CAPTURE(rows);
      CAPTURE(cost);
      const int64_t blocks = block_count(rows, cost);
      CHECK((blocks == 0) == (rows == 0));
      CHECK(blocks <= 256);
      CHECK(blocks <= rows);
      int64_t next = 0, shortest = rows, longest = 0;
      for (int64_t block = 0; block < blocks; ++block) {
        const auto [begin, end] = block_range(rows, blocks, block);
        CHECK(begin == next);
        next = end;
        shortest = std::min(shortest, end - begin);
        longest = std::max(longest, end - begin);
      }
      CHECK(next == rows);
      CHECK(longest - shortest <= 1);
      for (const int threads : {1, 3}) {
        const Threads setting(threads);
        CHECK(block_count(rows, cost) == blocks);
      }
    }
  }
}

TEST_CASE("parallel_rows visits every row once; a sum over blocks has the same bits with any number of threads") {
  constexpr int64_t kRows = 5000, kCost = 100;
  std::vector<float> x(kRows);
  for (int64_t i = 0; i < kRows; ++i) x[static_cast<std::size_t>(i)] = 1.0f / static_cast<float>(i + 1);
  std::vector<float> sums;
  for (const int threads : {1, 2, 3, 5}) {
    const Threads setting(threads);
    std::vector<int> visits(kRows);
    parallel_rows(kRows, kCost, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) ++visits[static_cast<std::size_t>(row)];
    });
    CHECK(visits == std::vector<int>(kRows, 1));

    const int64_t blocks = block_count(kRows, kCost);
    CHECK(blocks > 1);
    std::vector<float> partial(static_cast<std::size_t>(blocks));
    parallel_for(blocks, [&](int64_t block) {
      const auto [begin, end] = block_range(kRows, blocks, block);
      for (int64_t row = begin; row < end; ++row) {
        partial[static_cast<std::size_t>(block)] += x[static_cast<std::size_t>(row)];
      }
    });
    sums.push_back(std::accumulate(partial.begin(), partial.end(), 0.0f));
  }
  for (const float sum : sums) CHECK(sum == sums.front());
}
