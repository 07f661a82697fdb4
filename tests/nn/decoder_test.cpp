#include "nn/decoder.h"

#include <string>
#include <vector>

#include "autograd/ops.h"
#include "layer_checks.h"
#include "nn/container.h"
#include "nn/feed_forward.h"

namespace prenorm {
namespace {

using nn::Decoder;
using nn::DecoderLayer;
using nn::MultiHeadedAttention;
using nn::Order;
using nn::PositionwiseFeedForward;

const Tensor no_mask;

DecoderLayer make_layer(std::int64_t size, std::int64_t h, std::int64_t d_ff, nn::EncoderLayerOptions options) {
  const MultiHeadedAttention attention(h, size, options.dropout);
  return {size, attention, attention.clone(), PositionwiseFeedForward(size, d_ff, options.dropout), options};
}

TEST_CASE("a decoder layer: self-attention, attention over the memory, feed-forward") {
  for (const Order order : {Order::pre, Order::post}) {
    const MultiHeadedAttention self_attn(2, 8, 0), src_attn(2, 8, 0);
    const PositionwiseFeedForward feed_forward(8, 16, 0);
    const DecoderLayer layer(8, self_attn, src_attn, feed_forward, {.dropout = 0, .order = order});
    const Tensor x = randn({2, 3, 8}), memory = randn({2, 5, 8});
    const Tensor src_mask = Tensor::of({1, 1, 1, 0, 0, 1, 1, 1, 1, 1}, {2, 1, 5}, {.dtype = boolean});
    const Tensor tgt_mask = nn::subsequent_mask(3);
    const auto own = [&](const Tensor& h) { return self_attn(h, h, h, tgt_mask); };
    const auto other = [&](const Tensor& h) { return src_attn(h, memory, memory, src_mask); };
    const Tensor expected = [&] {
      if (order == Order::pre) {
        const Tensor y = x + own(layer_norm_std(x)), z = y + other(layer_norm_std(y));
        return z + feed_forward(layer_norm_std(z));
      }
      const Tensor y = layer_norm_std(x + own(x)), z = layer_norm_std(y + other(y));
      return layer_norm_std(z + feed_forward(z));
    }();
    expect_close(layer(x, memory, src_mask, tgt_mask), expected, 1e-5);
  }
}

TEST_CASE("a decoder layer's parameters: two attentions, feed-forward, three norms, in this order") {
  const DecoderLayer layer = make_layer(8, 2, 16, {});
  const std::vector<std::string> names = paths(layer.parameters());
  CHECK(path_set(layer.parameters()) == golden_paths("decoder_layer.causal"));
  CHECK(names.size() == 26);
  CHECK(names[0] == "self_attn.linears.0.weight");
  CHECK(names[8] == "src_attn.linears.0.weight");
  CHECK(names[16] == "feed_forward.w_1.weight");
  CHECK(names[20] == "sublayer.0.norm.a_2");
  CHECK(names.back() == "sublayer.2.norm.b_2");
}

TEST_CASE("a decoder is N copies with weights of their own; copying draws nothing") {
  const DecoderLayer layer = make_layer(8, 2, 16, {.dropout = 0});
  const auto before = generator_state();
  const Decoder decoder(layer, 2);
  CHECK(generator_state() == before);
  CHECK(share_no_memory(decoder, layer));
  CHECK(decoder.parameters().size() == 2 * 26 + 2);
  CHECK(paths(decoder.parameters()).back() == "norm.b_2");

  const nn::ModuleList layers = decoder.at("layers").as<nn::ModuleList>();
  const Tensor x = randn({2, 3, 8}), memory = randn({2, 5, 8}), mask = nn::subsequent_mask(3);
  Tensor y = x;
  for (std::int64_t i = 0; i < layers.size(); ++i) y = layers.get<DecoderLayer>(i)(y, memory, no_mask, mask);
  CHECK(same_bits(decoder(x, memory, no_mask, mask), layer_norm_std(y, ones({8}), zeros({8}))));
}

TEST_CASE("the post order has no final norm, and reaches every sublayer") {
  const Decoder decoder(make_layer(8, 2, 16, {.order = Order::post}), 2);
  CHECK(decoder.parameters().size() == 2 * 26);
  for (const char* path : {"layers.0.sublayer.0", "layers.0.sublayer.2", "layers.1.sublayer.1"}) {
    CHECK(decoder.at(path).as<nn::SublayerConnection>().options().order == Order::post);
  }
}

TEST_CASE("a token of the target changes itself and what comes after, nothing before") {
  const Decoder decoder(make_layer(16, 4, 32, {.dropout = 0}), 2);
  const std::int64_t T = 5;
  const Tensor x = randn({2, T, 16}), memory = randn({2, 4, 16}), mask = nn::subsequent_mask(T);
  const Tensor y = decoder(x, memory, no_mask, mask);
  for (std::int64_t t = 0; t < T; ++t) {
    const Tensor changed = concat({slice(x, 1, 0, t), randn({2, 1, 16}), slice(x, 1, t + 1, T)}, 1);
    const Tensor z = decoder(changed, memory, no_mask, mask);
    CHECK(same_bits(slice(z, 1, 0, t), slice(y, 1, 0, t)));
    for (std::int64_t later = t; later < T; ++later) {
      CHECK_FALSE(same_bits(select(z, 1, later), select(y, 1, later)));
    }
  }
}

TEST_CASE("padding of the memory is not seen") {
  const Decoder decoder(make_layer(16, 4, 32, {.dropout = 0}), 2);
  const Tensor x = randn({1, 3, 16}), memory = randn({1, 5, 16}), causal = nn::subsequent_mask(3);
  const Tensor src_mask = Tensor::of({1, 1, 1, 0, 0}, {1, 1, 5}, {.dtype = boolean});
  const Tensor noisy = concat({slice(memory, 1, 0, 3), randn({1, 2, 16}) * 100}, 1);
  CHECK(same_bits(decoder(x, noisy, src_mask, causal), decoder(x, memory, src_mask, causal)));
  CHECK_FALSE(same_bits(decoder(x, noisy, no_mask, causal), decoder(x, memory, no_mask, causal)));
}

TEST_CASE("dropout in training, none in evaluation, and then nothing is drawn") {
  const Decoder decoder(make_layer(8, 2, 16, {.dropout = 0.3}), 2);
  const Tensor x = randn({2, 3, 8}), memory = randn({2, 4, 8});
  CHECK_FALSE(same_bits(decoder(x, memory, no_mask, no_mask), decoder(x, memory, no_mask, no_mask)));
  decoder.eval();
  const auto before = generator_state();
  const Tensor y = decoder(x, memory, no_mask, no_mask);
  CHECK(same_bits(decoder(x, memory, no_mask, no_mask), y));
  CHECK(generator_state() == before);
}

TEST_CASE("nodes carry the paths of the modules that made them") {
  const Decoder decoder(make_layer(8, 2, 16, {.dropout = 0}), 1);
  Scopes scopes;
  decoder(randn({1, 2, 8}), randn({1, 3, 8}), no_mask, no_mask);
  CHECK(scopes.of("linear") == std::vector<std::string>{"layers.0.self_attn.linears.0", "layers.0.self_attn.linears.1",
                                                        "layers.0.self_attn.linears.2", "layers.0.self_attn.linears.3",
                                                        "layers.0.src_attn.linears.0", "layers.0.src_attn.linears.1",
                                                        "layers.0.src_attn.linears.2", "layers.0.src_attn.linears.3",
                                                        "layers.0.feed_forward.w_1", "layers.0.feed_forward.w_2"});
  CHECK(scopes.of("layer_norm_std") == std::vector<std::string>{"layers.0.sublayer.0.norm", "layers.0.sublayer.1.norm",
                                                                "layers.0.sublayer.2.norm", "norm"});
}

TEST_CASE("gradients are what differences say, those of the memory too") {
  const auto call = [](const auto& layer, const Tensors& in) {
    return layer(in[0], in[1], Tensor::of({1, 1, 0}, {1, 1, 3}, {.dtype = boolean}), nn::subsequent_mask(2));
  };
  for (const Order order : {Order::pre, Order::post}) {
    const DecoderLayer layer = make_layer(4, 2, 6, {.dropout = 0, .order = order});
    expect_layer_gradients(layer, {randn({1, 2, 4}), randn({1, 3, 4})}, call);
    expect_layer_gradients(Decoder(layer, 2), {randn({1, 2, 4}), randn({1, 3, 4})}, call, {.order = 1});
  }
}

}  // namespace
}  // namespace prenorm
