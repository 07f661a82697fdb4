#include "autograd/missing_gradients.h"

#include <string>

#include "autograd/node.h"
#include "autograd/ops.h"
#include "autograd/scope.h"
#include "nn/tiny_lm.h"
#include "support.h"

namespace prenorm {
namespace {

Tensor leaf(std::initializer_list<double> values) {
  return Tensor::of(values, {.dtype = float64, .requires_grad = true});
}

// The one reason why w has no gradient, as the watch sees it.
void expect_missing(const GradientWatch& watch, const Tensor& loss, const Tensor& w, GradientLost reason,
                    std::string_view op, std::string_view scope, std::string_view why) {
  const std::vector<MissingGradient> missing = watch.missing(loss, {{"w", w}});
  REQUIRE(missing.size() == 1);
  CHECK(missing[0].path == "w");
  CHECK(name(missing[0].reason) == name(reason));
  CHECK(missing[0].op == op);
  CHECK(missing[0].scope == scope);
  CHECK(missing[0].message == "no gradient reached w: " + std::string(why));
}

TEST_CASE("missing gradients: none where all arrived") {
  const GradientWatch watch;
  const Tensor w = leaf({1, 2});
  const Tensor loss = sum(w * w);
  loss.backward();
  CHECK(watch.missing(loss, {{"w", w}}).empty());
  CHECK(missing_gradients(loss, {{"w", w}}).empty());
}

TEST_CASE("missing gradients: frozen, and never used") {
  const GradientWatch watch;
  const Tensor v = leaf({1, 2}), unused = leaf({3});
  Tensor w = leaf({1, 2});
  w.requires_grad_(false);
  const Tensor loss = sum(v * w);
  loss.backward();
  expect_missing(watch, loss, w, GradientLost::frozen, "", "", "it is frozen; requires_grad_() lets it learn");
  expect_missing(watch, loss, unused, GradientLost::never_used, "", "", "no operation used it");
  w.requires_grad_();
  expect_missing(watch, loss, w, GradientLost::frozen_in_use, "mul", "", "requires_grad was off when mul used it");
}

TEST_CASE("missing gradients: detached, at once and on the way") {
  const GradientWatch watch;
  const Tensor w = leaf({1, 2}), v = leaf({3, 4});
  Tensor hidden;
  {
    const Scope scope("encoder");
    hidden = tanh(w * 2.0).detach();
  }
  const Scope scope("decoder");
  const Tensor loss = sum(exp(hidden) * v) + sum(v.detach() * v);
  loss.backward();
  expect_missing(watch, loss, w, GradientLost::detached, "tanh", "encoder",
                 "the output of tanh in encoder was detached before exp in decoder");
  const Tensor alone = leaf({1, 2});
  const Tensor other = sum(alone.detach() * v);
  expect_missing(watch, other, alone, GradientLost::detached, "mul", "decoder",
                 "it was detached before mul in decoder");
}

TEST_CASE("missing gradients: a view of what was detached is followed") {
  const GradientWatch watch;
  const Tensor w = leaf({1, 2}), v = leaf({3});
  const Tensor loss = sum(slice((w * 2.0).detach(), 0, 0, 1) * v);
  loss.backward();
  expect_missing(watch, loss, w, GradientLost::detached, "mul", "", "the output of mul was detached before slice");
}

TEST_CASE("missing gradients: used under NoGrad, also as a view") {
  {
    const GradientWatch watch;
    const Tensor w = leaf({1, 2}), v = leaf({3});
    Tensor part;
    {
      const NoGrad no_grad;
      part = slice(w, 0, 0, 1);
    }
    const Tensor loss = sum(part * v);
    expect_missing(watch, loss, w, GradientLost::grad_mode_off, "slice", "", "slice ran under NoGrad");
  }
  const GradientWatch watch;
  const Tensor w = leaf({1, 2}), v = leaf({3, 4});
  Tensor hidden;
  {
    const NoGrad no_grad;
    const Scope scope("teacher");
    hidden = sin(w) + 1.0;
  }
  const Tensor loss = sum(hidden * v);
  loss.backward();
  expect_missing(watch, loss, w, GradientLost::grad_mode_off, "sin", "teacher", "sin in teacher ran under NoGrad");
}

TEST_CASE("missing gradients: operations without derivative") {
  const auto lost_in = [](std::string_view op, const auto& f) {
    const GradientWatch watch;
    const Tensor w = leaf({1, 2, 3}), v = leaf({4, 5, 6});
    Tensor hidden;
    {
      const Scope scope("head");
      hidden = f(w * 1.0);
    }
    const Tensor loss = sum(to(hidden, float64) * v);
    loss.backward();
    CAPTURE(op);
    expect_missing(watch, loss, w, GradientLost::no_derivative, op, "head",
                   std::string(op) + " in head has no derivative");
  };
  lost_in("argmax", [](const Tensor& x) { return argmax(x); });
  lost_in("max", [](const Tensor& x) { return max(x, 0).indices; });
  lost_in("to", [](const Tensor& x) { return to(x, int64); });
  lost_in("gt", [](const Tensor& x) { return gt(x, Tensor::scalar(2, {.dtype = float64})); });
  lost_in("logical_not", [](const Tensor& x) { return logical_not(x); });
  lost_in("multinomial", [](const Tensor& x) { return multinomial(x); });
  lost_in("argmax", [](const Tensor& x) {
    return embedding(argmax(x), Tensor::of({1, 2, 3}, {3, 1}, {.dtype = float64}));
  });
}

TEST_CASE("missing gradients: written in place") {
  const GradientWatch watch;
  const Tensor w = leaf({1, 2}), v = leaf({3, 4}), buffer = zeros({2}, float64);
  copy_(buffer, (w * 2.0).detach());
  const Tensor loss = sum(buffer * v);
  loss.backward();
  expect_missing(watch, loss, w, GradientLost::detached, "mul", "", "the output of mul was detached before copy_");
}

TEST_CASE("missing gradients: used for something else than the loss") {
  const GradientWatch watch;
  const Tensor w = leaf({1, 2}), v = leaf({3, 4});
  {
    const Scope scope("side");
    exp(w);
  }
  const Tensor loss = sum(v * v);
  loss.backward();
  expect_missing(watch, loss, w, GradientLost::not_in_loss, "exp", "side",
                 "exp in side used it, but the loss was not computed from any of that");
  const Tensor data = Tensor::of(exp(w).to_vector(), {2}, {.dtype = float64});  // where no watch can see
  const Tensor other = sum(data * v);
  expect_missing(watch, other, w, GradientLost::not_in_loss, "exp", "side",
                 "exp in side used it, but the loss was not computed from any of that");
}

TEST_CASE("missing gradients: backward not called, cleared since, ended early") {
  const GradientWatch watch;
  const Tensor w = leaf({1, 2});
  const Tensor loss = sum(w * w);
  expect_missing(watch, loss, w, GradientLost::no_backward, "", "", "backward() was not called on this loss");
  loss.backward();
  w.set_grad({});
  expect_missing(watch, loss, w, GradientLost::cleared, "", "", "it arrived, and was cleared since (zero_grad)");

  const Tensor v = leaf({1, 2});
  const Tensor middle = exp(v);
  middle.register_hook([](const Tensor&) -> Tensor { fail("a hook that fails"); });
  const Tensor other = sum(middle);
  CHECK_THROWS_AS(other.backward(), Error);
  expect_missing(watch, other, v, GradientLost::not_there, "", "", "backward ended before it came to it");
}

// An op whose backward forgets its second input.
struct Forgetful final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{
        .name = "forgetful", .formula = "y = a + b", .derivative = "da = dy", .reference = "", .file = ""};
    return info;
  }
  Tensors forward(const Tensors& in) const override { return {in[0] + in[1]}; }
  void backward(const Tensors& dy, GradientSink& dx) const override { dx.add(0, dy[0]); }
};

