#include "optim/data_parallel.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "autograd/vectorized.h"
#include "optim/mpi_calls.h"

namespace prenorm::optim {
namespace {

MPI_Datatype mpi_type(DType dtype) { return dtype == float64 ? MPI_DOUBLE : MPI_FLOAT; }

template <class T>
PRENORM_VECTORIZED void scaled(std::int64_t n, T factor, const T* x, T* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = factor * x[i];
}

// Adds the time until its end to `total`.
class Stopwatch {
 public:
  explicit Stopwatch(double& total) : total_(total) {}
  ~Stopwatch() { total_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& total_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// A hash of the bytes, 8 at a time (FNV-1a on words).
std::uint64_t hash_of(const Tensor& tensor, std::uint64_t hash) {
  const auto* at =
      static_cast<const char*>(tensor.storage()->data()) + tensor.storage_offset() * size_of(tensor.dtype());
  const auto bytes = static_cast<std::size_t>(tensor.numel() * size_of(tensor.dtype()));
  for (std::size_t i = 0; i < bytes; i += sizeof hash) {
    std::uint64_t word = 0;
    std::memcpy(&word, at + i, std::min(sizeof word, bytes - i));
    hash = (hash ^ word) * 1099511628211U;
  }
  return hash;
}

// A parameter in its bucket.
struct Member {
  NamedTensor parameter;
  std::int64_t offset;
  bool final = false;  // its gradient is in the bucket
};

// What one all-reduce sums: the gradients, for each member 1 where it has a gradient, and the shares.
struct Bucket {
  std::vector<Member> members;
  std::int64_t gradients = 0;  // elements
  Tensor values;
  std::size_t waits_for = 0;  // members whose gradient is not final

  DType dtype() const { return members.front().parameter.tensor.dtype(); }
  std::int64_t size() const { return gradients + static_cast<std::int64_t>(members.size()) + 1; }
};

std::vector<Bucket> buckets_of(const NamedTensors& parameters, std::int64_t bucket_bytes) {
  std::vector<Bucket> buckets;
  bool full = true;
  for (auto it = parameters.rbegin(); it != parameters.rend(); ++it) {
    const Tensor& parameter = it->tensor;
    if (!parameter.requires_grad()) continue;
    if (full || buckets.back().dtype() != parameter.dtype()) buckets.emplace_back();
    Bucket& bucket = buckets.back();
    bucket.members.push_back({*it, bucket.gradients});
    bucket.gradients += parameter.numel();
    full = bucket.gradients * size_of(parameter.dtype()) >= bucket_bytes;
    check(bucket.size() <= std::numeric_limits<int>::max(), "DataParallel: '", it->path, "' of ", parameter.shape(),
          " makes a bucket of more elements than MPI can count (2^31); choose a smaller bucket_bytes, or split it");
  }
  return buckets;
}

}  // namespace

struct DataParallel::State {
  const Ranks& ranks;
  NamedTensors parameters;
  MPI_Comm communicator = MPI_COMM_NULL;
  std::vector<Bucket> buckets;
  std::vector<MPI_Request> requests;  // one a bucket
  std::size_t begun = 0;              // buckets
  bool any_final = false;
  bool paused = false;
  double share;
  std::vector<std::function<void()>> hooks;  // each removes one
  Statistics statistics;

