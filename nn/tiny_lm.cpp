#include "nn/tiny_lm.h"

#include "nn/activation.h"
#include "nn/container.h"
#include "nn/embedding.h"
#include "nn/linear.h"

namespace prenorm::nn {

TinyLM::TinyLM(std::int64_t vocab, TinyLMOptions options) : Layer("TinyLM", options) {
  check(vocab >= 1 && options.n_layers >= 0 && options.max_len >= 1, "TinyLM: vocab ", vocab, ", n_layers ",
        options.n_layers, " and max_len ", options.max_len, " do not make a model");
  const std::int64_t d_model = options.d_model;
  const Embedding tok(vocab, d_model);
  add_child("tok", tok);
  add_child("pos", Embedding(options.max_len, d_model));
  ModuleList blocks;
  for (std::int64_t i = 0; i < options.n_layers; ++i) {
    blocks.push_back(Block(d_model, options.n_heads,
                           {.use_residual = options.use_residual,
                            .norm = options.norm,
                            .order = options.order,
                            .dropout = options.dropout,
                            .expansion = options.expansion}));
  }
  add_child("blocks", blocks);
  add_child("ln_f", options.order == Order::pre ? make_norm(options.norm, d_model) : Identity());
  Linear head(d_model, vocab, {.bias = !options.tie_head});
  if (options.tie_head) head.tie_weight(tok.weight());
  add_child("head", head);
}

std::int64_t TinyLM::vocab() const { return child<Embedding>("tok").weight().size(0); }

Block TinyLM::blocks(std::int64_t index) const { return child<ModuleList>("blocks").get<Block>(index); }

Tensor TinyLM::embed(const Tensor& ids) const {
  check(ids.dims() == 2 && ids.dtype() == int64, "TinyLM: expected ids int64 [B, T], got ", ids.dtype(), " ",
        ids.shape());
  const std::int64_t T = ids.size(1);
  check(T <= options().max_len, "TinyLM: a sequence of ", T, " tokens is longer than max_len ", options().max_len);
  return child<Embedding>("tok")(ids) + child<Embedding>("pos")(arange(static_cast<double>(T)));
}

Tensor TinyLM::forward(const Tensor& ids) const {
  Tensor x = embed(ids);
  for (const auto& [name, block] : child("blocks").children()) x = block(x);
  return child("head")(child("ln_f")(x));
}

}  // namespace prenorm::nn