TEST_CASE("missing gradients: an operation that gave none") {
  const GradientWatch watch;
  const Tensor w = leaf({1, 2}), v = leaf({3, 4});
  const Scope scope("own");
  const Tensor loss = sum(apply_op<Forgetful>({v * 2.0, w * 2.0})[0]);
  loss.backward();
  expect_missing(watch, loss, w, GradientLost::gave_none, "forgetful", "own",
                 "the backward of forgetful in own gave its input 1 no gradient");
  CHECK(watch.missing(loss, {{"v", v}}).empty());
}

TEST_CASE("missing gradients: a value that is cut off on one way and not on another arrives") {
  const GradientWatch watch;
  const Tensor w = leaf({1, 2});
  const Tensor h = w * 2.0;
  const Tensor loss = sum(h * h.detach());
  loss.backward();
  CHECK(watch.missing(loss, {{"w", w}}).empty());
}

TEST_CASE("missing gradients: from the graph alone, as far as it knows") {
  const Tensor w = leaf({1, 2}), v = leaf({3, 4});
  Tensor off = leaf({5, 6});
  off.requires_grad_(false);
  const Tensor loss = sum(w.detach() * v * off);
  const NamedTensors all = {{"w", w}, {"v", v}, {"off", off}};
  const auto reasons = [&] {
    std::string text;
    for (const MissingGradient& missing : missing_gradients(loss, all)) {
      text += missing.path + " " + std::string(name(missing.reason)) + "; ";
      CHECK(missing.message.starts_with("no gradient reached " + missing.path + ": "));
    }
    return text;
  };
  CHECK(reasons() == "w not_in_graph; v no_backward; off frozen; ");
  loss.backward();
  CHECK(reasons() == "w not_in_graph; off frozen; ");
  v.set_grad({});
  CHECK(reasons() == "w not_in_graph; v not_there; off frozen; ");
}