  explicit State(const Ranks& r) : ranks(r), share(1.0 / r.size()) {}
  void reset();
  void put(Bucket& bucket, std::size_t member);
  void on_final(std::size_t bucket, std::size_t member);
  void begin_next();
  void make_progress();
  void take(const Bucket& bucket) const;
};

void DataParallel::State::reset() {
  for (Bucket& bucket : buckets) {
    bucket.waits_for = bucket.members.size();
    for (Member& member : bucket.members) member.final = false;
  }
  std::fill(requests.begin(), requests.end(), MPI_REQUEST_NULL);
  begun = 0;
  any_final = false;
}

// Copies the gradient into the bucket, multiplied by the share; zeros where there is none.
void DataParallel::State::put(Bucket& bucket, std::size_t index) {
  Member& member = bucket.members[index];
  const Tensor& parameter = member.parameter.tensor;
  const NoGrad no_grad;
  const Tensor gradient = parameter.grad();
  dispatch_float("DataParallel", bucket.dtype(), [&](auto type) {
    using T = decltype(type);
    T* values = bucket.values.mutable_data<T>();
    if (gradient.defined()) {
      const Tensor dense = contiguous(gradient);
      scaled(dense.numel(), static_cast<T>(share), dense.data<T>(), values + member.offset);
    } else {
      std::fill_n(values + member.offset, parameter.numel(), T{0});
    }
    values[bucket.gradients + static_cast<std::int64_t>(index)] = gradient.defined() ? T{1} : T{0};
  });
  member.final = true;
  --bucket.waits_for;
}

void DataParallel::State::on_final(std::size_t b, std::size_t m) {
  Bucket& bucket = buckets[b];
  check(!bucket.members[m].final, "DataParallel: the gradient of '", bucket.members[m].parameter.path,
        "' has changed after its averaging began; finish() each backward, or pause() for all but the last");
  if (paused) return;
  any_final = true;
  put(bucket, m);
  while (begun < buckets.size() && buckets[begun].waits_for == 0) {
    begin_next();
    ++statistics.begun_early;
  }
  make_progress();
}

// The order is the same on all ranks, whichever gradients they lack: collective calls meet by their order.
void DataParallel::State::begin_next() {
  const Stopwatch stopwatch(statistics.calls);
  Bucket& bucket = buckets[begun];
  dispatch_float("DataParallel", bucket.dtype(), [&](auto type) {
    using T = decltype(type);
    T* values = bucket.values.mutable_data<T>();
    values[bucket.size() - 1] = static_cast<T>(share);
    check_mpi(MPI_Iallreduce(MPI_IN_PLACE, values, static_cast<int>(bucket.size()), mpi_type(bucket.dtype()), MPI_SUM,
                             communicator, &requests[begun]),
              "MPI_Iallreduce");
  });
  ++begun;
  ++statistics.buckets;
}

void DataParallel::State::make_progress() {
  if (begun == 0) return;
  const Stopwatch stopwatch(statistics.calls);
  int all_done = 0;
  check_mpi(MPI_Testall(static_cast<int>(begun), requests.data(), &all_done, MPI_STATUSES_IGNORE), "MPI_Testall");
}

// Copies the averages out of the bucket, into gradients with memory of their own.
void DataParallel::State::take(const Bucket& bucket) const {
  dispatch_float("DataParallel", bucket.dtype(), [&](auto type) {
    using T = decltype(type);
    const T* values = bucket.values.data<T>();
    const double shares = values[bucket.size() - 1];
    if (!(std::abs(shares - 1) < 1e-4)) {
      std::ostringstream message;
      message << "DataParallel: the shares of the ranks add up to " << shares << ", expected 1";
      throw CommonError(message.str());
    }
    for (std::size_t i = 0; i < bucket.members.size(); ++i) {
      if (values[bucket.gradients + static_cast<std::int64_t>(i)] == 0) continue;
      const Tensor& parameter = bucket.members[i].parameter.tensor;
      Tensor gradient = parameter.grad();
      if (!gradient.defined() || !gradient.is_contiguous()) {
        gradient = Tensor::empty(parameter.shape(), parameter.dtype());
        parameter.set_grad(gradient);
      }
      std::copy_n(values + bucket.members[i].offset, parameter.numel(), gradient.mutable_data<T>());
    }
  });
}

DataParallel::DataParallel(const Ranks& ranks, const NamedTensors& parameters, DataParallelOptions options)
    : state_(std::make_unique<State>(ranks)) {
  check(options.bucket_bytes > 0, "DataParallel: bucket_bytes is positive, got ", options.bucket_bytes);
  State& state = *state_;
  state.parameters = parameters;
  std::ostringstream trained;
  for (const auto& [path, parameter] : parameters) {
    check(parameter.defined() && parameter.is_leaf() && is_float(parameter.dtype()) && parameter.is_contiguous(),
          "DataParallel: '", path, "' is no parameter: expected a contiguous leaf of a float type");
    trained << path << (parameter.requires_grad() ? "\n" : ", frozen\n");
  }
  ranks.expect_same("parameters", trained.str());
  ranks.expect_same("bucket_bytes", std::to_string(options.bucket_bytes));
  ranks.broadcast(parameters);
  state.communicator = duplicate(ranks.communicators().world);

  state.buckets = buckets_of(parameters, options.bucket_bytes);
  state.requests.assign(state.buckets.size(), MPI_REQUEST_NULL);
  for (std::size_t b = 0; b < state.buckets.size(); ++b) {
    Bucket& bucket = state.buckets[b];
    bucket.values = Tensor::empty({bucket.size()}, bucket.dtype());
    for (std::size_t m = 0; m < bucket.members.size(); ++m) {
      state.hooks.push_back(bucket.members[m].parameter.tensor.register_post_accumulate_hook(
          [&state, b, m](const Tensor&) { state.on_final(b, m); }));
    }
  }
  state.reset();
}

DataParallel::~DataParallel() {
  for (const auto& remove : state_->hooks) remove();
  const bool running = std::any_of(state_->requests.begin(), state_->requests.end(),
                                   [](MPI_Request request) { return request != MPI_REQUEST_NULL; });
  if (running) {
    state_.release();  // an all-reduce cannot be called off, and writes to the buckets
  } else if (std::uncaught_exceptions() == 0 && state_->communicator != MPI_COMM_NULL) {
    MPI_Comm_free(&state_->communicator);  // collective
  }
}

void DataParallel::set_share(double share) {
  check(share >= 0 && share <= 1, "DataParallel: a share is from 0 to 1, got ", share);
  check(!state_->any_final, "DataParallel: set_share() between backward and finish()");
  state_->share = share;
}

void DataParallel::pause() { state_->paused = true; }
void DataParallel::resume() { state_->paused = false; }

void DataParallel::finish() {
  State& state = *state_;
  while (state.begun < state.buckets.size()) {
    Bucket& bucket = state.buckets[state.begun];
    for (std::size_t m = 0; m < bucket.members.size(); ++m) {
      if (!bucket.members[m].final) state.put(bucket, m);
    }
    state.begin_next();
  }
  for (std::size_t b = 0; b < state.buckets.size(); ++b) {
    {
      const Stopwatch stopwatch(state.statistics.waiting);
      wait_for(state.requests[b]);
    }
    state.take(state.buckets[b]);
  }
  state.reset();
}

void DataParallel::expect_equal() const {
  std::ostringstream hashes;
  for (const auto& [path, parameter] : state_->parameters) {
    hashes << path << " hash " << std::hex << hash_of(parameter, 14695981039346656037U) << '\n';
  }
  state_->ranks.expect_same("weights", hashes.str());
}

const DataParallel::Statistics& DataParallel::statistics() const { return state_->statistics; }

}  // namespace prenorm::optim
