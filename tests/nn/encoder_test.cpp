#include "nn/encoder.h"

#include <string>
#include <vector>

#include "autograd/ops.h"
#include "layer_checks.h"
#include "nn/container.h"
#include "nn/feed_forward.h"
#include "nn/linear.h"

namespace prenorm {
namespace {

using nn::Encoder;
using nn::EncoderLayer;
using nn::MultiHeadedAttention;
using nn::Order;
using nn::PositionwiseFeedForward;

EncoderLayer make_layer(std::int64_t size, std::int64_t h, std::int64_t d_ff, nn::EncoderLayerOptions options) {
  return {size, MultiHeadedAttention(h, size, options.dropout), PositionwiseFeedForward(size, d_ff, options.dropout),
          options};
}

Tensor padding_mask() { return Tensor::of({1, 1, 1, 1, 0, 0}, {1, 1, 6}, {.dtype = boolean}); }
Tensor real_tokens(const Tensor& x) { return slice(x, 1, 0, 4); }

TEST_CASE("an encoder layer: self-attention, then feed-forward, each around the stream") {
  for (const Order order : {Order::pre, Order::post}) {
    const MultiHeadedAttention self_attn(2, 8, 0);
    const PositionwiseFeedForward feed_forward(8, 16, 0);
    const EncoderLayer layer(8, self_attn, feed_forward, {.dropout = 0, .order = order});
    const Tensor x = randn({2, 6, 8}), mask = padding_mask();
    const auto attend = [&](const Tensor& h) { return self_attn(h, h, h, mask); };
    const Tensor expected = [&] {
      if (order == Order::pre) {
        const Tensor y = x + attend(layer_norm_std(x));
        return y + feed_forward(layer_norm_std(y));
      }
      const Tensor y = layer_norm_std(x + attend(x));
      return layer_norm_std(y + feed_forward(y));
    }();
    expect_close(layer(x, mask), expected, 1e-5);
  }
}

TEST_CASE("an encoder layer's parameters, in order") {
  const EncoderLayer layer = make_layer(8, 2, 16, {});
  CHECK(paths(layer.parameters()) ==
        std::vector<std::string>{"self_attn.linears.0.weight", "self_attn.linears.0.bias", "self_attn.linears.1.weight",
                                 "self_attn.linears.1.bias", "self_attn.linears.2.weight", "self_attn.linears.2.bias",
                                 "self_attn.linears.3.weight", "self_attn.linears.3.bias", "feed_forward.w_1.weight",
                                 "feed_forward.w_1.bias", "feed_forward.w_2.weight", "feed_forward.w_2.bias",
                                 "sublayer.0.norm.a_2", "sublayer.0.norm.b_2", "sublayer.1.norm.a_2",
                                 "sublayer.1.norm.b_2"});
  CHECK(path_set(layer.parameters()) == golden_paths("encoder_layer.padding"));
}

TEST_CASE("an encoder's parameters are those of the reference data, layer by layer, the final norm last") {
  const Encoder encoder(make_layer(8, 2, 16, {}), 2);
  const std::vector<std::string> names = paths(encoder.parameters());
  CHECK(path_set(encoder.parameters()) == golden_paths("encoder.padding"));
  CHECK(names.front() == "layers.0.self_attn.linears.0.weight");
  CHECK(names[16] == "layers.1.self_attn.linears.0.weight");
  CHECK(names.back() == "norm.b_2");
}

TEST_CASE("the parts may be any modules") {
  const EncoderLayer layer(8, MultiHeadedAttention(2, 8), nn::Sequential({nn::Linear(8, 4), nn::Linear(4, 8)}));
  CHECK(layer(randn({2, 3, 8})).shape() == Shape{2, 3, 8});
  const EncoderLayer wrong(8, MultiHeadedAttention(2, 8), nn::Linear(8, 4));
  expect_error([&] { wrong(randn({2, 3, 8})); }, {"[2, 3, 4]", "[2, 3, 8]"});
}

TEST_CASE("an encoder is N layers, each of two sublayers, and a norm") {
  const Encoder encoder(make_layer(8, 2, 16, {.dropout = 0}), 3);
  const nn::ModuleList layers = encoder.at("layers").as<nn::ModuleList>();
  CHECK(layers.size() == 3);
  const Tensor x = randn({2, 6, 8}), mask = padding_mask();
  Tensor y = x;
  for (std::int64_t i = 0; i < 3; ++i) {
    CHECK(layers.get<EncoderLayer>(i).at("sublayer").children().size() == 2);
    y = layers.get<EncoderLayer>(i)(y, mask);
  }
  CHECK(same_bits(encoder(x, mask), layer_norm_std(y, ones({8}), zeros({8}))));
  CHECK(same_bits(Encoder(make_layer(8, 2, 16, {}), 0)(x), layer_norm_std(x, ones({8}), zeros({8}))));
}

TEST_CASE("the layers are copies with weights of their own, and copying draws nothing") {
  const EncoderLayer layer = make_layer(8, 2, 16, {});
  const auto before = generator_state();
  const Encoder encoder(layer, 3);
  CHECK(generator_state() == before);
  CHECK(share_no_memory(encoder, layer));
  const Tensor first = encoder.at("layers.0.feed_forward.w_1").as<nn::Linear>().weight();
  const Tensor second = encoder.at("layers.1.feed_forward.w_1").as<nn::Linear>().weight();
  CHECK(same_bits(first, second));
  const NoGrad no_grad;
  fill_(first, 7);
  CHECK_FALSE(same_bits(first, second));
}

TEST_CASE("a layer's attention and feed-forward are the ones it was given") {
  const MultiHeadedAttention self_attn(2, 8);
  const PositionwiseFeedForward feed_forward(8, 16);
  const EncoderLayer layer(8, self_attn, feed_forward);
  CHECK(layer.at("self_attn").is(self_attn));
  CHECK(layer.at("feed_forward").is(feed_forward));
}

TEST_CASE("the post order has no final norm, and reaches every sublayer") {
  const Encoder encoder(make_layer(8, 2, 16, {.order = Order::post}), 2);
  CHECK_FALSE(path_set(encoder.parameters()).contains("norm.a_2"));
  CHECK(encoder.parameters().size() == 2 * 16);
  for (const char* path :
       {"layers.0.sublayer.0", "layers.0.sublayer.1", "layers.1.sublayer.0", "layers.1.sublayer.1"}) {
    CHECK(encoder.at(path).as<nn::SublayerConnection>().options().order == Order::post);
  }
  // Each row leaves the stack normalised, since the last norm has not learned yet.
  const Tensor y = encoder.eval().as<Encoder>()(randn({2, 3, 8}));
  expect_close(mean(y, {-1}), std::vector<double>(6, 0), 1e-6);
  expect_close(std(y, {-1}), std::vector<double>(6, 1), 1e-5);
}

TEST_CASE("the pre order's final norm normalises the output") {
  const Encoder encoder(make_layer(8, 2, 16, {.dropout = 0}), 2);
  CHECK(encoder.parameters().size() == 2 * 16 + 2);
  const Tensor y = encoder(randn({2, 3, 8}) * 10);
  expect_close(mean(y, {-1}), std::vector<double>(6, 0), 1e-6);
  expect_close(std(y, {-1}), std::vector<double>(6, 1), 1e-5);
}

TEST_CASE("noise in place of padding leaves the real tokens as they are, bit for bit") {
  for (const Order order : {Order::pre, Order::post}) {
    const Encoder encoder(make_layer(64, 8, 256, {.dropout = 0.1, .order = order}), 3);
    encoder.eval();
    const Tensor x = randn({1, 6, 64});
    const Tensor noisy = concat({real_tokens(x), randn({1, 2, 64}) * 100}, 1);
    const Tensor y = encoder(x, padding_mask());
    CHECK(same_bits(real_tokens(encoder(noisy, padding_mask())), real_tokens(y)));
    CHECK_FALSE(same_bits(real_tokens(encoder(noisy)), real_tokens(encoder(x))));
  }
}

TEST_CASE("gradients do not reach masked positions from the real ones") {
  const Encoder encoder(make_layer(8, 2, 16, {.dropout = 0}), 2);
  const Tensor x = randn({1, 6, 8}, {.requires_grad = true});
  sum(sin(real_tokens(encoder(x, padding_mask())))).backward();
  CHECK(same_bits(slice(x.grad(), 1, 4, 6), zeros({1, 2, 8})));
  CHECK(norm(real_tokens(x.grad())).item() > 1e-3);
}

TEST_CASE("a sequence whose positions are all masked has finite outputs and gradients") {
  const Encoder encoder(make_layer(8, 2, 16, {.dropout = 0}), 2);
  const Tensor x = randn({2, 3, 8}, {.requires_grad = true});
  const Tensor mask = Tensor::of({1, 1, 0, 0, 0, 0}, {2, 1, 3}, {.dtype = boolean});
  const Tensor y = encoder(x, mask);
  CHECK(is_finite(y));
  y.backward(randn({2, 3, 8}));
  CHECK(is_finite(x.grad()));
  for (const NamedTensor& p : encoder.parameters()) CHECK_MESSAGE(is_finite(p.tensor.grad()), p.path);
}

TEST_CASE("constant rows in float32 have finite outputs and gradients") {
  const Encoder encoder(make_layer(8, 2, 16, {.dropout = 0}), 2);
  const Tensor x = full({1, 3, 8}, 7.1).requires_grad_();
  const Tensor y = encoder(x);
  CHECK(is_finite(y));
  y.backward(randn({1, 3, 8}));
  CHECK(is_finite(x.grad()));
}

TEST_CASE("every parameter gets a gradient") {
  const Encoder encoder(make_layer(8, 2, 16, {.dropout = 0}), 2);
  encoder(randn({2, 3, 8})).backward(randn({2, 3, 8}));
  for (const NamedTensor& p : encoder.parameters()) CHECK_MESSAGE(p.tensor.grad().defined(), p.path);
}

TEST_CASE("dropout in training, none in evaluation, and then nothing is drawn") {
  const Encoder encoder(make_layer(8, 2, 16, {.dropout = 0.3}), 2);
  const Tensor x = randn({2, 3, 8});
  CHECK_FALSE(same_bits(encoder(x), encoder(x)));
  encoder.eval();
  const auto before = generator_state();
  const Tensor y = encoder(x);
  CHECK(same_bits(encoder(x), y));
  CHECK(generator_state() == before);
  encoder.train();
  CHECK_FALSE(same_bits(encoder(x), y));
}

TEST_CASE("nodes carry the paths of the modules that made them") {
  const Encoder encoder(make_layer(8, 2, 16, {.dropout = 0.1}), 2);
  Scopes scopes;
  encoder(randn({1, 3, 8}));
  CHECK(scopes.of("linear") == std::vector<std::string>{"layers.0.self_attn.linears.0", "layers.0.self_attn.linears.1",
                                                        "layers.0.self_attn.linears.2", "layers.0.self_attn.linears.3",
                                                        "layers.0.feed_forward.w_1", "layers.0.feed_forward.w_2",
                                                        "layers.1.self_attn.linears.0", "layers.1.self_attn.linears.1",
                                                        "layers.1.self_attn.linears.2", "layers.1.self_attn.linears.3",
                                                        "layers.1.feed_forward.w_1", "layers.1.feed_forward.w_2"});
  CHECK(scopes.of("layer_norm_std") == std::vector<std::string>{"layers.0.sublayer.0.norm", "layers.0.sublayer.1.norm",
                                                                "layers.1.sublayer.0.norm", "layers.1.sublayer.1.norm",
                                                                "norm"});
  CHECK(scopes.of("residual_add") == std::vector<std::string>{"layers.0.sublayer.0", "layers.0.sublayer.1",
                                                              "layers.1.sublayer.0", "layers.1.sublayer.1"});
}

TEST_CASE("a state dict goes from one encoder to another") {
  const Encoder from(make_layer(8, 2, 16, {}), 2), into(make_layer(8, 2, 16, {}), 2);
  from.eval();
  into.eval();
  const Tensor x = randn({1, 3, 8});
  CHECK_FALSE(same_bits(from(x), into(x)));
  into.load_state_dict(from.state_dict());
  CHECK(same_bits(from(x), into(x)));
}

TEST_CASE("gradients of a layer are what differences say") {
  const auto call = [](const EncoderLayer& layer, const Tensors& in) {
    return layer(in[0], Tensor::of({1, 1, 0, 1, 1, 1}, {2, 1, 3}, {.dtype = boolean}));
  };
  for (const Order order : {Order::pre, Order::post}) {
    expect_layer_gradients(make_layer(4, 2, 6, {.dropout = 0, .order = order}), {randn({2, 3, 4})}, call);
  }
  expect_layer_gradients(make_layer(4, 2, 6, {.dropout = 0.2}), {randn({2, 3, 4})}, call, {.order = 1});
}

TEST_CASE("gradients of an encoder are what differences say") {
  const auto call = [](const Encoder& encoder, const Tensors& in) { return encoder(in[0]); };
  for (const Order order : {Order::pre, Order::post}) {
    expect_layer_gradients(Encoder(make_layer(4, 2, 6, {.dropout = 0, .order = order}), 2), {randn({2, 3, 4})}, call,
                           {.order = 1});
  }
}

}  // namespace
}  // namespace prenorm
