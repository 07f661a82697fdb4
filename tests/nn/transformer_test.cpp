#include "nn/transformer.h"

#include <cmath>
#include <string>
#include <vector>

#include "autograd/ops.h"
#include "layer_checks.h"
#include "nn/container.h"
#include "nn/embedding.h"
#include "nn/feed_forward.h"
#include "nn/init.h"
#include "nn/linear.h"

namespace prenorm {
namespace {

using nn::EncoderDecoder;
using nn::Order;

constexpr std::int64_t kPad = 0;
const Tensor no_mask;

nn::TransformerOptions tiny(double dropout = 0, Order order = Order::pre) {
  return {.N = 2, .d_model = 8, .d_ff = 16, .h = 2, .dropout = dropout, .max_len = 12, .order = order};
}
Tensor ids(std::initializer_list<double> values, const Shape& shape) {
  return Tensor::of(values, shape, {.dtype = int64});
}
Tensor not_padding(const Tensor& tokens) { return unsqueeze(ne(tokens, full({1}, kPad, int64)), 1); }

// --- Generator -------------------------------------------------------------------------------------------------------

TEST_CASE("the generator gives log-probabilities") {
  const nn::Generator generator(8, 5);
  CHECK(paths(generator.parameters()) == std::vector<std::string>{"proj.weight", "proj.bias"});
  const Tensor y = generator(randn({2, 3, 8}));
  CHECK(y.shape() == Shape{2, 3, 5});
  expect_close(sum(exp(y), {-1}), std::vector<double>(6, 1), 1e-6);
}

// --- the whole model -------------------------------------------------------------------------------------------------

TEST_CASE("the encoder of 6 layers has 18,915,328 parameters") {
  const nn::Encoder encoder(
      nn::EncoderLayer(512, nn::MultiHeadedAttention(8, 512), nn::PositionwiseFeedForward(512, 2048), {.dropout = 0.1}),
      6);
  CHECK(encoder.parameter_count() == 18'915'328);
  CHECK(encoder.eval().as<nn::Encoder>()(randn({1, 6, 512})).shape() == Shape{1, 6, 512});
}

TEST_CASE("make_model: the names are those of the reference data, in order of their places") {
  const EncoderDecoder model = nn::make_model(11, 11, tiny());
  const std::vector<std::string> names = paths(model.parameters());
  CHECK(path_set(model.parameters()) == golden_paths("encoder_decoder.n2"));
  CHECK(names.front() == "encoder.layers.0.self_attn.linears.0.weight");
  CHECK(names[34] == "decoder.layers.0.self_attn.linears.0.weight");
  CHECK(std::vector<std::string>(names.end() - 4, names.end()) ==
        std::vector<std::string>{"src_embed.0.lut.weight", "tgt_embed.0.lut.weight", "generator.proj.weight",
                                 "generator.proj.bias"});
  CHECK(paths(model.buffers()) == std::vector<std::string>{"src_embed.1.pe", "tgt_embed.1.pe"});
}

TEST_CASE("make_model: sizes as asked for, no two places share parameters") {
  const EncoderDecoder model = nn::make_model(11, 13, tiny());
  // d = 8, d_ff = 16: an attention 4 * 72, a feed-forward 280, a norm 16.
  const std::int64_t encoder = 2 * (288 + 280 + 2 * 16) + 16, decoder = 2 * (2 * 288 + 280 + 3 * 16) + 16;
  CHECK(model.parameter_count() == encoder + decoder + 11 * 8 + 13 * 8 + 9 * 13);
  CHECK(model.at("encoder.layers").children().size() == 2);
  CHECK(share_no_memory(model, nn::Linear(1, 1)));
  CHECK_FALSE(model.buffers()[0].tensor.is(model.buffers()[1].tensor));
  CHECK(model.at("encoder.layers.0.self_attn").as<nn::MultiHeadedAttention>().options().h == 2);
}

TEST_CASE("make_model: matrices are drawn after Xavier, the rest is left as it was") {
  manual_seed(0);
  const EncoderDecoder model = nn::make_model(50, 60, {.N = 1, .d_model = 64, .d_ff = 128, .h = 4, .max_len = 12});
  for (const NamedTensor& named : model.parameters()) {
    const std::string& path = named.path;
    const Tensor& parameter = named.tensor;
    const Tensor values = parameter.detach();
    if (parameter.dims() == 1) {
      if (path.ends_with("a_2")) expect_close(values, std::vector<double>(64, 1));
      if (path.ends_with("b_2")) expect_close(values, std::vector<double>(64, 0));
      continue;
    }
    // Uniform in ±b: none outside, the largest close to b, std b / sqrt(3).
    const double b = std::sqrt(6.0 / static_cast<double>(parameter.size(0) + parameter.size(1)));
    const double largest = max(abs(values)).item();
    CHECK_MESSAGE((largest <= b && largest > 0.99 * b), path);
    CHECK_MESSAGE(std::abs(std(values).item() / (b / std::sqrt(3.0)) - 1) < 0.05, path);
    CHECK_MESSAGE(std::abs(mean(values).item()) < 0.05 * b, path);
  }
  // Copies differ once drawn.
  const auto weight = [&](const char* path) { return model.at(path).as<nn::Linear>().weight(); };
  CHECK_FALSE(
      same_bits(weight("encoder.layers.0.self_attn.linears.0"), weight("encoder.layers.0.self_attn.linears.1")));
  // The same seed gives the same model.
  manual_seed(0);
  const EncoderDecoder again = nn::make_model(50, 60, {.N = 1, .d_model = 64, .d_ff = 128, .h = 4, .max_len = 12});
  for (std::size_t i = 0; i < model.parameters().size(); ++i) {
    CHECK(same_bits(model.parameters()[i].tensor, again.parameters()[i].tensor));
  }
}

TEST_CASE("make_model draws in the order in which a script in PyTorch draws") {
  manual_seed(5);
  const EncoderDecoder model = nn::make_model(11, 13, tiny());
  const auto after = generator_state();

  manual_seed(5);
  const nn::Linear attention(8, 8), w_1(8, 16), w_2(16, 8);
  const nn::Embedding src(11, 8), tgt(13, 8);
  const nn::Linear generator(8, 13);
  for (const NamedTensor& named : model.parameters()) {
    const std::string& path = named.path;
    const Tensor& parameter = named.tensor;
    const Tensor expected = [&] {
      if (parameter.dims() > 1) {
        const Tensor weight = Tensor::empty(parameter.shape());
        nn::xavier_uniform_(weight);
        return weight;
      }
      if (path.ends_with("a_2")) return ones(parameter.shape());
      if (path.ends_with("b_2")) return zeros(parameter.shape());
      if (path.ends_with("w_1.bias")) return w_1.bias();
      if (path.ends_with("w_2.bias")) return w_2.bias();
      return path == "generator.proj.bias" ? generator.bias() : attention.bias();
    }();
    CHECK_MESSAGE(same_bits(parameter, expected), path);
  }
  CHECK(generator_state() == after);
}

TEST_CASE("make_model: the order is handed down, and the post order has no final norms") {
  const EncoderDecoder pre = nn::make_model(11, 11, tiny()), post = nn::make_model(11, 11, tiny(0, Order::post));
  const std::set<std::string> names = path_set(post.parameters());
  CHECK(post.parameters().size() == pre.parameters().size() - 4);
  CHECK_FALSE(names.contains("encoder.norm.a_2"));
  CHECK_FALSE(names.contains("decoder.norm.a_2"));
  for (const char* path :
       {"encoder.layers.1.sublayer.1", "decoder.layers.0.sublayer.0", "decoder.layers.1.sublayer.2"}) {
    CHECK(post.at(path).as<nn::SublayerConnection>().options().order == Order::post);
    CHECK(pre.at(path).as<nn::SublayerConnection>().options().order == Order::pre);
  }
}

TEST_CASE("forward is encode, then decode") {
  const EncoderDecoder model = nn::make_model(11, 11, tiny());
  const Tensor src = ids({1, 2, 3, 4, 5, 0}, {2, 3}), tgt = ids({1, 2, 1, 3}, {2, 2});
  const Tensor src_mask = not_padding(src), tgt_mask = nn::subsequent_mask(2);
  const Tensor memory = model.encode(src, src_mask);
  CHECK(memory.shape() == Shape{2, 3, 8});
  const Tensor y = model(src, tgt, src_mask, tgt_mask);
  CHECK(y.shape() == Shape{2, 2, 8});
  CHECK(same_bits(model.decode(memory, src_mask, tgt, tgt_mask), y));
  CHECK(model.generator()(y).shape() == Shape{2, 2, 11});
}

TEST_CASE("other ids in place of padding change nothing that counts") {
  const EncoderDecoder model = nn::make_model(11, 11, tiny(0.1));
  model.eval();
  const Tensor src = ids({1, 2, 3, 0, 0}, {1, 5}), other = ids({1, 2, 3, 9, 7}, {1, 5}), tgt = ids({1, 4, 5}, {1, 3});
  const Tensor mask = not_padding(src), causal = nn::subsequent_mask(3);
  CHECK(same_bits(model(other, tgt, mask, causal), model(src, tgt, mask, causal)));
  CHECK_FALSE(same_bits(model(other, tgt, no_mask, causal), model(src, tgt, no_mask, causal)));
  const Tensor changed = ids({1, 4, 6}, {1, 3});
  const Tensor y = model(src, tgt, mask, causal), z = model(src, changed, mask, causal);
  CHECK(same_bits(slice(y, 1, 0, 2), slice(z, 1, 0, 2)));
  CHECK_FALSE(same_bits(select(y, 1, 2), select(z, 1, 2)));
}

TEST_CASE("a source or target longer than the positions is an error") {
  const EncoderDecoder model = nn::make_model(11, 11, tiny());
  const Tensor longer = ones({1, 13}, int64), tgt = ones({1, 2}, int64);
  expect_error([&] { model(longer, tgt, no_mask, no_mask); }, {"PositionalEncoding", "13", "12"});
  expect_error([&] { model(tgt, longer, no_mask, no_mask); }, {"PositionalEncoding", "13", "12"});
}

TEST_CASE("dropout in training, none in evaluation, and then nothing is drawn") {
  const EncoderDecoder model = nn::make_model(11, 11, tiny(0.2));
  const Tensor src = ids({1, 2, 3, 4}, {1, 4}), tgt = ids({1, 2}, {1, 2});
  CHECK_FALSE(same_bits(model(src, tgt, no_mask, no_mask), model(src, tgt, no_mask, no_mask)));
  model.eval();
  const auto before = generator_state();
  const Tensor y = model(src, tgt, no_mask, no_mask);
  CHECK(same_bits(model(src, tgt, no_mask, no_mask), y));
  CHECK(generator_state() == before);
}

TEST_CASE("nodes carry the paths of the modules that made them") {
  const EncoderDecoder model = nn::make_model(11, 11, tiny());
  Scopes scopes;
  model.generator()(model(ids({1, 2, 3}, {1, 3}), ids({1, 2}, {1, 2}), no_mask, no_mask));
  for (const char* path :
       {"encoder.layers.0.self_attn.linears.0", "encoder.layers.1.feed_forward.w_2",
        "decoder.layers.0.src_attn.linears.3", "decoder.layers.1.feed_forward.w_1", "generator.proj"}) {
    CHECK_MESSAGE(scopes.has("linear", path), path);
  }
  for (const char* path :
       {"encoder.layers.0.sublayer.0.norm", "decoder.layers.1.sublayer.2.norm", "encoder.norm", "decoder.norm"}) {
    CHECK_MESSAGE(scopes.has("layer_norm_std", path), path);
  }
  CHECK(scopes.has("residual_add", "encoder.layers.0.sublayer.0"));
  CHECK(scopes.has("log_softmax", "generator"));
  CHECK(scopes.of("embedding") == std::vector<std::string>{"src_embed.0.lut", "tgt_embed.0.lut"});
  for (const std::string& scope : scopes.of("add")) {
    CHECK_MESSAGE((scope == "src_embed.1" || scope == "tgt_embed.1"), scope);
  }
}

TEST_CASE("a part keeps its path when it is called on its own") {
  const EncoderDecoder model = nn::make_model(11, 11, tiny());
  Scopes scopes;
  model.encode(ids({1, 2, 3}, {1, 3}), no_mask);
  CHECK(scopes.of("linear").front() == "encoder.layers.0.self_attn.linears.0");
}

TEST_CASE("a clone of the model gives the same, with weights of its own") {
  const EncoderDecoder model = nn::make_model(11, 11, tiny());
  const auto before = generator_state();
  const EncoderDecoder copy = model.clone();
  CHECK(generator_state() == before);
  CHECK(share_no_memory(model, copy));
  CHECK(paths(copy.parameters()) == paths(model.parameters()));
  const Tensor src = ids({1, 2, 3}, {1, 3}), tgt = ids({1, 2}, {1, 2});
  CHECK(same_bits(copy(src, tgt, no_mask, no_mask), model(src, tgt, no_mask, no_mask)));
}

TEST_CASE("a state dict with the tables goes from one model to another") {
  const EncoderDecoder from = nn::make_model(11, 11, tiny()), into = nn::make_model(11, 11, tiny());
  const LoadResult result = into.load_state_dict(from.state_dict());
  CHECK(result.missing.empty());
  CHECK(result.unexpected.empty());
  const Tensor src = ids({1, 2, 3}, {1, 3}), tgt = ids({1, 2}, {1, 2});
  CHECK(same_bits(into(src, tgt, no_mask, no_mask), from(src, tgt, no_mask, no_mask)));
}

TEST_CASE("gradients from the loss to every parameter are what differences say") {
  const Tensor src = ids({1, 2, 4, 3, 2, 0}, {2, 3}), tgt = ids({1, 3, 1, 2}, {2, 2}), next = ids({3, 4, 2, 0}, {4});
  const auto loss = [&](const EncoderDecoder& model, const Tensors&) {
    const Tensor out = model(src, tgt, not_padding(src), nn::subsequent_mask(2));
    return nn::label_smoothing_loss(reshape(model.generator()(out), {4, 5}), next, kPad, 0.1);
  };
  for (const Order order : {Order::pre, Order::post}) {
    const nn::TransformerOptions options{
        .N = 1, .d_model = 4, .d_ff = 6, .h = 2, .dropout = 0, .max_len = 5, .order = order};
    expect_layer_gradients(nn::make_model(5, 5, options), {}, loss, {.order = 1});
  }
}

// --- label smoothing -------------------------------------------------------------------------------------------------

TEST_CASE("smoothed targets: most at the target, the rest shared, nothing for padding") {
  // Size 5, padding 0: 0.4 / 3 for each of the other three.
  const double s = 0.4 / 3;
  expect_close(nn::smoothed_targets(ids({2, 1, 0}, {3}), 5, 0, 0.4, float64),
               {0, s, 0.6, s, s, 0, 0.6, s, s, s, 0, 0, 0, 0, 0});
  expect_close(nn::smoothed_targets(ids({0}, {1}), 4, 3, 0.2, float64), {0.8, 0.1, 0.1, 0});
  expect_close(nn::smoothed_targets(ids({1}, {1}), 3, 0, 0, float64), {0, 1, 0});
  const Tensor t = nn::smoothed_targets(ids({1, 2, 3}, {3}), 11, 0, 0.1);
  CHECK(t.dtype() == float32);
  expect_close(sum(t, {-1}), {1, 1, 1}, 1e-6);
}

TEST_CASE("the loss is sum t (log t - x)") {
  const Tensor x = log_softmax(randn64({2, 5})), target = ids({3, 1}, {2});
  const Tensor t = nn::smoothed_targets(target, 5, 0, 0.4, float64);
  const Tensor safe = masked_fill(t, eq(t, zeros_like(t)), 1);
  expect_close(nn::label_smoothing_loss(x, target, 0, 0.4), sum(t * (log(safe) - x)));
  // Without smoothing it is the negative log-likelihood.
  expect_close(nn::label_smoothing_loss(x, target, 0, 0), nll_loss(x, target, {.reduction = Reduction::sum}));
  // It is 0 where the model predicts exactly what is asked for.
  CHECK(std::abs(nn::label_smoothing_loss(log(safe), target, 0, 0.4).item()) < 1e-12);
}

TEST_CASE("rows whose target is padding are left out of the loss, and get no gradient") {
  const Tensor logits = randn64({4, 5}), target = ids({3, 0, 1, 0}, {4});
  const Tensor loss = nn::label_smoothing_loss(log_softmax(logits), target, 0, 0.1);
  const Tensor kept = concat({slice(logits, 0, 0, 1), slice(logits, 0, 2, 3)});
  expect_close(loss, nn::label_smoothing_loss(log_softmax(kept), ids({3, 1}, {2}), 0, 0.1));
  loss.backward();
  for (const std::int64_t row : {1, 3}) CHECK(norm(select(logits.grad(), 0, row)).item() == 0);
  CHECK(norm(select(logits.grad(), 0, 0)).item() > 0.01);

  const Tensor all_padding = nn::label_smoothing_loss(log_softmax(logits), ids({0, 0, 0, 0}, {4}), 0, 0.1);
  CHECK(all_padding.item() == 0);
}

TEST_CASE("targets and sizes that do not fit are errors that show them") {
  const Tensor x = log_softmax(randn({2, 5}));
  expect_error([&] { nn::label_smoothing_loss(x, ids({1, 5}, {2}), 0, 0.1); }, {"5"});
  expect_error([&] { nn::label_smoothing_loss(x, ids({1, -1}, {2}), 0, 0.1); }, {"-1"});
  expect_error([&] { nn::label_smoothing_loss(x, ids({1}, {1}), 0, 0.1); }, {"[1, 5]", "[2, 5]"});
  expect_error([&] { nn::label_smoothing_loss(x, ids({1, 2}, {2}), 5, 0.1); }, {"padding_idx", "5"});
  expect_error([&] { nn::label_smoothing_loss(x, ids({1, 2}, {2}), 0, 1.1); }, {"1.1"});
  expect_error([&] { nn::label_smoothing_loss(randn({2, 1, 5}), ids({1, 2}, {2}), 0, 0.1); }, {"[2, 1, 5]"});
  expect_error([&] { nn::label_smoothing_loss(x, Tensor::of({1, 2}), 0, 0.1); }, {"int64"});
}

TEST_CASE("gradients of the loss are what differences say") {
  const Tensor target = ids({3, 0, 1}, {3});
  expect_gradients([&](const Tensors& in) { return nn::label_smoothing_loss(log_softmax(in[0]), target, 0, 0.2); },
                   Tensors{randn64({3, 5})});
}

}  // namespace
}  // namespace prenorm
