#include <atomic>
#include <cmath>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "autograd/observer.h"
#include "autograd/ops.h"
#include "support.h"

namespace prenorm {
namespace {

using Doubles = std::vector<double>;

Tensor leaf(std::initializer_list<double> values) {
  return Tensor::of(values, {.dtype = float64, .requires_grad = true});
}
Tensor leaf(double value) { return Tensor::scalar(value, {.dtype = float64, .requires_grad = true}); }
Tensor constant(std::initializer_list<double> values) { return Tensor::of(values, {.dtype = float64}); }

bool share_memory(const Tensor& a, const Tensor& b) { return a.storage() == b.storage(); }

// --- backward ----------------------------------------------------------------------------------------------------

TEST_CASE_FIXTURE(NoLeak, "a value used several times collects the gradient of all its uses") {
  const Tensor x = leaf(3);
  const Tensor y = x * x, z = y + y * x;
  z.backward();
  CHECK(x.grad().item() == 2 * 3 + 3 * 3 * 3);
  CHECK_FALSE(x.grad().requires_grad());
}

TEST_CASE_FIXTURE(NoLeak, "gradients add up on leaves until they are cleared") {
  const Tensor x = leaf({1, 2});
  CHECK_FALSE(x.grad().defined());
  sum(x * x).backward();
  CHECK(x.grad().to_vector() == Doubles{2, 4});
  sum(3 * x).backward();
  CHECK(x.grad().to_vector() == Doubles{5, 7});
  x.set_grad({});
  CHECK_FALSE(x.grad().defined());
  sum(x).backward();
  CHECK(x.grad().to_vector() == Doubles{1, 1});
}

TEST_CASE_FIXTURE(NoLeak, "a leaf is its own gradient's end") {
  const Tensor x = leaf(3);
  x.backward();
  x.backward(Tensor::scalar(5, {.dtype = float64}));
  CHECK(x.grad().item() == 6);
}

TEST_CASE_FIXTURE(NoLeak, "backward takes a cotangent of the tensor's shape and dtype") {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = x * x;
  y.backward(constant({1, 0, -1}), {.keep_graph = true});
  CHECK(x.grad().to_vector() == Doubles{2, 0, -6});
  expect_error([&] { y.backward(constant({1, 0})); }, {"cotangent is [2] float64", "the tensor [3] float64"});
  expect_error([&] { y.backward(ones({3})); }, {"cotangent is [3] float32", "the tensor [3] float64"});
  expect_error([&] { y.backward(); }, {"shape [3]", "one element", "sum() or mean()", "cotangent of that shape"});
  CHECK(x.grad().to_vector() == Doubles{2, 0, -6});
  reshape(sum(y), {1, 1}).backward();  // one element, whatever the shape
  CHECK(x.grad().to_vector() == Doubles{4, 4, 0});
}

TEST_CASE_FIXTURE(NoLeak, "backward needs a tensor that was computed from a leaf that requires grad") {
  const Tensor x = leaf(1), c = zeros({});
  expect_error([&] { (c + 1).backward(); }, {"shape []", "not computed from anything that requires grad"});
  Tensor y;
  {
    const NoGrad no_grad;
    y = x * x;
  }
  expect_error([&] { y.backward(); }, "under NoGrad");
  expect_error([] { Tensor().backward(); }, "undefined");
}

TEST_CASE_FIXTURE(NoLeak, "a second backward through a freed graph names the op and the remedy") {
  const Tensor x = leaf(0.5);
  const Tensor y = exp(x), z = sin(y);
  z.backward();
  expect_error([&] { z.backward(); }, {"sin: ", "run through this node before", "keep_graph = true"});
  expect_error([&] { (y * y).backward(); }, {"exp: ", "keep_graph = true"});
  CHECK(x.grad().item() == std::cos(std::exp(0.5)) * std::exp(0.5));  // the refused ones added nothing
}

TEST_CASE_FIXTURE(NoLeak, "keep_graph allows another backward, which adds the same again") {
  const Tensor x = leaf({0.3, -0.7});
  const Tensor y = sum(exp(x) * sin(x));
  y.backward({}, {.keep_graph = true});
  const Tensor once = x.grad();
  y.backward({}, {.keep_graph = true});
  CHECK(x.grad().to_vector() == (once + once).to_vector());
  y.backward();
  expect_error([&] { y.backward(); }, "keep_graph");
}

TEST_CASE_FIXTURE(NoLeak, "a frozen leaf gets no gradient") {
  Tensor x = leaf(2);
  const Tensor w = leaf(3);
  x.requires_grad_(false);
  (x * w).backward();
  CHECK_FALSE(x.grad().defined());
  CHECK(w.grad().item() == 2);
  expect_error([&] { Tensor(w * w).requires_grad_(false); }, {"computed by mul", "no leaf", "detach()"});
}

// --- writes to saved values --------------------------------------------------------------------------------------

TEST_CASE_FIXTURE(NoLeak, "a write to a saved output is found at backward") {
  const Tensor x = leaf({0, 1});
  const Tensor y = exp(x);
  const std::uint64_t version = y.version();
  {
    const NoGrad no_grad;
    add_(y, ones({2}, float64));
  }
  expect_error([&] { sum(y).backward(); }, {"exp: output 0 of shape [2]", "at version " + std::to_string(version),
                                            "written to since, to version " + std::to_string(version + 1), "clone()"});
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE_FIXTURE(NoLeak, "a write to a saved input is found through a view, through detach and through the data") {
  const std::vector<std::function<void(const Tensor&)>> writes = {
      [](const Tensor& x) { fill_(x, 1); },
      [](const Tensor& x) { fill_(slice(x, 0, 0, 1), 1); },
      [](const Tensor& x) { add_(x.detach(), ones({2}, float64)); },
      [](const Tensor& x) {
        mul_(reshape(x, {2, 1}).detach(), 2);
      },
      [](const Tensor& x) { copy_(x, zeros({2}, float64)); },
      [](const Tensor& x) { x.mutable_data<double>()[1] = 5; }};
  for (const auto& write : writes) {
    const Tensor x = leaf({3, 4});
    const Tensor y = sum(x * x);
    {
      const NoGrad no_grad;
      write(x);
    }
    expect_error([&] { y.backward(); }, {"mul: input ", "of shape [2]", "at version 1", "to version 2"});
  }
}

TEST_CASE_FIXTURE(NoLeak, "a write to what no node saved is nobody's business") {
  const Tensor x = leaf({3, 4}), y = x + x;
  const NoGrad no_grad;
  fill_(x, 0);
  fill_(y, 0);
  sum(x);
  y.backward(ones({2}, float64));
  CHECK(x.grad().to_vector() == Doubles{2, 2});
}

TEST_CASE_FIXTURE(NoLeak, "in-place functions refuse a tensor that requires grad") {
  const Tensor x = leaf({3, 4}), c = ones({2}, float64);
  expect_error([&] { add_(x, c); }, {"add_", "[2]", "requires grad", "NoGrad"});
  expect_error([&] { fill_(x * 2, 0); }, {"fill_", "requires grad"});
  expect_error([&] { copy_(c, x); }, {"copy_", "require grad", "detach()"});
  CHECK(x.to_vector() == Doubles{3, 4});
  CHECK(c.to_vector() == Doubles{1, 1});
}

// --- grad() ------------------------------------------------------------------------------------------------------

TEST_CASE_FIXTURE(NoLeak, "grad gives gradients of leaves and of what lies between, and touches no grad()") {
  const Tensor x = leaf(2), w = leaf(5);
  const Tensor y = x * w, z = y * y + x;
  const Tensors g = grad({z}, {x, y, w, z});
  CHECK(g[0].item() == 2 * 10 * 5 + 1);
  CHECK(g[1].item() == 20);
  CHECK(g[2].item() == 2 * 10 * 2);
  CHECK(g[3].item() == 1);
  CHECK_FALSE(x.grad().defined());
  CHECK_FALSE(w.grad().defined());
  CHECK_FALSE(y.grad().defined());
}

TEST_CASE_FIXTURE(NoLeak, "grad adds up over several outputs, each with its cotangent") {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * x, z = 3 * x;
  CHECK(grad({y, z}, {x}, {constant({1, 10}), constant({2, 20})})[0].to_vector() == Doubles{2 + 6, 40 + 60});
  const Tensor s = sum(x);
  CHECK(grad({s, s}, {x})[0].to_vector() == Doubles{2, 2});
  CHECK(grad({sum(x), sum(x * x)}, {x}, {{}, Tensor::scalar(3, {.dtype = float64})})[0].to_vector() == Doubles{7, 13});
  expect_error([&] { grad({sum(x), sum(x)}, {x}, {zeros({}, float64)}); }, "2 outputs and 1 cotangents");
  expect_error([&] { grad({sum(x), Tensor()}, {x}); }, "undefined");
}

TEST_CASE_FIXTURE(NoLeak, "an input that no path reaches is an error, or undefined on request") {
  const Tensor x = leaf(2), other = leaf({1, 2, 3});
  expect_error([&] { grad({x * x}, {x, other}); }, {"input 1 of shape [3]", "took no part", "allow_unused = true"});
  const Tensors g = grad({x * x}, {other, x}, {}, {.allow_unused = true});
  CHECK_FALSE(g[0].defined());
  CHECK(g[1].item() == 4);
  expect_error([&] { grad({x * x}, {zeros({})}); }, "does not require grad");
  expect_error([&] { grad({x * x}, {Tensor()}); }, "does not require grad");
}

TEST_CASE_FIXTURE(NoLeak, "grad asks for nothing below its inputs, and leaves what is there alone") {
  const Tensor x = leaf({1, 2, 3});
  // The backwards of slice and embedding write into their input's gradient, which nobody wants here.
  const Tensor part = slice(x, 0, 0, 2);
  expect_close(grad({sum(part * part)}, {part})[0], {2, 4});
  const Tensor rows = embedding(arange(2), reshape(x, {3, 1}));
  expect_close(grad({sum(rows * rows)}, {rows})[0], {2, 4});

  const Tensor y = exp(x), z = sum(y * y);  // in two steps: from z to y, then from y on
  const Tensor dy = grad({z}, {y})[0];
  y.backward(dy);
  expect_close(x.grad(), 2 * y.detach() * y.detach());
  expect_close(grad({sum(y * y)}, {y})[0], 2 * y.detach());  // y's own backward has run; it is not needed
}

TEST_CASE_FIXTURE(NoLeak, "create_graph gives derivatives of any order") {
  const Tensor x = leaf(0.7);
  Tensor derivative = sin(x) * exp(x);  // its n-th derivative: 2^(n/2) e^x sin(x + n pi / 4)
  for (int n = 1; n <= 5; ++n) {
    derivative = grad({derivative}, {x}, {}, {.create_graph = true})[0];
    const double expected = std::pow(2, n / 2.0) * std::exp(0.7) * std::sin(0.7 + n * std::acos(-1.0) / 4);
    CHECK(derivative.item() == doctest::Approx(expected).epsilon(1e-12));
  }
}

TEST_CASE_FIXTURE(NoLeak, "gradients of gradients flow to the cotangent and into backward") {
  const Tensor x = leaf({1, 2}), u = leaf({3, 5});
  const Tensor y = x * x * x;
  const Tensor g = grad({y}, {x}, {u}, {.create_graph = true})[0];  // 3 x^2 u
  sum(g * g).backward();                                            // sum 9 x^4 u^2
  expect_close(x.grad(), {36 * 9, 36 * 8 * 25});
  expect_close(u.grad(), {18 * 3, 18 * 16 * 5});
  CHECK_FALSE(x.grad().requires_grad());  // backward stores data
}

TEST_CASE_FIXTURE(NoLeak, "a gradient penalty trains: second derivatives through matmul, tanh and a norm") {
  const Tensor x = randn64({4, 3}, 1), w = randn64({3, 3}, 2), v = randn64({3, 1}, 3);
  expect_gradients(
      [](const Tensors& in) {
        const SetGrad on(true);  // the checker takes differences under NoGrad, and holds inputs fixed
        const Tensor x = in[0].requires_grad() ? in[0] : in[0].detach().requires_grad_();
        const Tensor y = sum(matmul(tanh(matmul(x, in[1])), in[2]));
        const Tensor g = grad({y}, {x}, {}, {.create_graph = true})[0];
        return norm(g, {-1});
      },
      Tensors{x, w, v}, {.order = 1});
}

TEST_CASE_FIXTURE(NoLeak, "a graph of gradients goes with its tensors") {
  const Tensor x = leaf({1, 2});
  const std::int64_t start = Node::live_count();
  {
    const Tensor y = sum(exp(x * x));
    const Tensor g = grad({y}, {x}, {}, {.create_graph = true})[0];
    const Tensor h = grad({sum(g)}, {x}, {}, {.create_graph = true})[0];
    CHECK(Node::live_count() > start);
    h.backward(ones({2}, float64));
  }
  CHECK(Node::live_count() == start);  // x.grad holds no graph
  expect_error([&] { x.set_grad(x * 2); }, "set_grad");
  expect_error([&] { x.set_grad(ones({3}, float64)); }, {"gradient of [3] float64", "tensor of [2] float64"});
  expect_error([&] { x.set_grad(ones({2})); }, {"float32", "float64"});
}

// --- hooks -------------------------------------------------------------------------------------------------------

TEST_CASE_FIXTURE(NoLeak, "a hook sees the total gradient once, of a leaf and of what lies between") {
  const Tensor x = leaf(3);
  Doubles at_x, at_y;
  x.register_hook([&](const Tensor& g) { return at_x.push_back(g.item()), Tensor(); });
  const Tensor y = x * x;
  y.register_hook([&](const Tensor& g) { return at_y.push_back(g.item()), Tensor(); });
  (y + y * x + 2 * y).backward();
  CHECK(at_y == Doubles{1 + 3 + 2});
  CHECK(at_x == Doubles{6 * 6 + 9});
  CHECK(x.grad().item() == 45);
}

TEST_CASE_FIXTURE(NoLeak, "a hook may replace the gradient; the next one and everything below see that") {
  const Tensor x = leaf({1, 2});
  const Tensor y = 3 * x;
  y.register_hook([](const Tensor& g) { return g * 10; });
  y.register_hook([](const Tensor& g) { return g + 1; });
  x.register_hook([](const Tensor& g) { return -g; });
  y.retain_grad();
  sum(y).backward({}, {.keep_graph = true});
  CHECK(y.grad().to_vector() == Doubles{11, 11});
  CHECK(x.grad().to_vector() == Doubles{-33, -33});
  CHECK(grad({sum(y * y)}, {x})[0].to_vector() == Doubles{-3 * (6 * 10 + 1), -3 * (12 * 10 + 1)});
}

TEST_CASE_FIXTURE(NoLeak, "a removed hook is not called, and others keep their places") {
  const Tensor x = leaf(1);
  std::string called;
  const auto note = [&called](char name) {
    return [&called, name](const Tensor&) { return called += name, Tensor(); };
  };
  const auto remove_a = x.register_hook(note('a'));
  const auto remove_b = x.register_hook(note('b'));
  x.register_hook(note('c'));
  (x * x).backward();
  remove_b();
  remove_b();
  (x * x).backward();
  remove_a();
  (x * x).backward();
  CHECK(called == "abcacc");

  std::function<void()> remove_late;
  {
    const Tensor y = x * x;
    remove_late = y.register_hook(note('y'));
    remove_late();
    y.backward();
    remove_late = leaf(1).register_hook(note('z'));
  }
  remove_late();  // the tensor is gone
  CHECK(called == "abcaccc");
}

TEST_CASE_FIXTURE(NoLeak, "a hook may remove itself and register another") {
  const Tensor x = leaf(1);
  int calls = 0, later = 0;
  std::function<void()> remove;
  remove = x.register_hook([&](const Tensor&) {
    ++calls;
    remove();
    x.register_hook([&](const Tensor&) { return ++later, Tensor(); });
    return Tensor();
  });
  (x * x).backward();
  (x * x).backward();
  CHECK(calls == 1);
  CHECK(later == 2);
}

TEST_CASE_FIXTURE(NoLeak, "a hook's gradient must be of the tensor's kind") {
  const Tensor x = leaf({1, 2});
  const auto remove = x.register_hook([](const Tensor& g) { return sum(g); });
  expect_error([&] { sum(x * x).backward(); }, {"gradient hook returned [] float64", "gradient of [2] float64"});
  remove();
  const Tensor y = x * x;
  y.register_hook([](const Tensor& g) { return to(g, float32); });
  expect_error([&] { sum(y).backward(); }, {"mul: ", "returned [2] float32"});
  expect_error([] { zeros({2}).register_hook([](const Tensor& g) { return g; }); }, "does not require grad");
}

TEST_CASE_FIXTURE(NoLeak, "a hook that throws ends the run and leaves mode and graph as they should be") {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  const Tensor y = x * w, z = sum(exp(y));
  const auto remove = y.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("enough"); });
  CHECK_THROWS_WITH(z.backward({}, {.keep_graph = true}), "enough");
  CHECK(GradMode::enabled());
  CHECK_FALSE(x.grad().defined());
  remove();
  z.backward({}, {.keep_graph = true});  // the graph was kept, so it runs again
  expect_close(x.grad(), w.detach() * exp(y.detach()));

