// One process: nobody to agree with.
#include <cstdio>

#include "autograd/parallel.h"
#include "training/failure.h"
#include "training/team.h"

namespace prenorm::training {

struct Team::Members {};

Team::Team() = default;
Team::~Team() = default;

int Team::rank() const { return 0; }
int Team::size() const { return 1; }
int Team::threads() const { return num_threads(); }

void Team::expect_same(std::string_view, const std::string&) const {}
void Team::broadcast(std::string&) const {}
void Team::broadcast(const NamedTensors&) const {}
void Team::sum(std::span<double>) const {}

void Team::train(const NamedTensors&, std::int64_t) {}
void Team::average_gradients() {}
void Team::expect_equal_weights() const {}

int Team::fail(std::string_view name, const std::exception& error, int code) const {
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", failure(name, error).c_str());
  return code;
}

}  // namespace prenorm::training
