#include "optim/checkpoint.h"

#include "autograd/named_tensors.h"

namespace prenorm::optim {
namespace {

constexpr std::string_view kOptimizer = "optimizer.";
constexpr std::string_view kGenerator = "generator";

}  // namespace

void save_checkpoint(const std::filesystem::path& path, const NamedTensors& model, const Optimizer& optimizer,
                     const Generator& generator, const SafetensorsMetadata& metadata) {
  NamedTensors all = model;
  for (const auto& [name, tensor] : optimizer.state_dict()) all.push_back({std::string(kOptimizer) + name, tensor});
  all.push_back({std::string(kGenerator), generator.state()});
  write_safetensors(path, all, metadata);
}

Checkpoint read_checkpoint(const std::filesystem::path& path) {
  SafetensorsFile file = read_safetensors(path);
  Checkpoint checkpoint;
  checkpoint.metadata = std::move(file.metadata);
  for (NamedTensor& named : file.tensors) {
    if (named.path == kGenerator) {
      checkpoint.generator = named.tensor;
    } else if (named.path.starts_with(kOptimizer)) {
      checkpoint.optimizer.push_back({named.path.substr(kOptimizer.size()), named.tensor});
    } else {
      checkpoint.model.push_back(std::move(named));
    }
  }
  check(checkpoint.generator.defined() && !checkpoint.optimizer.empty(), path.string(),
        ": no checkpoint of a training run: it lacks the state of ",
        checkpoint.generator.defined() ? "the optimizer" : "the random generator");
  return checkpoint;
}

void restore_checkpoint(const Checkpoint& checkpoint, const NamedTensors& model, Optimizer& optimizer,
                        Generator& generator) {
  Generator restored;
  restored.set_state(checkpoint.generator);
  match_named("checkpoint", model, checkpoint.model);
  optimizer.load_state_dict(checkpoint.optimizer);
  load_named("checkpoint", model, checkpoint.model);
  generator = restored;
}

}  // namespace prenorm::optim
