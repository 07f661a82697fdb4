#include "tests/bench/workloads.h"

#include <algorithm>
#include <map>
#include <memory>
#include <sstream>
#include <utility>

#include "autograd/ops.h"
#include "autograd/random.h"
#include "nn/container.h"
#include "nn/encoder.h"
#include "nn/feed_forward.h"
#include "nn/norm.h"
#include "nn/tiny_lm.h"
#include "optim/adam.h"
#include "optim/clip.h"

namespace prenorm::bench {
namespace {

struct ModelSize {
  std::int64_t vocab, d_model, n_heads, n_layers, B, T;
};

// Ids that count up from random starts, and the same one position later: this process's rows.
std::pair<Tensor, Tensor> batch(const ModelSize& size, const Sharing& sharing) {
  const Tensor start = randint(0, size.vocab, {size.B, 1});
  const std::int64_t begin = size.B * sharing.rank / sharing.size, end = size.B * (sharing.rank + 1) / sharing.size;
  const Shape shape{end - begin, size.T};
  const Tensor ids = Tensor::empty(shape, int64), next = Tensor::empty(shape, int64);
  const std::int64_t* first = start.data<std::int64_t>();
  std::int64_t *id = ids.mutable_data<std::int64_t>(), *target = next.mutable_data<std::int64_t>();
  for (std::int64_t b = begin; b < end; ++b) {
    for (std::int64_t t = 0; t < size.T; ++t) {
      *id++ = (first[b] + t) % size.vocab;
      *target++ = (first[b] + t + 1) % size.vocab;
    }
  }
  return {ids, next};
}

template <class Optimizer>
Step language_model(const ModelSize& size, const Optimizer& make_optimizer, bool tied, const Sharing& sharing) {
  manual_seed(0);
  const nn::TinyLM model(size.vocab, {.d_model = size.d_model,
                                      .n_heads = size.n_heads,
                                      .n_layers = size.n_layers,
                                      .max_len = std::max<std::int64_t>(size.T, 64),
                                      .tie_head = tied});
  const auto optimizer = make_optimizer(model.parameters());
  if (sharing.begin) sharing.begin(optimizer->parameters());
  return [=] {
    const auto [ids, next] = batch(size, sharing);
    const Tensor loss = cross_entropy(model(ids), next);
    optimizer->zero_grad();
    loss.backward();
    if (sharing.finish) sharing.finish();
    if (!tied) optim::grad_norm(optimizer->parameters());
    optimizer->step();
    return std::optional(loss.item());
  };
}

// Forward and backward from the same x and cotangent each time.
Step forward_backward(const nn::Module& module, const Shape& shape) {
  const Tensor x = randn(shape).requires_grad_(), dy = randn(shape);
  return [=]() -> std::optional<double> {
    for (const auto& [name, parameter] : module.parameters()) parameter.set_grad({});
    x.set_grad({});
    module(x).backward(dy);
    return std::nullopt;
  };
}

Step encoder() {
  constexpr std::int64_t kSize = 512;
  const nn::EncoderLayer layer(kSize, nn::MultiHeadedAttention(8, kSize, 0.0),
                               nn::PositionwiseFeedForward(kSize, 2048, 0.0), {.dropout = 0});
  return forward_backward(nn::Encoder(layer, 6), {8, 32, kSize});
}

Step norm(nn::Norm form) { return forward_backward(nn::make_norm(form, 768), {32, 100, 768}); }

// What follows the colon in tiny:24x64x32.
void resize(ModelSize& size, const std::string& sizes) {
  if (sizes.empty()) return;
  char x = 0, y = 0;
  std::istringstream text(sizes);
  text >> size.n_layers >> x >> size.B >> y >> size.T;
  check(text && text.eof() && x == 'x' && y == 'x' && size.n_layers > 0 && size.B > 0 && size.T > 0, "sizes ", sizes,
        ": expected depth x B x T, as 24x64x32");
}

}  // namespace

Step make_step(const std::string& workload, const Sharing& sharing) {
  const auto adam = [](const NamedTensors& parameters) {
    return std::make_shared<optim::Adam>(parameters, optim::AdamOptions{.lr = 3e-4});
  };
  const auto adamw = [](const NamedTensors& parameters) {
    return std::make_shared<optim::AdamW>(parameters, optim::AdamWOptions{.lr = 1e-4});
  };
  static const std::map<std::string, ModelSize> models{
      {"tiny", {50, 64, 4, 12, 32, 32}}, {"char", {97, 128, 4, 4, 4, 64}}, {"gpt2", {50257, 768, 12, 12, 4, 64}}};
  const std::size_t colon = std::min(workload.find(':'), workload.size());
  const std::string name = workload.substr(0, colon);
  if (const auto model = models.find(name); model != models.end()) {
    ModelSize size = model->second;
    resize(size, workload.substr(std::min(colon + 1, workload.size())));
    return name == "gpt2" ? language_model(size, adamw, true, sharing) : language_model(size, adam, false, sharing);
  }
  check(sharing.size == 1, workload, ": cannot be shared by several processes");
  manual_seed(0);
  if (workload == "encoder") return encoder();
  if (workload == "layer_norm_std") return norm(nn::Norm::unbiased);
  if (workload == "layer_norm") return norm(nn::Norm::standard);
  if (workload == "rms_norm") return norm(nn::Norm::rms);
  fail("there is no workload ", workload);
}

}  // namespace prenorm::bench
