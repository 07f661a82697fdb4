#include "autograd/node.h"

#include <thread>
#include <vector>

#include "autograd/ops.h"
#include "autograd/scope.h"
#include "support.h"

namespace prenorm {
namespace {

using Doubles = std::vector<double>;

// --- ops as a user writes them -----------------------------------------------------------------------------------

struct Square final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{
        .name = "square", .formula = "y = x^2", .derivative = "dx = 2 x dy", .reference = "", .file = ""};
    return info;
  }
  Tensors forward(const Tensors& in) const override { return {in[0] * in[0]}; }
  Saves saves() const override { return {.inputs = {0}}; }
  void backward(const Tensors& dy, GradientSink& dx) const override { dx.add(0, 2 * input(0) * dy[0]); }
};
Tensor square(const Tensor& x) { return apply_op<Square>({x})[0]; }

// An op whose parts a test fills in.
struct Custom : Node {
  using Forward = std::function<Tensors(const Tensors&)>;
  using Backward = std::function<void(const Node&, const Tensors&, GradientSink&)>;
  Custom(Forward forward, Backward backward, Saves saves = {})
      : forward_(std::move(forward)), backward_(std::move(backward)), saves_(saves) {}
  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "custom", .formula = "", .derivative = "", .reference = "", .file = ""};
    return info;
  }
  Tensors forward(const Tensors& in) const override { return forward_(in); }
  Saves saves() const override { return saves_; }
  void backward(const Tensors& dy, GradientSink& dx) const override { backward_(*this, dy, dx); }

 private:
  Forward forward_;
  Backward backward_;
  Saves saves_;
};

Tensors doubled(const Tensors& in) { return {in[0] * 2}; }
void run_backward(const Custom::Backward& backward, Saves saves = {}) {
  const Tensor x = randn64({2, 3});
  sum(apply_op<Custom>({x}, doubled, backward, saves)[0]).backward();
}

TEST_CASE_FIXTURE(NoLeak, "an op written by a user works to any order") {
  expect_gradients([](const Tensors& in) { return square(in[0]); }, Tensors{randn64({2, 3})});
  const Tensor x = Tensor::of({3}, {}, {.dtype = float64, .requires_grad = true});
  const Tensor y = square(square(x));  // x^4
  const Tensor first = grad({y}, {x}, {}, {.create_graph = true})[0];
  const Tensor second = grad({first}, {x}, {}, {.create_graph = true})[0];
  const Tensor third = grad({second}, {x}, {}, {.create_graph = true})[0];
  CHECK(first.item() == 108);
  CHECK(second.item() == 108);
  CHECK(third.item() == 72);
  CHECK(grad({third}, {x})[0].item() == 24);
}

TEST_CASE_FIXTURE(NoLeak, "a node tells what it was made from") {
  const Tensor x = randn64({2, 3}), c = zeros({}, float64);
  std::shared_ptr<Node> node;
  {
    const Scope scope("layer");
    const Tensor y = apply_op<Custom>(
        {x, c, {}},
        [](const Tensors& in) {
          return Tensors{in[0] + in[1], arange(4)};
        },
        nullptr, Saves{.inputs = {0}, .outputs = {0, 1}})[0];
    node = y.node();
    CHECK(y.output_index() == 0);
    CHECK_FALSE(y.is_leaf());
  }
  CHECK(node->info().name == "custom");
  CHECK(node->scope() == "layer");
  CHECK(node->input_count() == 3);
  CHECK(node->output_count() == 2);
  CHECK(node->input_shape(0) == Shape{2, 3});
  CHECK(node->input_dtype(0) == float64);
  CHECK(node->output_shape(1) == Shape{4});
  CHECK(node->output_dtype(1) == int64);
  CHECK(node->needs(0));
  CHECK_FALSE(node->needs(1));
  CHECK_FALSE(node->needs(2));
  CHECK(node->has_input(1));
  CHECK_FALSE(node->has_input(2));
  CHECK(node->edges().size() == 3);
  CHECK(node->edges()[0].node->is_leaf());
  CHECK(node->edges()[0].node->info().name == "leaf");
  CHECK(node->edges()[1].node == nullptr);
  CHECK(node->input(0).storage() == x.storage());
  CHECK(node->output(1).to_vector() == Doubles{0, 1, 2, 3});
  expect_error([&] { static_cast<void>(node->input(1)); }, {"custom: ", "asks for input 1", "saves() does not name"});
  expect_error([&] { static_cast<void>(node->output(5)); }, {"custom: ", "asks for output 5"});

  const Tensor older = square(x), newer = square(x);
  CHECK(older.node()->sequence() > node->sequence());
  CHECK(newer.node()->sequence() > older.node()->sequence());
  CHECK(older.node()->edges()[0].node == newer.node()->edges()[0].node);  // one node stands for the leaf
  CHECK(older.node()->edges()[0].node->sequence() == 0);
}

