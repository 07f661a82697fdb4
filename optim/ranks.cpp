#include "optim/ranks.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <sstream>
#include <thread>
#include <vector>

#include "optim/mpi_calls.h"

namespace prenorm::optim {
namespace {

constexpr std::uint64_t kPiece = std::uint64_t{1} << 30;  // MPI counts in int

void broadcast_bytes(MPI_Comm world, void* data, std::uint64_t bytes, int root = 0) {
  auto* at = static_cast<char*>(data);
  while (bytes > 0) {
    const std::uint64_t piece = std::min(bytes, kPiece);
    check_mpi(MPI_Bcast(at, static_cast<int>(piece), MPI_BYTE, root, world), "MPI_Bcast");
    at += piece;
    bytes -= piece;
  }
}

void broadcast_text(MPI_Comm world, std::string& text, int root = 0) {
  std::uint64_t size = text.size();
  broadcast_bytes(world, &size, sizeof size, root);
  text.resize(size);
  broadcast_bytes(world, text.data(), size, root);
}

// The line of `text` with that number, from 0.
std::string line_of(const std::string& text, std::size_t number) {
  std::istringstream lines(text);
  std::string line;
  for (std::size_t i = 0; i <= number; ++i) {
    if (!std::getline(lines, line)) return "nothing";
  }
  return '\'' + line + '\'';
}

std::size_t first_difference(const std::string& a, const std::string& b) {
  const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
  return static_cast<std::size_t>(std::count(a.begin(), end, '\n'));
}

}  // namespace

Ranks::Ranks() : communicators_(std::make_unique<Communicators>()), exceptions_(std::uncaught_exceptions()) {
  int begun = 0, level = 0;
  check_mpi(MPI_Initialized(&begun), "MPI_Initialized");
  check(begun == 0, "Ranks: MPI has begun already; there is one Ranks in the life of a process");
  // Workers (autograd/parallel.h) make no calls of MPI.
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level), "MPI_Init_thread");
  Communicators& c = *communicators_;
  c.world = duplicate(MPI_COMM_WORLD);
  check_mpi(MPI_Comm_rank(c.world, &c.rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(c.world, &c.size), "MPI_Comm_size");
}

Ranks::~Ranks() {
  if (std::uncaught_exceptions() > exceptions_) abort("leaves because of an exception");
  try {
    barrier();
  } catch (const Error& error) {
    abort(error.what());
  }
  MPI_Finalize();
}

int Ranks::rank() const { return communicators_->rank; }
int Ranks::size() const { return communicators_->size; }

int Ranks::processors() const {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) CPU_ZERO(&mine);
  MPI_Comm host = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(communicators_->world, MPI_COMM_TYPE_SHARED, rank(), MPI_INFO_NULL, &host),
            "MPI_Comm_split_type");
  int neighbours = 0;
  check_mpi(MPI_Comm_size(host, &neighbours), "MPI_Comm_size");
  std::vector<cpu_set_t> all(static_cast<std::size_t>(neighbours));
  check_mpi(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, host), "MPI_Allgather");
  check_mpi(MPI_Comm_free(&host), "MPI_Comm_free");
  const auto sharing = std::count_if(all.begin(), all.end(), [&](const cpu_set_t& other) {
    cpu_set_t common;
    CPU_AND(&common, &mine, &other);
    return CPU_COUNT(&common) > 0;
  });
  return std::max(1, static_cast<int>(CPU_COUNT(&mine) / std::max<std::ptrdiff_t>(1, sharing)));
}

void Ranks::barrier() const {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibarrier(communicators_->world, &request), "MPI_Ibarrier");
  const auto start = std::chrono::steady_clock::now();
  for (int done = 0; done == 0;) {
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    // MPI_Wait would spin, and take the time of whoever is waited for.
    if (done == 0 && std::chrono::steady_clock::now() - start > std::chrono::milliseconds(20)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

void Ranks::broadcast(std::string& bytes) const { broadcast_text(communicators_->world, bytes); }

void Ranks::broadcast(const NamedTensors& tensors) const {
  std::ostringstream names;
  for (const auto& [path, tensor] : tensors) {
    check(tensor.defined() && tensor.is_contiguous(), "broadcast: '", path, "' is not contiguous");
    names << path << ' ' << tensor.shape() << ' ' << tensor.dtype() << '\n';
  }
  expect_same("tensors", names.str());
  for (const auto& [path, tensor] : tensors) {
    dispatch(tensor.dtype(), [&](auto type) {
      using T = decltype(type);
      broadcast_bytes(communicators_->world, tensor.mutable_data<T>(),
                      static_cast<std::uint64_t>(tensor.numel()) * sizeof(T));
    });
  }
}

void Ranks::sum(std::span<double> values) const {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Iallreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_SUM,
                           communicators_->world, &request),
            "MPI_Iallreduce");
  wait_for(request);
}

void Ranks::expect_same(std::string_view what, const std::string& text) const {
  std::string first = text;
  broadcast(first);
  int odd = text == first ? size() : rank(), first_odd = 0;
  check_mpi(MPI_Allreduce(&odd, &first_odd, 1, MPI_INT, MPI_MIN, communicators_->world), "MPI_Allreduce");
  if (first_odd == size()) return;
  std::string difference;
  if (first_odd == rank()) {
    const std::size_t line = first_difference(first, text);
    difference = line_of(text, line) + ", there " + line_of(first, line);
  }
  broadcast_text(communicators_->world, difference, first_odd);
  std::ostringstream message;
  message << "rank " << first_odd << " has other " << what << " than rank 0: " << difference;
  throw CommonError(message.str());
}

void Ranks::abort(std::string_view reason, int code) const {
  std::fflush(stdout);
  std::fprintf(stderr, "rank %d of %d: %.*s\n", rank(), size(), static_cast<int>(reason.size()), reason.data());
  std::fflush(stderr);
  MPI_Abort(communicators_->world, code);
  std::terminate();  // not reached
}

}  // namespace prenorm::optim
