// The processes that train one model together, each on its own rows of every batch: one, or in a build with MPI those
// that mpirun started (optim/ranks.h, optim/data_parallel.h). Rank 0 leads: it alone reads and writes files and prints.
//
// All but rank(), size(), leads(), rows() and fail() is to be called by all ranks alike.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "autograd/tensor.h"

namespace prenorm::training {

class Team {
 public:
  Team();
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int rank() const;
  int size() const;
  bool leads() const { return rank() == 0; }
  int threads() const;  // that each rank is to use where nothing is said

  // Throws on all ranks where a rank's text is not the leader's.
  void expect_same(std::string_view what, const std::string& text) const;
  // The leader's bytes and values for all.
  void broadcast(std::string& bytes) const;
  void broadcast(const NamedTensors& tensors) const;
  void sum(std::span<double> values) const;

  // This rank's rows of a batch of B, from `begin` to before `end`: as many as the others' rows, or one more or less.
  struct Rows {
    std::int64_t begin, end;
    double share;  // of B
  };
  Rows rows(std::int64_t B) const {
    const std::int64_t begin = B * rank() / size(), end = B * (rank() + 1) / size();
    return {begin, end, static_cast<double>(end - begin) / static_cast<double>(B)};
  }

  // The ranks train these from now on, from the leader's values, with batches of B rows in all.
  void train(const NamedTensors& parameters, std::int64_t B);
  // To be called between backward and the update: the gradients become those of all B rows.
  void average_gradients();
  // Throws where the ranks' weights are no longer the same.
  void expect_equal_weights() const;

  // Says what went wrong, as "NAME: MESSAGE", and returns the code. With several ranks, tells which one it was and ends
  // them all.
  int fail(std::string_view name, const std::exception& error, int code) const;

 private:
  struct Members;
  std::unique_ptr<Members> members_;
};

}  // namespace prenorm::training
