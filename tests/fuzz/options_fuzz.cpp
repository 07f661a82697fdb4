// Any bytes as a command line of next_token, an argument a line; lines that begin with '@' are options kept in a
// checkpoint, "@lr=0.1", from which the run is resumed. It is refused with an Error, or its options are in range and
// can be kept again.

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/check.h"
#include "optim/sgd.h"
#include "training/options.h"

namespace {

using namespace prenorm;

const std::string& checkpoint_with(SafetensorsMetadata metadata) {
  static const std::string path = "/dev/shm/options_fuzz." + std::to_string(::getpid());
  static const NamedTensors model = {{"w", Tensor::scalar(1, {.requires_grad = true})}};
  static optim::SGD sgd(model, {.lr = 0.1});
  optim::save_checkpoint(path, model, sgd, default_generator(), metadata);
  return path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> arguments = {"next_token"};
  SafetensorsMetadata kept = training::to_metadata({});
  bool resume = false;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  if (rest.find('\0') != std::string_view::npos) return 0;  // an argument holds none
  while (!rest.empty()) {
    const std::string line(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (!line.starts_with('@')) {
      arguments.push_back(line);
    } else {
      const std::size_t equals = std::min(line.find('='), line.size());
      kept["option." + line.substr(1, equals - 1)] = line.substr(std::min(equals + 1, line.size()));
      resume = true;
    }
  }
  try {
    if (resume) {
      arguments.emplace_back("--resume");
      arguments.push_back(checkpoint_with(kept));
    }
    std::vector<const char*> argv;
    for (const std::string& text : arguments) argv.push_back(text.c_str());
    argv.push_back(nullptr);
    const training::Parsed parsed = training::parse(static_cast<int>(arguments.size()), argv.data());
    const training::Options& o = parsed.options;
    if (!parsed.help && (o.batch < 1 || o.length < 1 || o.heads < 1 || o.d_model % o.heads != 0)) std::abort();
    training::to_metadata(o);
  } catch (const Error& error) {
    if (std::string_view(error.what()).empty()) std::abort();
  }
  return 0;
}