TEST_CASE_FIXTURE(NoLeak, "nothing is recorded that no gradient is wanted of") {
  const Tensor constant = zeros({2});
  CHECK(square(constant).node() == nullptr);
  const Tensor x = randn64({2});
  {
    const NoGrad no_grad;
    CHECK(square(x).node() == nullptr);
  }
  const Tensors y = apply_op<Custom>(
      {x},
      [](const Tensors& in) {
        return Tensors{in[0] * 2, arange(2)};
      },
      nullptr);
  CHECK(y[0].requires_grad());
  CHECK_FALSE(y[1].requires_grad());  // integers have no gradient
}

TEST_CASE_FIXTURE(NoLeak, "forward records nothing while it runs") {
  const std::int64_t before = Node::live_count();
  const Tensor x = randn64({2});
  const Tensor y = square(x);
  CHECK(Node::live_count() == before + 2);  // the leaf's and this one, none for the product within
}

TEST_CASE_FIXTURE(NoLeak, "a node makes one output only once") {
  const Tensor x = randn64({2});
  const auto node = std::make_shared<Square>();
  const Tensor y = apply_op(node, {x})[0];
  expect_error([&] { apply_op(node, {x}); }, {"square: ", "in a graph already", "new one for each call"});
  sum(y).backward();
  expect_close(x.grad(), 2 * x.detach());
}

TEST_CASE_FIXTURE(NoLeak, "an op that hands its input back still has a place of its own in the graph") {
  const Tensor x = randn64({2});
  const Tensor y = apply_op<Custom>(
      {x}, [](const Tensors& in) { return in; },
      [](const Node&, const Tensors& dy, GradientSink& dx) { dx.add(0, 5 * dy[0]); })[0];
  CHECK_FALSE(y.is(x));
  CHECK(x.is_leaf());
  CHECK(y.storage() == x.storage());
  y.backward(ones({2}, float64));
  expect_close(x.grad(), {5, 5});
}

TEST_CASE_FIXTURE(NoLeak, "a gradient of the wrong kind is an error that names the op and both shapes") {
  expect_error([] { run_backward([](const Node&, const Tensors& dy, GradientSink& dx) { dx.add(0, sum(dy[0])); }); },
               {"custom: ", "input 0 of shape [2, 3] float64", "[] float64"});
  expect_error(
      [] { run_backward([](const Node&, const Tensors& dy, GradientSink& dx) { dx.add(0, to(dy[0], float32)); }); },
      {"custom: ", "input 0 of shape [2, 3] float64", "[2, 3] float32"});
  expect_error([] { run_backward([](const Node&, const Tensors&, GradientSink& dx) { dx.add(0, {}); }); },
               {"custom: ", "undefined"});
}

TEST_CASE_FIXTURE(NoLeak, "gradients that nobody needs are ignored, and several for one input add up") {
  const Tensor x = randn64({2}), c = ones({2}, float64);
  bool needs_constant = true;
  const Tensor y = apply_op<Custom>({x, c, {}}, doubled, [&](const Node&, const Tensors& dy, GradientSink& dx) {
    needs_constant = dx.needs(1) || dx.needs(2);
    dx.add(0, dy[0]);
    dx.add(1, zeros({7}));
    dx.add(2, zeros({7}));
    dx.add(0, dy[0]);
  })[0];
  y.backward(ones({2}, float64));
  CHECK_FALSE(needs_constant);
  expect_close(x.grad(), {2, 2});
}

