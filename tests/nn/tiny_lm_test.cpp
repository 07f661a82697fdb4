#include "nn/tiny_lm.h"

#include <cmath>
#include <string>
#include <vector>

#include "autograd/node.h"
#include "autograd/random.h"
#include "nn/embedding.h"
#include "nn/gradcheck.h"
#include "nn/init.h"
#include "nn/linear.h"
#include "support.h"

namespace prenorm::nn {
namespace {

using Doubles = std::vector<double>;

TinyLMOptions small(TinyLMOptions options = {}) {
  options.d_model = 8;
  options.n_heads = 2;
  options.n_layers = 2;
  options.max_len = 8;
  return options;
}
std::vector<TinyLMOptions> all_switches() {
  std::vector<TinyLMOptions> all;
  for (const Norm norm : {Norm::unbiased, Norm::standard, Norm::rms, Norm::none}) {
    for (const Order order : {Order::pre, Order::post}) {
      for (const bool residual : {true, false}) {
        for (const bool tied : {true, false}) {
          all.push_back(small({.use_residual = residual, .norm = norm, .order = order, .tie_head = tied}));
        }
      }
    }
  }
  return all;
}
std::string described(const TinyLMOptions& options) {
  return "norm " + std::to_string(static_cast<int>(options.norm)) + (options.order == Order::pre ? " pre" : " post") +
         (options.use_residual ? " residual" : "") + (options.tie_head ? " tied" : "");
}
Tensor some_ids(const Shape& shape, std::int64_t vocab) {
  manual_seed(6);
  return randint(0, vocab, shape);
}

TEST_CASE("tokens go in, and logits of the vocabulary come out") {
  const TinyLM model(50);
  CHECK(model(some_ids({2, 16}, 50)).shape() == Shape{2, 16, 50});
  CHECK(model.vocab() == 50);
  CHECK(model.options().n_layers == 8);
  const std::int64_t d = 64, block = 2 * d + 3 * d * d + 3 * d + d * d + d + 8 * d * d + 5 * d + 2 * d;
  CHECK(model.parameter_count() == 50 * d + 64 * d + 8 * block + 2 * d + 50 * d + 50);
  CHECK(model(some_ids({0, 5}, 50)).shape() == Shape{0, 5, 50});
  CHECK(model(some_ids({3, 0}, 50)).shape() == Shape{3, 0, 50});
}

TEST_CASE("the model is token and position, blocks, final norm, head") {
  const TinyLM model(11, small());
  const Tensor ids = some_ids({2, 5}, 11);
  Tensor x = embedding(ids, model.at("tok").as<Embedding>().weight()) +
             slice(model.at("pos").as<Embedding>().weight(), 0, 0, 5);
  for (int i = 0; i < 2; ++i) x = model.blocks(i)(x);
  CHECK(model(ids).to_vector() == model.at("head")(model.at("ln_f")(x)).to_vector());
  const TinyLM none(11, small({.norm = Norm::none}));
  CHECK(none.at("ln_f").parameters().empty());
}

TEST_CASE("parameters are listed by name, and drawn in the order of the list") {
  manual_seed(1);
  const TinyLM model(11, small());
  const NamedTensors list = model.parameters();
  CHECK(list.front().path == "tok.weight");
  CHECK(list[1].path == "pos.weight");
  CHECK(list[2].path == "blocks.0.attn.qkv.weight");
  CHECK(list[14].path == "blocks.1.attn.qkv.weight");
  CHECK(list[list.size() - 3].path == "ln_f.beta");
  CHECK(list.back().path == "head.bias");
  manual_seed(1);
  for (const NamedTensor& named : list) {
    const std::string& path = named.path;
    const Tensor& parameter = named.tensor;
    CAPTURE(path);
    if (path == "tok.weight" || path == "pos.weight") {
      CHECK(parameter.to_vector() == randn(parameter.shape()).to_vector());
    } else if (path.find("gamma") != std::string::npos || path.find("beta") != std::string::npos) {
      CHECK(parameter.to_vector() == Doubles(8, path.ends_with("gamma") ? 1.0 : 0.0));
    } else {
      const std::int64_t fan_in = path.find("ffn.w2") != std::string::npos ? 32 : 8;
      CHECK(parameter.to_vector() == linear_uniform(parameter.shape(), fan_in).to_vector());
    }
  }
}

TEST_CASE("the final norm belongs to the pre order: the post order has none") {
  CHECK(TinyLM(5, small()).at("ln_f").type() == "LayerNorm");
  CHECK(TinyLM(5, small({.order = Order::post})).at("ln_f").type() == "Identity");
  CHECK(TinyLM(5, small({.order = Order::post})).blocks(0).options().order == Order::post);
}

TEST_CASE("a tied head is the token embedding, once, without a bias") {
  manual_seed(2);
  const TinyLM tied(11, small({.tie_head = true})), copy = tied.clone();
  const Tensor weight = tied.at("tok").as<Embedding>().weight();
  CHECK(tied.at("head").as<Linear>().weight().is(weight));
  CHECK(tied.parameters().back().path == "ln_f.beta");
  CHECK(tied.parameters().front().tensor.is(weight));
  CHECK(copy.at("head").as<Linear>().weight().is(copy.at("tok").as<Embedding>().weight()));
  CHECK_FALSE(copy.at("head").as<Linear>().weight().is(weight));

  // Its gradient is the sum of both uses.
  const Tensor ids = some_ids({2, 5}, 11), dy = randn({2, 5, 11});
  const Tensor as_head = clone(weight.detach()).requires_grad_(), as_table = clone(weight.detach()).requires_grad_();
  Tensor x = embedding(ids, as_table) + slice(tied.at("pos").as<Embedding>().weight(), 0, 0, 5);
  for (int i = 0; i < 2; ++i) x = tied.blocks(i)(x);
  linear(tied.at("ln_f")(x), as_head).backward(dy);
  tied.zero_grad();
  tied(ids).backward(dy);
  expect_close(weight.grad(), as_head.grad() + as_table.grad(), 1e-5);
}

TEST_CASE("a token changes no earlier logits and all later ones, whatever the switches") {
  manual_seed(3);
  const Tensor ids = zeros({1, 6}, int64), other = clone(ids);
  fill_(select(other, 1, 3), 4);
  for (const TinyLMOptions& options : all_switches()) {
    const TinyLM model(11, options);
    const Tensor y = model(ids), z = model(other);
    CAPTURE(described(options));
    for (std::int64_t t = 0; t < 6; ++t) {
      CHECK((select(y, 1, t).to_vector() == select(z, 1, t).to_vector()) == (t < 3));
    }
  }
}

TEST_CASE("every parameter of a fresh model gets a gradient in one step, whatever the switches") {
  for (const TinyLMOptions& options : all_switches()) {
    const TinyLM model(11, options);
    const std::int64_t before = Node::live_count();
    const Tensor ids = some_ids({3, 8}, 11);
    cross_entropy(model(ids), mod(ids + 1, 11)).backward();
    CAPTURE(described(options));
    for (const NamedTensor& named : model.parameters()) {
      const std::string& path = named.path;
      const Tensor& parameter = named.tensor;
      CAPTURE(path);
      REQUIRE(parameter.grad().defined());
      const double size = norm(parameter.grad()).item();
      CHECK(std::isfinite(size));
      CHECK(size > 0);
    }
    CHECK(Node::live_count() == before);
  }
}

TEST_CASE("dropout acts in training and not in evaluation") {
  const TinyLM model(11, small({.dropout = 0.3}));
  const Tensor ids = some_ids({2, 5}, 11);
  CHECK(model(ids).to_vector() != model(ids).to_vector());
  manual_seed(1);
  const Tensor y = model(ids);
  manual_seed(1);
  CHECK(model(ids).to_vector() == y.to_vector());
  model.eval();
  const Doubles state = default_generator().state().to_vector();
  CHECK(model(ids).to_vector() == model(ids).to_vector());
  CHECK(default_generator().state().to_vector() == state);
}

TEST_CASE("what the model cannot take is an error") {
  const TinyLM model(11, small());
  CHECK(model(zeros({1, 8}, int64)).shape() == Shape{1, 8, 11});
  expect_error([&] { model(zeros({1, 9}, int64)); }, {"TinyLM", "9 tokens", "max_len 8"});
  expect_error([&] { model(zeros({4}, int64)); }, {"TinyLM", "int64 [B, T]", "int64 [4]"});
  expect_error([&] { model(zeros({1, 4})); }, "float32 [1, 4]");
  expect_error([&] { model(full({1, 2}, 11, int64)); }, {"embedding", "11"});
  expect_error([&] { model(full({1, 2}, -1, int64)); }, {"embedding", "-1"});
  expect_error([] { TinyLM(5, {.d_model = 10, .n_heads = 4}); }, {"d_model 10", "4 heads"});
  expect_error([] { TinyLM(0); }, {"TinyLM", "vocab 0"});
  expect_error([] { TinyLM(5, {.n_layers = -1}); }, "n_layers -1");
  expect_error([] { TinyLM(5, {.max_len = 0}); }, "max_len 0");
  expect_error([&] { model.blocks(2); }, "index 2 of 2");
}

TEST_CASE("one block is frozen by its path, and not those whose numbers begin alike") {
  TinyLMOptions options = small();
  options.n_layers = 11;
  const TinyLM model(5, options);
  model.requires_grad_(false, "blocks.1");
  for (const auto& [path, parameter] : model.parameters()) {
    CHECK(parameter.requires_grad() == !path.starts_with("blocks.1."));
  }
}

TEST_CASE("a model takes the state of another by name, and only of its own shape") {
  manual_seed(4);
  const TinyLM from(11, small()), model(11, small()), larger(12, small()), tied(11, small({.tie_head = true}));
  const Tensor ids = some_ids({2, 5}, 11);
  model.load_state_dict(from.state_dict());
  CHECK(model(ids).to_vector() == from(ids).to_vector());
  expect_error([&] { larger.load_state_dict(from.state_dict()); }, {"TinyLM", "'tok.weight' is [12, 8]", "[11, 8]"});
  expect_error([&] { tied.load_state_dict(from.state_dict()); }, {"unexpected: head.weight, head.bias"});
  CHECK(tied.load_state_dict(from.state_dict(), /*strict=*/false).missing.empty());
}

TEST_CASE("the model computes the same in float64") {
  manual_seed(5);
  const TinyLM model(11, small()), precise = model.clone();
  precise.to(float64);
  const Tensor ids = some_ids({2, 5}, 11);
  const Tensor y = precise(ids);
  CHECK(y.dtype() == float64);
  CHECK(allclose(model(ids).detach(), to(y.detach(), float32), 1e-4, 1e-5));
}

TEST_CASE("a fresh model predicts about evenly, and learns") {
  manual_seed(6);
  const TinyLM model(11, small());
  const Tensor ids = some_ids({8, 8}, 11), next = mod(ids + 1, 11);
  const double first = cross_entropy(model(ids), next).item();
  CHECK(first == doctest::Approx(std::log(11.0)).epsilon(0.25));
  for (int step = 0; step < 60; ++step) {
    model.zero_grad();
    cross_entropy(model(ids), next).backward();
    for (const auto& [path, parameter] : model.parameters()) add_(parameter.detach(), parameter.grad(), -0.5);
  }
  CHECK(cross_entropy(model(ids), next).item() < first / 4);
}

TEST_CASE("differences agree for the whole model, tied and not") {
  for (const TinyLMOptions& options : all_switches()) {
    TinyLMOptions tiny = options;
    tiny.d_model = 4;
    tiny.n_layers = 1;
    tiny.max_len = 3;
    tiny.expansion = 1;
    const GradcheckReport report = gradcheck(TinyLM(5, tiny), {some_ids({2, 3}, 5)}, {.order = 1});
    CHECK_MESSAGE(report.passed, described(options), ": ", report.message);
  }
}

TEST_CASE("differences agree to order 2 for the usual model") {
  for (const bool tied : {true, false}) {
    const TinyLM model(3, {.d_model = 4, .n_heads = 2, .n_layers = 1, .max_len = 2, .expansion = 1, .tie_head = tied});
    const GradcheckReport report = gradcheck(model, {some_ids({1, 2}, 3)});
    CHECK_MESSAGE(report.passed, report.message);
  }
}

}  // namespace
}  // namespace prenorm::nn
