// Data-parallel training (Li et al. 2020, "PyTorch Distributed", section 3): every rank has the whole model and its own
// rows of each batch; gradients are averaged over the ranks before the update, so that all make the same one.
//
//   optim::Ranks ranks;
//   optim::DataParallel parallel(ranks, adam.parameters());
//   …
//   loss_of_my_rows.backward();   // averaging begins while this still runs
//   parallel.finish();
//   clip_grad_norm_(…); adam.step();
//
// Gradients travel in buckets of whole parameters, at least bucket_bytes each but for the last, in the reverse order of
// the list, which is about the order in which backward makes them final. Each is summed by a non-blocking all-reduce,
// always in this order, begun when the last gradient of the bucket and of those before is final: the parameters' post
// accumulate hooks tell. MPI makes progress only inside its calls, so each hook makes one.
//
// Rows: with the default share of 1 / size, the result is the mean of the ranks' gradients, right for losses that are
// means over equally many rows. Where a rank has r of R rows, its share is r / R. Then the result is the gradient of
// the mean over all R rows, as on one process but for rounding.
//
// Random numbers are not this class's affair. Ranks that are to take rows of one batch all draw the whole batch, from
// equal generators. Dropout layers would then draw equal masks for different rows and, with unequal shares, leave the
// generators unequal: give each rank a seed of its own for the forward, and put the generator back afterwards. Their
// masks are others than those of one process.
//
// Ranks whose processors differ in vector width may round differently (autograd/vectorized.h), and weights part in the
// last bits: expect_equal() tells.
#pragma once

#include <cstdint>
#include <memory>

#include "autograd/tensor.h"
#include "optim/ranks.h"

namespace prenorm::optim {

struct DataParallelOptions {
  std::int64_t bucket_bytes = 1 << 20;
};

class DataParallel {
 public:
  // Gives all ranks rank 0's values of the parameters, and registers the hooks; frozen parameters are broadcast, but
  // have no gradients to average. Collective, like expect_equal() and finish(). `ranks` must outlive this.
  DataParallel(const Ranks& ranks, const NamedTensors& parameters, DataParallelOptions options = {});
  // Between backward and finish() the ranks are in the middle of something: memory they still write to is kept then.
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  // What this rank's gradients count for, from the next backward on. The shares of all ranks add up to 1.
  void set_share(double share);

  // For gradients that several calls of backward add up: all but the last are made in between. No averaging is begun.
  void pause();
  void resume();

  // Waits for the averages, and stores them in grad(). To be called once a step, after backward and before anything
  // reads or changes gradients. A parameter without a gradient sends zeros; where no rank had one it stays absent.
  // Throws Error on MPI's errors, CommonError where the shares do not add up to 1.
  void finish();

  // Throws CommonError where a rank's parameters are not those of rank 0, bit for bit.
  void expect_equal() const;

  struct Statistics {
    std::int64_t buckets = 0;       // of all steps
    std::int64_t begun_early = 0;   // of these, before finish()
    double calls = 0, waiting = 0;  // seconds inside MPI: from the hooks, and waiting in finish()
  };
  const Statistics& statistics() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace prenorm::optim
