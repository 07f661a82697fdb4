// Times the steps of a workload that the ranks of an MPI job share, one thread each: mpirun -n N mpi_step WORKLOAD
// STEPS
//
// Rank 0 prints {"workload", "ranks", "ms": [of each step], "hooks_ms", "waiting_ms": a step, inside MPI's calls,
// "bytes": of the gradients}.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "autograd/parallel.h"
#include "optim/data_parallel.h"
#include "tests/bench/workloads.h"

namespace {

using namespace prenorm;

void run(const optim::Ranks& ranks, const std::string& workload, int steps) {
  std::optional<optim::DataParallel> parallel;
  std::size_t bytes = 0;
  const bench::Step step = bench::make_step(workload, {.rank = ranks.rank(),
                                                       .size = ranks.size(),
                                                       .begin =
                                                           [&](const NamedTensors& parameters) {
                                                             for (const auto& [path, p] : parameters)
                                                               bytes += p.numel() * sizeof(float);
                                                             parallel.emplace(ranks, parameters);
                                                           },
                                                       .finish = [&] { parallel->finish(); }});
  for (int i = 0; i < 3; ++i) step();
  const optim::DataParallel::Statistics before = parallel->statistics();
  nlohmann::json times = nlohmann::json::array();
  for (int i = 0; i < steps; ++i) {
    ranks.barrier();
    const auto start = std::chrono::steady_clock::now();
    step();
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  const optim::DataParallel::Statistics& after = parallel->statistics();
  if (ranks.rank() != 0) return;
  std::cout << nlohmann::json{{"workload", workload},
                              {"ranks", ranks.size()},
                              {"ms", times},
                              {"hooks_ms", (after.calls - before.calls) * 1e3 / steps},
                              {"waiting_ms", (after.waiting - before.waiting) * 1e3 / steps},
                              {"bytes", bytes}}
            << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: mpirun -n N mpi_step WORKLOAD STEPS\n");
    return 2;
  }
  set_num_threads(1);
  const optim::Ranks ranks;
  try {
    run(ranks, argv[1], std::atoi(argv[2]));
  } catch (const std::exception& error) {
    ranks.abort(error.what(), 2);
  }
}
