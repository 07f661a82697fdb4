#include "nn/residual.h"

#include <functional>
#include <string>
#include <vector>

#include "autograd/ops.h"
#include "autograd/scope.h"
#include "layer_checks.h"
#include "nn/container.h"
#include "nn/feed_forward.h"
#include "nn/linear.h"

namespace prenorm {
namespace {

using nn::Order;
using nn::SublayerConnection;

Tensor halved(const Tensor& x) { return x / 2; }

// A connection in float64 whose norm is not the fresh one.
SublayerConnection connection64(std::int64_t size, nn::SublayerConnectionOptions options) {
  SublayerConnection connection(size, options);
  connection.to(float64);
  connection.load_state_dict({{"norm.a_2", randn64({size}, 1)}, {"norm.b_2", randn64({size}, 2)}});
  return connection;
}
Tensor normalised(const SublayerConnection& connection, const Tensor& x) {
  const NamedTensors parameters = connection.parameters();
  return layer_norm_std(x, parameters[0].tensor, parameters[1].tensor, 1e-6);
}

TEST_CASE("the pre order is x + f(norm(x))") {
  const SublayerConnection connection = connection64(8, {.dropout = 0});
  const Tensor x = randn64({2, 3, 8});
  expect_close(connection(x, [](const Tensor& h) { return sin(h); }), x + sin(normalised(connection, x)));
}

TEST_CASE("the post order is norm(x + f(x))") {
  const SublayerConnection connection = connection64(8, {.dropout = 0, .order = Order::post});
  const Tensor x = randn64({2, 3, 8});
  expect_close(connection(x, [](const Tensor& h) { return sin(h); }), normalised(connection, x + sin(x)));
}

TEST_CASE("a sublayer connection has a norm's two parameters, and the pre order is the default") {
  CHECK(paths(SublayerConnection(8).parameters()) == std::vector<std::string>{"norm.a_2", "norm.b_2"});
  CHECK(SublayerConnection(8).options().order == Order::pre);
}

TEST_CASE("any callable is a sublayer") {
  const SublayerConnection connection(8, {.dropout = 0});
  const Tensor x = randn({2, 3, 8});
  const Tensor by_lambda = connection(x, [](const Tensor& h) { return h / 2; });
  const std::function<Tensor(const Tensor&)> function = halved;
  CHECK(same_bits(connection(x, halved), by_lambda));
  CHECK(same_bits(connection(x, function), by_lambda));

  const nn::Linear layer(8, 8);
  const nn::Module handle = layer;
  const nn::Sequential sequence({layer});
  const Tensor by_layer = connection(x, layer);
  CHECK(same_bits(connection(x, handle), by_layer));
  CHECK(same_bits(connection(x, sequence), by_layer));
  CHECK(same_bits(connection(x, [&](const Tensor& h) { return layer(h); }), by_layer));
}

TEST_CASE("x may have any shape that ends in the size") {
  const SublayerConnection connection(4, {.dropout = 0});
  for (const Shape& shape : {Shape{4}, Shape{3, 4}, Shape{2, 3, 4}, Shape{2, 1, 3, 4}, Shape{0, 4}}) {
    CHECK(connection(randn(shape), halved).shape() == shape);
  }
  expect_error([&] { connection(randn({2, 5}), halved); }, {"[2, 5]", "[4]"});
}

TEST_CASE("a sublayer of another shape is an error that shows both") {
  const SublayerConnection connection(8);
  const Tensor x = randn({2, 3, 8});
  expect_error([&] { connection(x, nn::Linear(8, 4)); }, {"SublayerConnection", "[2, 3, 4]", "[2, 3, 8]"});
  // These would broadcast.
  expect_error([&] { connection(x, [](const Tensor& h) { return sum(h, {-1}, true); }); }, {"[2, 3, 1]", "[2, 3, 8]"});
  expect_error([&] { connection(x, [](const Tensor& h) { return unsqueeze(h, 0); }); }, {"[1, 2, 3, 8]", "[2, 3, 8]"});
  expect_error([&] { connection(x, [](const Tensor&) { return Tensor(); }); }, {"SublayerConnection", "[2, 3, 8]"});
}

TEST_CASE("a sublayer of zeros leaves the input, and its gradient, exactly as they are") {
  const SublayerConnection connection(8);
  const Tensor x = randn({2, 3, 8}, {.requires_grad = true}), cotangent = randn({2, 3, 8});
  const Tensor y = connection(x, [](const Tensor& h) { return zeros_like(h); });
  CHECK(same_bits(y, x));
  y.backward(cotangent);
  CHECK(same_bits(x.grad(), cotangent));
}

TEST_CASE("dropout falls on the branch only") {
  const SublayerConnection connection(8, {.dropout = 1});
  const Tensor x = randn({2, 3, 8});
  CHECK(same_bits(connection(x, halved), x));
}

TEST_CASE("dropout is off in evaluation and draws nothing") {
  const SublayerConnection connection(8, {.dropout = 0.5});
  const Tensor x = randn({2, 3, 8});
  CHECK_FALSE(same_bits(connection(x, halved), connection(x, halved)));
  connection.eval();
  const auto before = generator_state();
  CHECK(same_bits(connection(x, halved), x + halved(layer_norm_std(x))));
  CHECK(generator_state() == before);
}

TEST_CASE("constant rows in float32 are finite in both directions") {
  const nn::PositionwiseFeedForward feed_forward(768, 8, 0);
  for (const double constant : {0.0, 0.1, 7.1, 1000.1}) {
    const SublayerConnection pre(768, {.dropout = 0}), post(768, {.dropout = 0, .order = Order::post});
    const Tensor x = full({2, 768}, constant).requires_grad_();
    Tensor seen;
    const Tensor y = pre(x, [&](const Tensor& h) { return feed_forward(seen = h); });
    CHECK(same_bits(seen, zeros({2, 768})));
    y.backward(randn({2, 768}));
    CHECK(is_finite(x.grad()));

    x.set_grad({});
    const Tensor z = post(x, [](const Tensor& h) { return zeros_like(h); });
    CHECK(same_bits(z, zeros({2, 768})));
    z.backward(randn({2, 768}));
    CHECK(is_finite(x.grad()));
  }
}

TEST_CASE("a single feature has no unbiased std") {
  expect_error([] { SublayerConnection(1); }, {"LayerNorm", "at least 2"});
}

TEST_CASE("a sublayer runs under its caller's path, the connection's parts under its own") {
  const SublayerConnection connection(4, {.dropout = 0.5});
  nn::ModuleList list;
  list.push_back(connection);
  Scopes scopes;
  const Scope outer("model");
  const Tensor x = randn({2, 4}, {.requires_grad = true});
  connection(x, [](const Tensor& h) { return sin(h); });
  CHECK(scopes.has("sin", "model"));
  CHECK(scopes.has("layer_norm_std", "model.0.norm"));
  CHECK(scopes.has("dropout", "model.0.dropout"));
  CHECK(scopes.has("residual_add", "model.0"));
}

TEST_CASE("a clone has parameters of its own, with the same values") {
  const SublayerConnection connection = connection64(4, {.dropout = 0});
  const SublayerConnection copy = connection.clone();
  CHECK(share_no_memory(connection, copy));
  const Tensor x = randn64({3, 4});
  CHECK(same_bits(copy(x, halved), connection(x, halved)));
}

TEST_CASE("the gradient is the skip's plus the branch's") {
  const SublayerConnection connection = connection64(8, {.dropout = 0});
  const nn::Module norm = connection.at("norm");
  const Tensor x = randn64({2, 3, 8}), cotangent = randn64({2, 3, 8}, 7).detach();
  const auto f = [](const Tensor& h) { return sin(h); };
  const Tensor whole = grad({connection(x, f)}, {x}, {cotangent})[0];
  const Tensor branch = grad({f(norm(x))}, {x}, {cotangent})[0];
  expect_close(whole, cotangent + branch);
}

TEST_CASE("gradients of both orders are what differences say") {
  for (const Order order : {Order::pre, Order::post}) {
    for (const double dropout : {0.0, 0.4}) {
      const auto call = [](const SublayerConnection& connection, const Tensors& in) {
        return connection(in[0], [&](const Tensor& h) { return sin(h) * in[1]; });
      };
      expect_layer_gradients(SublayerConnection(4, {.dropout = dropout, .order = order}),
                             {randn({2, 3, 4}), randn({3, 4})}, call);
    }
  }
}

}  // namespace
}  // namespace prenorm