TEST_CASE_FIXTURE(NoLeak, "accumulator gives memory to add to, fresh the first time") {
  const Tensor x = randn64({2});
  std::vector<bool> fresh;
  const auto backward = [&](const Node&, const Tensors& dy, GradientSink& dx) {
    for (int times = 0; times < 2; ++times) {
      const auto [target, is_fresh] = dx.accumulator(0);
      fresh.push_back(is_fresh);
      CHECK(target.shape() == Shape{2});
      CHECK(target.dtype() == float64);
      if (is_fresh) fill_(target, 0);
      add_(target, dy[0]);
    }
  };
  const Tensor y = apply_op<Custom>({x}, doubled, backward)[0], z = apply_op<Custom>({x}, doubled, backward)[0];
  const Tensor cotangent = Tensor::of({1, 10}, {2}, {.dtype = float64});
  (y + z + x).backward(cotangent);
  expect_close(x.grad(), {5, 50});
  expect_close(cotangent, {1, 10});  // it arrived at x first, and was not written to
  CHECK(fresh == std::vector<bool>{false, false, false, false});
  fresh.clear();
  x.set_grad({});
  apply_op<Custom>({x}, doubled, backward)[0].backward(cotangent);
  expect_close(x.grad(), {2, 20});
  CHECK(fresh == std::vector<bool>{true, false});
}

TEST_CASE_FIXTURE(NoLeak, "accumulator is refused where it cannot work") {
  const Tensor x = randn64({2}), c = zeros({2}, float64);
  const auto backward = [](std::int64_t input) {
    return [input](const Node&, const Tensors&, GradientSink& dx) { dx.accumulator(input); };
  };
  const Tensor unwanted = sum(apply_op<Custom>({x, c}, doubled, backward(1))[0]);
  expect_error([&] { unwanted.backward(); }, {"custom: accumulator()", "need a gradient"});
  const Tensor recorded = sum(apply_op<Custom>({x, c}, doubled, backward(0))[0]);
  expect_error([&] { grad({recorded}, {x}, {}, {.create_graph = true}); }, {"custom: accumulator()", "no graph"});
}

TEST_CASE_FIXTURE(NoLeak, "of several outputs those that nothing was computed from have an undefined cotangent") {
  const Tensor x = randn64({2, 3});
  const auto two = [](const Tensors& in) { return Tensors{in[0] * 2, in[0] * 3}; };
  std::vector<bool> defined;
  const Custom::Backward backward = [&](const Node& node, const Tensors& dy, GradientSink& dx) {
    defined = {dy[0].defined(), dy[1].defined()};
    dx.add(0, 2 * node.cotangent(dy, 0) + 3 * node.cotangent(dy, 1));
  };
  sum(apply_op<Custom>({x}, two, backward)[1]).backward();
  CHECK(defined == std::vector<bool>{false, true});
  expect_close(x.grad(), Doubles(6, 3.0));
  x.set_grad({});
  const Tensors y = apply_op<Custom>({x}, two, backward);
  sum(y[0] * y[1]).backward();
  CHECK(defined == std::vector<bool>{true, true});
  expect_close(x.grad(), 12 * x.detach());
}

TEST_CASE_FIXTURE(NoLeak, "cotangents that arrive in parts are complete before backward is called") {
  const Tensor x = Tensor::of({3}, {}, {.dtype = float64, .requires_grad = true});
  int calls = 0;
  const Tensor y = apply_op<Custom>({x}, doubled, [&](const Node&, const Tensors& dy, GradientSink& dx) {
    ++calls;
    dx.add(0, 2 * dy[0]);
  })[0];
  (y * y + exp(y) * y + y).backward();  // 2 (2 y + e^y (1 + y) + 1) at y = 6
  CHECK(calls == 1);
  CHECK(x.grad().item() == doctest::Approx(2 * (12 + std::exp(6.0) * 7 + 1)).epsilon(1e-12));
}

TEST_CASE_FIXTURE(NoLeak, "saved values are those of the call, and gone once backward has run") {
  const Tensor x = randn64({2});
  const Tensor y = square(x);
  const std::shared_ptr<Node> node = y.node();
  CHECK_FALSE(node->was_released());
  sum(y).backward();
  CHECK(node->was_released());
  expect_error([&] { static_cast<void>(node->input(0)); }, {"square: ", "gone"});
}

TEST_CASE_FIXTURE(NoLeak, "a tensor that backward no longer needs is gone") {
  const std::size_t start = memory::stats().live;
  const Tensor x = randn64({1000});
  const std::size_t with_x = memory::stats().live - start;
  const Tensor y = sum(exp(exp(x)));
  CHECK(memory::stats().live - start >= 3 * with_x);  // two outputs are saved
  y.backward();
  CHECK(memory::stats().live - start < 2 * with_x + 1000);  // x and its gradient
}