  y.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("enough"); });
  CHECK_THROWS_WITH(z.backward(), "enough");
  expect_error([&] { z.backward(); }, "keep_graph = true");  // newer nodes are freed, and say so
}

TEST_CASE_FIXTURE(NoLeak, "a post-accumulate hook is called once a run, when the gradient is final") {
  const Tensor w = leaf(2), x = leaf(3);
  Doubles seen;
  const auto remove = w.register_post_accumulate_hook([&](const Tensor& leaf) {
    CHECK(leaf.is(w));
    CHECK_FALSE(GradMode::enabled());
    seen.push_back(leaf.grad().item());
  });
  (w * x + w * w + exp(w - 2)).backward();  // three uses, one call
  CHECK(seen == Doubles{3 + 4 + 1});
  (w * x).backward();
  CHECK(seen == Doubles{8, 11});
  (x * x).backward();  // w has no part in it
  grad({w * x}, {w});  // and grad stores nothing
  CHECK(seen.size() == 2);
  remove();
  (w * x).backward();
  CHECK(seen.size() == 2);
  expect_error([&] { (w * x).register_post_accumulate_hook([](const Tensor&) {}); }, "expected a leaf");
}

TEST_CASE_FIXTURE(NoLeak, "a post-accumulate hook may step and clear the gradient") {
  Tensor w = leaf(1);
  w.register_post_accumulate_hook([](const Tensor& leaf) {
    add_(leaf, leaf.grad(), -0.25);
    leaf.set_grad({});
  });
  for (int i = 0; i < 3; ++i) (w * w).backward();
  CHECK(w.item() == 0.125);
  CHECK_FALSE(w.grad().defined());
}

