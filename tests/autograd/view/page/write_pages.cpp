// Writes the pages that the browser tests and the measurement of times drive, each as NAME.html with NAME.json beside
// it:
//
//   write_pages FOLDER NAME…     blocks, broken, lm, scalars, many

#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "autograd/ops.h"
#include "autograd/view/recording.h"
#include "nn/tiny_lm.h"

using namespace prenorm;

namespace {

// A label that would end the script element of the page, were it written as it is.
constexpr const char* kHostile = "x</script><script>window.harmed = true</script><img src=x onerror='harmed = true'>";

Tensor parameter(const Shape& shape) { return randn(shape).requires_grad_(); }

// Two pre-norm blocks by hand, so that everything is small enough to be written in full.
void record_blocks(view::Recording& run) {
  manual_seed(0);
  const Tensor x = parameter({3, 4});
  run.name(x, kHostile);
  Tensor stream = x;
  for (int b = 0; b < 2; ++b) {
    const Scope block("blocks." + std::to_string(b));
    const auto named = [&](const std::string& name, const Shape& shape) {
      const Tensor tensor = parameter(shape);
      run.name(tensor, *Scope::path() + "." + name);
      return tensor;
    };
    Tensor h;
    {
      const Scope norm("norm");
      h = layer_norm(stream, named("gamma", {4}), named("beta", {4}));
    }
    {
      const Scope ffn("ffn");
      h = linear(relu(linear(h, named("w1", {6, 4}), named("b1", {6}))), named("w2", {4, 6}), named("b2", {4}));
    }
    stream = residual_add(stream, h);
  }
  cross_entropy(stream, Tensor::of(std::vector<std::int64_t>{1, 0, 3}, {3}, {.dtype = int64})).backward();
}

void record_lm(view::Recording& run) {
  manual_seed(0);
  const nn::TinyLM model(50, {.d_model = 64, .n_heads = 4, .n_layers = 12});
  run.name(model.parameters());
  const Tensor tokens = mod(randint(0, 50, {2, 1}) + arange(17), 50);
  cross_entropy(model(slice(tokens, 1, 0, 16)), slice(tokens, 1, 1, 17)).backward();
}

// A chain rule by hand; nothing has a scope.
void record_scalars(view::Recording& run) {
  const Tensor a = full({}, 2, float64).requires_grad_();
  const Tensor b = full({}, -3, float64).requires_grad_();
  run.name(a, "a");
  run.name(b, "b");
  (exp(a * b) + a).backward();
}

// 5,000 nodes in blocks.
void record_many(view::Recording& run) {
  manual_seed(0);
  Tensor stream = parameter({4, 8});
  run.name(stream, "x");
  for (int b = 0; run.size() < 5000; ++b) {
    const Scope block("blocks." + std::to_string(b));
    const Tensor gamma = parameter({8}), w = parameter({8, 8});
    Tensor h;
    {
      const Scope norm("norm");
      h = layer_norm(stream, gamma, {});
    }
    {
      const Scope ffn("ffn");
      h = linear(relu(linear(h, w, {})), w, {});
    }
    stream = residual_add(stream, h);
  }
  mean(stream * stream).backward();
}

const std::map<std::string, std::function<void(view::Recording&)>> kRuns{{"blocks", record_blocks},
                                                                         {"broken", record_blocks},
                                                                         {"lm", record_lm},
                                                                         {"scalars", record_scalars},
                                                                         {"many", record_many}};

view::Options options_of(const std::string& name) {
  view::Options options{.title = "Run: " + name, .note = "Two ways down: the skip & the branch."};
  if (name == "broken") options.break_it = {.op = "layer_norm", .fault = "the mean part is not taken away"};
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    check(argc >= 3, "write_pages FOLDER NAME…");
    for (int i = 2; i < argc; ++i) {
      const std::string name = argv[i];
      const auto found = kRuns.find(name);
      check(found != kRuns.end(), "there is no run called ", name);
      view::Recording run;
      found->second(run);
      const std::filesystem::path path = std::filesystem::path(argv[1]) / name;
      run.write_html(path.string() + ".html", options_of(name));
      run.write_json(path.string() + ".json", options_of(name));
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "write_pages: %s\n", error.what());
    return 1;
  }
  return 0;
}
