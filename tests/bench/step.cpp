// Runs the steps of a workload to be timed, or lists the workloads.
//
//   step WORKLOAD THREADS       see serve.h
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "autograd/parallel.h"
#include "tests/bench/serve.h"
#include "tests/bench/workloads.h"

int main(int argc, char** argv) try {
  using namespace prenorm;
  if (argc != 3) {
    std::fprintf(stderr, "usage: step WORKLOAD THREADS\n");
    return 2;
  }
  set_num_threads(std::atoi(argv[2]));
  bench::serve(bench::make_step(argv[1]), 3, "prenorm");
} catch (const std::exception& error) {
  std::fprintf(stderr, "step: %s\n", error.what());
  return 2;
}
