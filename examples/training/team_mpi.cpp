// The processes that mpirun started.
#include <cstdio>
#include <optional>

#include "optim/data_parallel.h"
#include "optim/ranks.h"
#include "training/failure.h"
#include "training/team.h"

namespace prenorm::training {

struct Team::Members {
  optim::Ranks ranks;
  std::optional<optim::DataParallel> parallel;
};

Team::Team() : members_(std::make_unique<Members>()) {}
Team::~Team() = default;

int Team::rank() const { return members_->ranks.rank(); }
int Team::size() const { return members_->ranks.size(); }
int Team::threads() const { return members_->ranks.processors(); }

void Team::expect_same(std::string_view what, const std::string& text) const {
  members_->ranks.expect_same(what, text);
}
void Team::broadcast(std::string& bytes) const { members_->ranks.broadcast(bytes); }
void Team::broadcast(const NamedTensors& tensors) const { members_->ranks.broadcast(tensors); }
void Team::sum(std::span<double> values) const { members_->ranks.sum(values); }

void Team::train(const NamedTensors& parameters, std::int64_t B) {
  members_->parallel.emplace(members_->ranks, parameters);
  members_->parallel->set_share(rows(B).share);
}

void Team::average_gradients() { members_->parallel->finish(); }
void Team::expect_equal_weights() const { members_->parallel->expect_equal(); }

int Team::fail(std::string_view name, const std::exception& error, int code) const {
  if (size() > 1) {
    // The leader reports what all ranks have alike, and ends the others while they wait.
    if (!leads() && dynamic_cast<const optim::CommonError*>(&error) != nullptr) members_->ranks.barrier();
    members_->ranks.abort(failure(name, error), code);
  }
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", failure(name, error).c_str());
  return code;
}

}  // namespace prenorm::training