TEST_CASE("missing gradients: a loss without a graph, an undefined one") {
  const GradientWatch watch;
  const Tensor w = leaf({1, 2});
  const Tensor loss = sum((w * 2.0).detach());
  expect_missing(watch, loss, w, GradientLost::detached, "mul", "", "the output of mul was detached before sum");
  const Tensor last = sum(w * 2.0).detach();
  expect_missing(watch, last, w, GradientLost::detached, "sum", "",
                 "the output of sum was detached before it became the loss");
  expect_error([&] { watch.missing({}, {}); }, {"missing_gradients: the loss is undefined"});
  expect_error([&] { missing_gradients(loss, {{"v", {}}}); }, {"missing_gradients: v is undefined"});
}

TEST_CASE("missing gradients: of a model, by path") {
  manual_seed(0);
  const nn::TinyLM model(11, {.d_model = 8, .n_heads = 2, .n_layers = 2, .max_len = 7});
  const Tensor ids = randint(0, 11, {2, 7});
  model.requires_grad_(false, "blocks.0");
  {
    const GradientWatch watch;
    const Tensor loss = cross_entropy(model(ids), ids);
    loss.backward();
    const auto missing = watch.missing(loss, model.parameters());
    CHECK(missing.size() == model.at("blocks.0").parameters().size());
    for (const MissingGradient& m : missing) CHECK(m.message.find("blocks.0.") != std::string::npos);
  }
  model.zero_grad();
  model.requires_grad_(true);
  const GradientWatch watch;
  const Tensor logits = model(ids);
  const Tensor scale = leaf({1});
  const Tensor loss = sum(to(logits, float64).detach() * scale);
  loss.backward();
  const auto missing = watch.missing(loss, model.parameters());
  CHECK(missing.size() == model.parameters().size());
  for (const MissingGradient& m : missing)
    CHECK(m.message == "no gradient reached " + m.path + ": the output of to was detached before mul");
}

}  // namespace
}  // namespace prenorm
