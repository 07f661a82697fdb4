// Threads: one pool of workers, one way to cut a loop.
//
// parallel_for runs numbered pieces; parallel_rows cuts rows into blocks and runs those. What a piece is must never
// depend on which thread runs it or when, so that results repeat bit for bit. parallel_rows takes care of this: its
// bounds come from the problem alone, never from the number of threads.
//
// Pieces may run on workers: they must not touch a Tensor, and should not allocate. std::thread rather than OpenMP:
// OpenMP's idle threads spin for long, and ThreadSanitizer cannot see through its runtime.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace prenorm {

// Threads that parallel work uses, counting the caller. At the start: the processors this process may run on.
int num_threads();

// Sets the number of threads, n >= 1. Waits for running parallel work of other threads to end; an Error from within it.
void set_num_threads(int n);

namespace detail {
using RunPiece = void (*)(void* body, int64_t piece);
void run_pieces(int64_t pieces, RunPiece run_piece, void* body);
}  // namespace detail

// Calls f(piece) once for each piece in [0, pieces), on the caller and the workers, and returns when all have ended.
// An exception from a piece reaches the caller: the first one wins, and pieces not yet begun are skipped.
// std::system_error if a worker cannot be started.
// Within a piece, or while another thread's call has the workers, the same pieces run in order on the calling thread.
template <class F>
void parallel_for(int64_t pieces, F&& f) {
  using Body = std::remove_reference_t<F>;
  const auto run = [](void* body, int64_t piece) { (*static_cast<Body*>(body))(piece); };
  detail::run_pieces(pieces, run, const_cast<void*>(static_cast<const void*>(std::addressof(f))));
}

struct Range {
  int64_t begin, end;
};

// The blocks parallel_rows cuts `rows` rows into, for loops that need the number of a block: a sum over rows keeps one
// partial per block and adds the partials in order, and so repeats bit for bit with any number of threads.
// cost_per_row: the elements of a row times the simple passes over each (an addition is one), as a rough figure; exp, a
// division or a random number count as about 4. Work below about 64k of these stays in one block. At most 256 blocks.
int64_t block_count(int64_t rows, int64_t cost_per_row);
Range block_range(int64_t rows, int64_t blocks, int64_t block);

// Calls f(begin, end) for each block of rows, in parallel.
template <class F>
void parallel_rows(int64_t rows, int64_t cost_per_row, F&& f) {
  const int64_t blocks = block_count(rows, cost_per_row);
  parallel_for(blocks, [&](int64_t block) {
    const auto [begin, end] = block_range(rows, blocks, block);
    f(begin, end);
  });
}

}  // namespace prenorm