TEST_CASE_FIXTURE(NoLeak, "retain_grad keeps the gradient of what lies between") {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * x;
  y.retain_grad();
  y.retain_grad();  // once is enough
  const Tensor z = sum(y * 3);
  z.backward({}, {.keep_graph = true});
  CHECK(y.grad().to_vector() == Doubles{3, 3});
  z.backward();
  CHECK(y.grad().to_vector() == Doubles{6, 6});
  CHECK_FALSE(z.grad().defined());
  x.retain_grad();  // a leaf keeps its gradient anyway
  expect_error([] { zeros({2}).retain_grad(); }, "does not require grad");
}

// --- grad mode ---------------------------------------------------------------------------------------------------

TEST_CASE_FIXTURE(NoLeak, "NoGrad and SetGrad nest, and end with their block also by an exception") {
  const Tensor x = leaf(1);
  {
    const NoGrad no_grad;
    CHECK_FALSE((x * x).requires_grad());
    {
      const SetGrad on(true);
      CHECK((x * x).requires_grad());
      const NoGrad inner;
      CHECK_FALSE(GradMode::enabled());
    }
    CHECK_FALSE(GradMode::enabled());
  }
  CHECK(GradMode::enabled());
  try {
    const NoGrad no_grad;
    add(zeros({2}), zeros({3}));
  } catch (const Error&) {
    CHECK(GradMode::enabled());
  }
  CHECK((x * x).requires_grad());
}

