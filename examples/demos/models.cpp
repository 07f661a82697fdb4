// Whole models: their sizes, and who sees whom.

#include <set>

#include "autograd/ops.h"
#include "autograd/random.h"
#include "demos/report.h"
#include "nn/encoder.h"
#include "nn/feed_forward.h"
#include "nn/tiny_lm.h"

namespace prenorm::demos {
namespace {

nn::Encoder make_encoder(std::int64_t d_model, std::int64_t h, std::int64_t d_ff, std::int64_t N) {
  const nn::MultiHeadedAttention self_attn(h, d_model);
  const nn::PositionwiseFeedForward feed_forward(d_model, d_ff);
  return nn::Encoder(nn::EncoderLayer(d_model, self_attn, feed_forward, {.dropout = 0.1}), N);
}

void encoder(Report& report) {
  report.say(
      "Encoder(EncoderLayer(512, MultiHeadedAttention(8, 512), PositionwiseFeedForward(512, 2048), 0.1), 6): six "
      "copies of "
      "one layer, which start equal and learn apart.");
  manual_seed(0);
  const nn::Encoder model = make_encoder(512, 8, 2048, 6);
  report.expect("parameters", "18,915,328", grouped(model.parameter_count()));
  const nn::Module layers = model.at("layers");
  report.expect("layers", "6", std::to_string(layers.children().size()));
  std::set<std::size_t> sublayers;
  for (const auto& [name, layer] : layers.children()) sublayers.insert(layer.at("sublayer").children().size());
  report.expect("sublayers of each", "2", sublayers.size() == 1 ? std::to_string(*sublayers.begin()) : "several");
  std::set<const void*> memory;
  for (const auto& [path, parameter] : model.parameters()) memory.insert(parameter.storage().get());
  report.expect("every parameter has memory of its own", "yes", yes_no(memory.size() == model.parameters().size()));
  report.expect("shape of the output for [1, 6, 512]", "[1, 6, 512]", shape_text(model(randn({1, 6, 512}))));
}

void padding(Report& report) {
  report.say(
      "Six positions, of which 5 and 6 are padding and masked as keys. Whatever stands there, the outputs of the 4 "
      "real "
      "tokens do not change by a single bit.");
  manual_seed(0);
  const nn::Encoder model = make_encoder(64, 8, 256, 2);
  model.eval();
  const Tensor x = randn({1, 6, 64});
  const Tensor mask = Tensor::of({1, 1, 1, 1, 0, 0}, {1, 1, 6}, {.dtype = boolean});
  const Tensor noisy = concat({slice(x, 1, 0, 4), randn({1, 2, 64}) * 100}, 1);
  const Tensor before = model(x, mask), after = model(noisy, mask);
  report.expect("largest difference at the 4 real tokens", "0",
                exactly_zero(largest_difference(slice(before, 1, 0, 4), slice(after, 1, 0, 4))));
  const Tensor unmasked_before = model(x), unmasked_after = model(noisy);
  report.expect("without the mask, do they change?", "yes",
                yes_no(largest_difference(slice(unmasked_before, 1, 0, 4), slice(unmasked_after, 1, 0, 4)) > 0.01));
}

void last_token(Report& report) {
  report.say("TinyLM is causal: another last token changes its own logits and none before it.");
  manual_seed(0);
  const nn::TinyLM model(50);
  const Tensor ids = randint(0, 50, {2, 16});
  const Tensor changed = concat({slice(ids, 1, 0, 15), mod(slice(ids, 1, 15, 16) + full({1}, 7, int64), 50)}, 1);
  const Tensor before = model(ids), after = model(changed);
  report.expect("largest difference at positions 1 to 15", "0",
                exactly_zero(largest_difference(slice(before, 1, 0, 15), slice(after, 1, 0, 15))));
  report.expect("does position 16 change?", "yes",
                yes_no(largest_difference(slice(before, 1, 15, 16), slice(after, 1, 15, 16)) > 0.01));
}

void shapes(Report& report) {
  report.say(
      "A residual connection keeps the shape, so that the sum exists; a language model gives a score for each word.");
  manual_seed(0);
  const nn::SublayerConnection residual(512);
  const nn::PositionwiseFeedForward feed_forward(512, 2048);
  report.expect("[2, 10, 512] through a feed-forward with residual", "[2, 10, 512]",
                shape_text(residual(randn({2, 10, 512}), feed_forward)));
  report.expect("TinyLM(50) on ids [2, 16]", "[2, 16, 50]", shape_text(nn::TinyLM(50)(randint(0, 50, {2, 16}))));
}

}  // namespace

std::vector<Demo> model_demos() {
  return {{"encoder", "the encoder of the Annotated Transformer", encoder},
          {"padding", "padding is not seen", padding},
          {"last_token", "the future is not seen", last_token},
          {"shapes", "shapes in and out", shapes}};
}

}  // namespace prenorm::demos
