#include "optim/checkpoint.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "autograd/ops.h"
#include "nn/tiny_lm.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "support.h"

namespace prenorm::optim {
namespace {

using Doubles = std::vector<double>;
namespace fs = std::filesystem;

struct Folder {
  const fs::path path = fs::temp_directory_path() / ("prenorm_checkpoint_" + std::to_string(getpid()));
  const fs::path file = path / "run.safetensors";
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};

// A run with everything that draws random numbers: initial weights, dropout, shuffling, normals one at a time.
struct Training {
  explicit Training(std::uint64_t seed)
      : model((manual_seed(seed),
               nn::TinyLM(7, {.d_model = 8, .n_heads = 2, .n_layers = 1, .max_len = 6, .dropout = 0.2}))),
        optimizer(model.parameters(), {.lr = 0.01, .amsgrad = true}) {}

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      const Tensor order = randperm(12);
      const Tensor ids = mod(reshape(order, {2, 6}), 7);
      optimizer.zero_grad();
      cross_entropy(model(ids), mod(ids + 1, 7)).backward();
      // An odd number of normals leaves one in the generator.
      for (const auto& [path, parameter] : model.parameters()) add_(parameter.grad(), randn({1}), 1e-3);
      randn({1});
      optimizer.step();
    }
  }
  std::vector<Doubles> everything() const {
    std::vector<Doubles> all{default_generator().state().to_vector()};
    for (const auto& [path, tensor] : model.state_dict()) all.push_back(tensor.to_vector());
    for (const auto& [path, tensor] : optimizer.state_dict()) all.push_back(tensor.to_vector());
    return all;
  }

  nn::TinyLM model;
  AdamW optimizer;
};

TEST_CASE_FIXTURE(Folder, "five steps, save, load, five steps are ten steps, bit for bit") {
  Training whole(1);
  whole.run(10);
  const std::vector<Doubles> expected = whole.everything();

  Training first(1);
  first.run(5);
  CHECK(default_generator().state().to_vector<std::int64_t>()[Generator::kWords + 1] == 1);  // a normal is kept
  save_checkpoint(file, first.model.state_dict(), first.optimizer, default_generator(), {{"step", "5"}});

  Training second(99);  // another start altogether
  second.run(3);
  const Checkpoint checkpoint = read_checkpoint(file);
  CHECK(checkpoint.metadata.at("step") == "5");
  restore_checkpoint(checkpoint, second.model.state_dict(), second.optimizer, default_generator());
  second.run(5);
  CHECK(second.everything() == expected);
}

TEST_CASE_FIXTURE(Folder, "saving changes nothing, and loading leaves parameters where they are") {
  Training training(1);
  training.run(2);
  const std::vector<Doubles> before = training.everything();
  save_checkpoint(file, training.model.state_dict(), training.optimizer, default_generator(), {});
  CHECK(training.everything() == before);

  const Tensor weight = training.model.parameters()[0].tensor;
  training.run(1);
  CHECK(training.everything() != before);
  restore_checkpoint(read_checkpoint(file), training.model.state_dict(), training.optimizer, default_generator());
  CHECK(training.everything() == before);
  CHECK(training.model.parameters()[0].tensor.is(weight));
}

TEST_CASE_FIXTURE(Folder, "the model's tensors stand under their own names") {
  const Training training(1);
  save_checkpoint(file, training.model.state_dict(), training.optimizer, default_generator(), {{"d_model", "8"}});
  const SafetensorsFile plain = read_safetensors(file);
  CHECK(plain.find("blocks.0.attn.qkv.weight").to_vector() ==
        training.model.at("blocks.0.attn.qkv").parameters()[0].tensor.to_vector());
  CHECK(plain.find("optimizer.tok.weight/exp_avg").defined());
  CHECK(plain.find("optimizer.tok.weight/step").dtype() == int64);
  CHECK(plain.find("generator").numel() == Generator::kStateSize);
  CHECK(plain.metadata.at("d_model") == "8");
  const nn::TinyLM other(7, training.model.options());
  other.load_state_dict(read_checkpoint(file).model);
  CHECK(other.parameters()[3].tensor.to_vector() == training.model.parameters()[3].tensor.to_vector());
}