TEST_CASE_FIXTURE(NoLeak, "each thread has a grad mode of its own") {
  const NoGrad no_grad;
  bool enabled_there = false, still_off = true;
  std::thread([&] {
    enabled_there = GradMode::enabled();
    const SetGrad on(true);
  }).join();
  still_off = !GradMode::enabled();
  CHECK(enabled_there);
  CHECK(still_off);
}

TEST_CASE_FIXTURE(NoLeak, "backward runs under NoGrad too, and create_graph records there") {
  const Tensor x = leaf(3);
  const Tensor y = x * x * x;
  const NoGrad no_grad;
  const Tensor g = grad({y}, {x}, {}, {.create_graph = true})[0];
  CHECK(g.requires_grad());
  CHECK(grad({g}, {x}, {}, {.keep_graph = true})[0].item() == 18);
  y.backward();
  CHECK(x.grad().item() == 27);
  SetGrad on(true);  // for the fixture
}

// --- aliasing ----------------------------------------------------------------------------------------------------

TEST_CASE_FIXTURE(NoLeak, "gradients share no memory: not with each other, not with the cotangent, not with data") {
  const Tensor a = leaf({1, 2}), b = leaf({3, 4}), dy = constant({5, 6});
  const Tensor y = a + b;
  y.retain_grad();
  y.backward(dy);
  const Tensors stored = {a.grad(), b.grad(), y.grad(), dy, a, y};
  for (const Tensor& one : stored) {
    for (const Tensor& other : stored) CHECK((one.is(other) || !share_memory(one, other)));
  }
  fill_(a.grad(), 0);
  CHECK(b.grad().to_vector() == Doubles{5, 6});
  CHECK(y.grad().to_vector() == Doubles{5, 6});
  CHECK(dy.to_vector() == Doubles{5, 6});

  const Tensors results = grad({a + b}, {a, b}, {dy});
  CHECK_FALSE(share_memory(results[0], results[1]));
  CHECK_FALSE(share_memory(results[0], dy));
  const Tensors twice = grad({a + b}, {a, a}, {dy});
  CHECK_FALSE(share_memory(twice[0], twice[1]));
}

