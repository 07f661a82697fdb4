#include "autograd/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "autograd/check.h"

namespace prenorm {
namespace {

// Threads look for news this long before they sleep: about the gap between two ops, well below a scheduler's slice.
constexpr std::chrono::microseconds kSpin{20};

void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Spins until `word` differs from `old`, then sleeps until it does. Returns the new value.
uint32_t await_change(const std::atomic<uint32_t>& word, uint32_t old) {
  const auto deadline = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 8; ++i) {
      if (const uint32_t now = word.load(std::memory_order_acquire); now != old) return now;
      spin_pause();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  word.wait(old, std::memory_order_acquire);
  return word.load(std::memory_order_acquire);
}

// True on a worker, and on a caller while its pieces run: what they call in turn runs inline.
thread_local bool in_region = false;

int available_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// Runs one job at a time. The caller publishes it, opens the gate and takes pieces itself; a worker that wakes in time
// enters through the gate and takes pieces too. When none are left the caller shuts the gate and waits for those
// inside, so a worker that is still asleep, or that the system does not let run, costs nothing.
class Pool {
 public:
  ~Pool() { stop_workers(); }

  int threads() const { return threads_.load(std::memory_order_relaxed); }

  void set_threads(int n) {
    check(n >= 1, "set_num_threads: got ", n, ", expected at least 1");
    check(!in_region, "set_num_threads: called from within parallel work, expected a call outside it");
    const std::lock_guard lock(mutex_);
    if (n == threads()) return;
    stop_workers();
    threads_.store(n, std::memory_order_relaxed);
  }

  void run(int64_t pieces, detail::RunPiece run_piece, void* body) {
    const bool alone = pieces <= 1 || threads() == 1 || in_region;
    std::unique_lock lock(mutex_, std::defer_lock);
    if (alone || !lock.try_lock()) {
      for (int64_t piece = 0; piece < pieces; ++piece) run_piece(body, piece);
      return;
    }
    start_workers();
    job_ = {pieces, run_piece, body};
    next_.store(0, std::memory_order_relaxed);
    failed_.store(false, std::memory_order_relaxed);
    gate_.store(kOpen, std::memory_order_release);
    wake(pieces - 1);

    in_region = true;
    take_pieces();
    in_region = false;
    uint32_t inside = gate_.fetch_and(~kOpen, std::memory_order_acquire) & ~kOpen;
    while (inside != 0) inside = await_change(gate_, inside);
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  static constexpr uint32_t kOpen = 1u << 31;

  struct Job {
    int64_t pieces;
    detail::RunPiece run_piece;
    void* body;
  };

  void start_workers() {
    while (static_cast<int>(workers_.size()) < threads() - 1) {
      workers_.emplace_back([this, seen = news_.load(std::memory_order_relaxed)] { work(seen); });
    }
  }

  void stop_workers() {
    stopping_.store(true, std::memory_order_relaxed);
    wake(static_cast<int64_t>(workers_.size()));
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
    stopping_.store(false, std::memory_order_relaxed);
  }

  // Calls on at most `wanted` of the workers that sleep, as each costs a system call; those that spin see it anyway.
  void wake(int64_t wanted) {
    news_.fetch_add(1);
    if (wanted >= static_cast<int64_t>(workers_.size())) return news_.notify_all();
    for (int64_t i = 0; i < wanted; ++i) news_.notify_one();
  }

  void work(uint32_t seen) {
    in_region = true;
    for (;;) {
      seen = await_change(news_, seen);
      if (stopping_.load(std::memory_order_relaxed)) return;
      if (!enter()) continue;
      take_pieces();
      // The last one out of a shut gate tells the caller, who may have fallen asleep.
      if (gate_.fetch_sub(1, std::memory_order_release) == 1) gate_.notify_one();
    }
  }

  bool enter() {
    uint32_t state = gate_.load(std::memory_order_relaxed);
    while (state & kOpen) {
      if (gate_.compare_exchange_weak(state, state + 1, std::memory_order_acquire, std::memory_order_relaxed))
        return true;
    }
    return false;
  }

  void take_pieces() {
    const Job job = job_;
    try {
      for (int64_t piece; (piece = next_.fetch_add(1, std::memory_order_relaxed)) < job.pieces;) {
        job.run_piece(job.body, piece);
      }
    } catch (...) {
      next_.store(job.pieces, std::memory_order_relaxed);
      if (!failed_.exchange(true, std::memory_order_relaxed)) error_ = std::current_exception();
    }
  }

  std::mutex mutex_;  // held while a job runs
  std::atomic<int> threads_{available_processors()};
  std::vector<std::thread> workers_;  // started by the first job
  std::exception_ptr error_;          // the first of the job; written by whoever sets failed_
  std::atomic<bool> failed_{false};
  std::atomic<bool> stopping_{false};

  // Read by all at the start of a job, written by none while it runs.
  alignas(64) Job job_{};
  std::atomic<uint32_t> news_{0};             // changes with each job, and to stop; workers sleep on it
  std::atomic<uint32_t> gate_{0};             // kOpen while pieces may be left, plus the number of workers inside
  alignas(64) std::atomic<int64_t> next_{0};  // first piece that nobody has taken
};

Pool& pool() {
  static Pool pool;
  return pool;
}

// About 2 us of additions in vector code, several times what it costs to hand a block to a worker that is awake.
constexpr int64_t kBlockCost = 32 * 1024;
// Enough for even shares on some tens of threads; bounds the memory of reductions that keep a partial per block.
constexpr int64_t kMaxBlocks = 256;

}  // namespace

int num_threads() { return pool().threads(); }

void set_num_threads(int n) { pool().set_threads(n); }

void detail::run_pieces(int64_t pieces, RunPiece run_piece, void* body) { pool().run(pieces, run_piece, body); }

int64_t block_count(int64_t rows, int64_t cost_per_row) {
  if (rows <= 0) return 0;
  const int64_t rows_per_block = (kBlockCost - 1) / std::max<int64_t>(cost_per_row, 1) + 1;
  return std::clamp<int64_t>(rows / rows_per_block, 1, kMaxBlocks);
}

Range block_range(int64_t rows, int64_t blocks, int64_t block) {
  // The first `extra` blocks hold one row more; written so that no product can overflow.
  const int64_t size = rows / blocks, extra = rows % blocks;
  return {block * size + std::min(block, extra), (block + 1) * size + std::min(block + 1, extra)};
}

}  // namespace prenorm
