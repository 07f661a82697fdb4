// After the first steps, training asks the system for nothing more:
//
//   steady_memory_test WORKLOAD    one of tests/bench/workloads.h
//
// runs 300 steps, and compares the size of the process, and what its allocator asked of the system, with those after
// step 3.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>

#include "autograd/check.h"
#include "autograd/storage.h"
#include "tests/bench/workloads.h"

namespace {

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t size = 0, resident = 0;
  prenorm::check(static_cast<bool>(file >> size >> resident), "/proc/self/statm cannot be read");
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace

int main(int argc, char** argv) try {
  using namespace prenorm;
  if (argc != 2) {
    std::fprintf(stderr, "usage: steady_memory_test WORKLOAD\n");
    return 2;
  }
  constexpr int kEarly = 3, kLate = 300;
  constexpr std::int64_t kMiB = 1 << 20;
  const bench::Step step = bench::make_step(argv[1]);
  for (int i = 0; i < kEarly; ++i) step();
  const std::int64_t early = resident_bytes();
  const memory::Stats stats = memory::stats();
  for (int i = kEarly; i < kLate; ++i) step();
  const std::int64_t grown = resident_bytes() - early;
  const std::uint64_t asked = memory::stats().system_allocations - stats.system_allocations;
  std::printf("%s: %.1f MiB after step %d, %+.3f MiB after step %d; asked of the system meanwhile: %d times\n", argv[1],
              static_cast<double>(early) / kMiB, kEarly, static_cast<double>(grown) / kMiB, kLate,
              static_cast<int>(asked));
  check(grown <= kMiB, "the process grew by ", grown, " bytes, expected at most ", kMiB);
  check(asked == 0, "asked the system for memory ", asked, " times after step ", kEarly, ", expected none");
} catch (const std::exception& error) {
  std::fprintf(stderr, "steady_memory_test: %s\n", error.what());
  return 1;
}