TEST_CASE_FIXTURE(NoLeak, "gradients that are views become tensors of their own") {
  const Tensor x = randn64({2, 3}), v = randn64({3, 2});
  sum(x).backward();                                              // expand of one number
  (reshape(v, {6}) * 2).backward(ones({6}, float64));             // reshape
  transpose(v, 0, 1).backward(uniform64({2, 3}, 0, 1).detach());  // permute, added to it
  CHECK(x.grad().is_contiguous());
  CHECK(v.grad().is_contiguous());
  mul_(x.grad(), 2);
  CHECK(x.grad().to_vector() == Doubles(6, 2.0));
  CHECK(grad({sum(x)}, {x})[0].is_contiguous());
}

TEST_CASE_FIXTURE(NoLeak, "a handle on a gradient keeps its values when more is added") {
  const Tensor x = leaf({1, 2});
  sum(x * x).backward();
  const Tensor held = x.grad();
  sum(x * x).backward();
  CHECK(held.to_vector() == Doubles{2, 4});
  CHECK(x.grad().to_vector() == Doubles{4, 8});

  Tensor seen;  // by a hook, while others still add to what lies below
  const Tensor y = 2 * x;
  y.register_hook([&](const Tensor& g) { return seen = g, Tensor(); });
  (y + reshape(x, {2}) + x).backward(ones({2}, float64));
  CHECK(seen.to_vector() == Doubles{1, 1});
  CHECK(x.grad().to_vector() == Doubles{8, 12});
}

