// The processes of one training run: which one this is, and what they do together. Only in builds with MPI (preset
// `mpi`); the engine is MPI's own, started by `mpirun -n N PROGRAM`. Without mpirun there is one rank.
//
// All calls but rank(), size() and abort() are collective: every rank makes the same ones in the same order. They are
// made by the thread that made the object. An error of MPI throws Error; so that a rank that fails does not leave the
// others waiting for ever, main() gives what it catches to abort().
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "autograd/check.h"
#include "autograd/tensor.h"

namespace prenorm::optim {

// An error that all ranks have at the same place, in the same words: one of them need report it.
class CommonError : public Error {
 public:
  using Error::Error;
};

class Ranks {
 public:
  // Joins the others. At most one in the life of a process, as MPI has it.
  Ranks();
  // Waits for the others, and leaves. While an exception passes, the others would wait in vain: it aborts then.
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const;  // 0 … size() - 1
  int size() const;
  // This rank's share of the processors that it may run on: their number over that of the ranks on this host that may
  // run on the same ones, at least 1. (mpirun binds ranks to one processor each unless told --bind-to none.)
  int processors() const;

  // Returns once all have called it. Waiting for long costs no processor time.
  void barrier() const;
  // Rank 0's bytes for all. Lengths are rank 0's, too.
  void broadcast(std::string& bytes) const;
  // Rank 0's values into the tensors of all, in place; they are contiguous. Throws where the ranks' names, shapes or
  // dtypes differ.
  void broadcast(const NamedTensors& tensors) const;
  // The sum over the ranks, element by element: the same bits on all, and from run to run with as many ranks.
  void sum(std::span<double> values) const;
  // Throws CommonError where a rank's text is not that of rank 0; it shows the first line that differs.
  void expect_same(std::string_view what, const std::string& text) const;

  // Ends all ranks at once, with `code` as the exit code of the job, after a line "rank 1 of 4: REASON" on stderr.
  [[noreturn]] void abort(std::string_view reason, int code = 1) const;

  struct Communicators;  // optim/mpi_calls.h
  const Communicators& communicators() const { return *communicators_; }

 private:
  std::unique_ptr<Communicators> communicators_;
  int exceptions_;  // that were passing when this was made
};

}  // namespace prenorm::optim