TEST_CASE_FIXTURE(Folder, "a checkpoint that does not fit changes nothing") {
  Training training(1);
  training.run(2);
  save_checkpoint(file, training.model.state_dict(), training.optimizer, default_generator(), {});
  const Checkpoint good = read_checkpoint(file);
  training.run(1);
  const std::vector<Doubles> before = training.everything();
  const auto refused = [&](const Checkpoint& checkpoint, std::initializer_list<std::string_view> parts) {
    expect_error(
        [&] { restore_checkpoint(checkpoint, training.model.state_dict(), training.optimizer, default_generator()); },
        parts);
    CHECK(training.everything() == before);
  };
  Checkpoint bad = good;
  bad.model.back().path = "head.b";
  refused(bad, {"checkpoint", "missing: head.bias", "unexpected: head.b"});
  bad = good;
  bad.model.back().tensor = zeros({1});
  refused(bad, {"'head.bias' is [7] float32 here", "[1] float32"});
  bad = good;
  bad.optimizer.pop_back();
  refused(bad, {"AdamW", "missing: head.bias/max_exp_avg_sq"});
  bad = good;
  bad.optimizer.back().tensor = zeros({1});
  refused(bad, {"'head.bias/max_exp_avg_sq' is [7]"});
  bad = good;
  bad.generator = zeros({Generator::kStateSize}, int64);
  refused(bad, {"set_state", "zero"});
  bad.generator = {};
  refused(bad, {"set_state", "undefined"});

  SGD other(training.model.parameters());
  expect_error([&] { restore_checkpoint(good, training.model.state_dict(), other, default_generator()); },
               {"SGD", "unexpected: tok.weight/exp_avg"});
  CHECK(training.everything() == before);
}

TEST_CASE_FIXTURE(Folder, "files that are no checkpoint are errors that name them") {
  const Training training(1);
  expect_error([&] { read_checkpoint(path / "none.safetensors"); }, "none.safetensors");
  write_safetensors(file, training.model.state_dict());
  expect_error([&] { read_checkpoint(file); }, {"run.safetensors", "no checkpoint", "random generator"});
  NamedTensors without_optimizer = training.model.state_dict();
  without_optimizer.push_back({"generator", default_generator().state()});
  write_safetensors(file, without_optimizer);
  expect_error([&] { read_checkpoint(file); }, {"run.safetensors", "no checkpoint", "optimizer"});

  save_checkpoint(file, training.model.state_dict(), training.optimizer, default_generator(), {});
  fs::resize_file(file, fs::file_size(file) - 1);
  expect_error([&] { read_checkpoint(file); }, "run.safetensors");
  std::ofstream(file) << "not a checkpoint at all";
  expect_error([&] { read_checkpoint(file); }, "run.safetensors");
  expect_error(
      [&] {
        save_checkpoint(path / "no" / "folder", training.model.state_dict(), training.optimizer, default_generator(),
                        {});
      },
      "folder");
}

TEST_CASE_FIXTURE(Folder, "an optimiser without tensors of its own has a state to save, too") {
  const nn::TinyLM model(5, {.d_model = 4, .n_heads = 1, .n_layers = 1, .max_len = 4});
  SGD sgd(model.parameters(), {.lr = 0.1});
  cross_entropy(model(zeros({1, 2}, int64)), zeros({1, 2}, int64)).backward();
  sgd.step();
  save_checkpoint(file, model.state_dict(), sgd, default_generator(), {});
  SGD other(model.parameters(), {.lr = 0.1});
  restore_checkpoint(read_checkpoint(file), model.state_dict(), other, default_generator());
  CHECK(other.state_dict()[0].tensor.item<std::int64_t>() == 1);
}

}  // namespace
}  // namespace prenorm::optim