// --- order -------------------------------------------------------------------------------------------------------

struct Order final : Observer {
  std::vector<std::string> names;
  void backward_called(const std::shared_ptr<const Node>& node, const Tensors&, const Tensors&) override {
    names.emplace_back(node->info().name);
  }
};

TEST_CASE_FIXTURE(NoLeak, "of what is ready leaves come first, then the newest") {
  const Tensor a = leaf(1), b = leaf(2), c = leaf(3);
  const Tensor p = exp(a), q = sin(b), r = cos(p * q), s = r / c;
  const Order order;
  s.backward();
  CHECK(order.names == std::vector<std::string>{"div", "leaf", "cos", "mul", "sin", "leaf", "exp", "leaf"});
}

TEST_CASE_FIXTURE(NoLeak, "a node runs once, after all that use it, however many paths lead to it") {
  const Tensor x = leaf(1);
  Tensor y = x * 1;
  for (int i = 0; i < 60; ++i) y = y + y;  // 2^60 paths
  const Order order;
  y.backward();
  CHECK(x.grad().item() == std::pow(2, 60));
  CHECK(order.names.size() == 60 + 2);

  const Tensor early = exp(x), late = sin(early);  // exp's newest use is not its only one
  Order second;
  (late * early + early).backward();
  CHECK(second.names == std::vector<std::string>{"add", "mul", "sin", "exp", "leaf"});
}