TEST_CASE_FIXTURE(NoLeak, "with grad mode on saved values lead into the graph, otherwise they are data") {
  const Tensor x = randn64({2});
  const auto check_node = [&](const Node& node, bool graph) {
    CHECK(node.input(0).requires_grad() == graph);
    CHECK(node.output(0).requires_grad() == graph);
    CHECK(node.input(0).is(x) == graph);
  };
  const Tensor y = apply_op<Custom>(
      {x}, doubled,
      [&](const Node& node, const Tensors& dy, GradientSink& dx) {
        check_node(node, GradMode::enabled());
        dx.add(0, dy[0] * node.output(0));
      },
      Saves{.inputs = {0}, .outputs = {0}})[0];
  grad({sum(y)}, {x}, {}, {.create_graph = true});
  grad({sum(y)}, {x});
}

TEST_CASE_FIXTURE(NoLeak, "a product saves each factor only where the other one's gradient is wanted") {
  struct Product final : Custom {
    Product() : Custom([](const Tensors& in) { return Tensors{in[0] * in[1]}; }, nullptr) {}
    Saves saves() const override { return factors(); }
  };
  const Tensor x = randn64({2}), c = ones({2}, float64);
  const Tensor y = apply_op<Product>({x, c})[0], z = apply_op<Product>({x, x})[0];
  CHECK(y.node()->input(1).storage() == c.storage());
  expect_error([&] { static_cast<void>(y.node()->input(0)); }, "saves() does not name");
  CHECK(z.node()->input(0).storage() == x.storage());
}

TEST_CASE_FIXTURE(NoLeak, "a node can be run again from given inputs, in float64 too") {
  const Tensor x = Tensor::of({0.1, 0.2}, {.requires_grad = true});
  const Tensor y = square(x);
  const Tensor again = y.node()->forward({to(x.detach(), float64)})[0];
  CHECK(again.dtype() == float64);
  const double a = static_cast<double>(0.1F);
  CHECK(again.to_vector()[0] == a * a);
  CHECK_FALSE(again.requires_grad());
}

TEST_CASE_FIXTURE(NoLeak, "backward can be run again from given values, after the saved ones are gone") {
  struct Sink final : GradientSink {
    Tensor gradient;
    bool needs(std::int64_t) const override { return true; }
    void add(std::int64_t, Tensor dx) override { gradient = dx; }
    Accumulator accumulator(std::int64_t) override { return {}; }
  };
  const Tensor x = Tensor::of({1, 2, 3}, {.requires_grad = true});
  const Tensor y = square(x);
  const Tensor dy = Tensor::of({1, 10, 100}, {.dtype = float64});
  sum(y).backward();
  REQUIRE(y.node()->was_released());
  Sink sink;
  const Tensor other = Tensor::of({4, 5, 6}, {.dtype = float64});  // in another dtype, too
  y.node()->backward_from({other}, {other * other}, {dy}, sink);
  CHECK(sink.gradient.to_vector() == Doubles{8, 100, 1200});
  CHECK(!sink.gradient.requires_grad());
  expect_error([&] { (void)y.node()->input(0); }, "the values saved for backward are gone");  // as before
  expect_error([&] { y.node()->backward_from({}, {other}, {dy}, sink); }, {"square", "0 inputs and 1 outputs"});

  // What throws leaves nothing behind.
  expect_error([&] { y.node()->backward_from({Tensor::of({1, 2})}, {other}, {dy}, sink); }, "mul");
  expect_error([&] { (void)y.node()->input(0); }, "the values saved for backward are gone");
}

TEST_CASE("a set of indices holds what was put into it") {
  IndexSet set{0, 5};
  set.insert(63);
  CHECK(set.contains(0));
  CHECK(set.contains(5));
  CHECK(set.contains(63));
  CHECK_FALSE(set.contains(1));
  CHECK_FALSE(set.contains(64));
  CHECK_FALSE(set.empty());
  CHECK(IndexSet{}.empty());
}

TEST_CASE_FIXTURE(NoLeak, "graphs can be built and run on several threads") {
  std::vector<std::thread> threads;
  std::vector<double> results(4);
  for (std::size_t t = 0; t < results.size(); ++t) {
    threads.emplace_back([t, &results] {
      const Tensor x = Tensor::scalar(static_cast<double>(t), {.dtype = float64, .requires_grad = true});
      for (int i = 0; i < 200; ++i) square(square(x)).backward();
      results[t] = x.grad().item();
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(results == Doubles{0, 200 * 4, 200 * 32, 200 * 108});
}

}  // namespace
}  // namespace prenorm