// --- threads -----------------------------------------------------------------------------------------------------

TEST_CASE_FIXTURE(NoLeak, "threads may compute with shared leaves at once, and take gradients with grad()") {
  const Tensor w = leaf({1, 2});
  std::vector<Doubles> results(2);
  std::atomic<std::size_t> started = 0;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < results.size(); ++t) {
    threads.emplace_back([&, t] {
      const Tensor x = full({2}, static_cast<double>(t), float64);
      ++started;
      while (started < results.size()) {
      }
      for (int i = 0; i < 5000; ++i) edge_of(w);  // the node that stands for a leaf is made by whoever comes first
      for (int i = 0; i < 100; ++i) results[t] = grad({sum(w * w * x)}, {w})[0].to_vector();
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(results[0] == Doubles{0, 0});
  CHECK(results[1] == Doubles{2, 4});
}

TEST_CASE_FIXTURE(NoLeak,
                  "threads may run backward at once through graphs that share no leaf, under modes of their own") {
  std::vector<Doubles> results(3);
  std::vector<std::thread> threads;
  const Tensor data = full({2}, 3, float64);  // shared, read only
  for (std::size_t t = 0; t < results.size(); ++t) {
    threads.emplace_back([&, t] {
      const Tensor w = leaf({1, 2});
      for (int i = 0; i < 200; ++i) {
        const SetGrad mode(t != 2 || i % 2 == 0);
        const Tensor y = sum(w * w * data);
        if (GradMode::enabled()) y.backward();
      }
      results[t] = w.grad().to_vector();
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(results[0] == Doubles{1200, 2400});
  CHECK(results[1] == Doubles{1200, 2400});
  CHECK(results[2] == Doubles{600, 1200});
}

}  // namespace
}  // namespace prenorm
