// What goes wrong in the middle of backward, and what keeps graphs alive: afterwards the engine works as before, and no
// node is left.

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "autograd/ops.h"
#include "support.h"

namespace prenorm {
namespace {

using Doubles = std::vector<double>;

Tensor leaf(std::initializer_list<double> values) {
  return Tensor::of(values, {.dtype = float64, .requires_grad = true});
}

// y = x; its backward throws.
struct Broken final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "broken", .formula = "y = x", .derivative = "", .reference = "", .file = ""};
    return info;
  }
  Tensors forward(const Tensors& in) const override { return {in[0]}; }
  void backward(const Tensors&, GradientSink&) const override { throw std::runtime_error("broken"); }
};

TEST_CASE_FIXTURE(NoLeak, "a backward that throws ends the run; others go on, and grad() too") {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  const Tensor loss = sum(apply_op<Broken>({x * w})[0] * w);
  CHECK_THROWS_WITH(loss.backward({}, {.keep_graph = true}), "broken");
  CHECK(GradMode::enabled());
  CHECK_FALSE(x.grad().defined());
  CHECK_THROWS_WITH(grad({loss}, {x}, {}, {.create_graph = true}), "broken");
  CHECK(GradMode::enabled());
  {
    const NoGrad no_grad;
    CHECK_THROWS_WITH(loss.backward(), "broken");
    CHECK_FALSE(GradMode::enabled());
  }
  x.set_grad({});
  w.set_grad({});
  sum(x * w).backward();
  CHECK(x.grad().to_vector() == Doubles{3, 4});
  CHECK(w.grad().to_vector() == Doubles{1, 2});
}

TEST_CASE_FIXTURE(NoLeak, "a post-accumulate hook that throws ends the run; the gradient that it saw is whole") {
  const Tensor x = leaf({1, 2});
  const auto remove = x.register_post_accumulate_hook([](const Tensor&) { throw std::runtime_error("enough"); });
  CHECK_THROWS_WITH(sum(x * x).backward(), "enough");
  CHECK(GradMode::enabled());
  CHECK(x.grad().to_vector() == Doubles{2, 4});
  remove();
  sum(x * x).backward();
  CHECK(x.grad().to_vector() == Doubles{4, 8});
}

TEST_CASE_FIXTURE(NoLeak, "an op that throws in forward leaves no node and the mode as it was") {
  const Tensor x = leaf({1, 2});
  const std::int64_t nodes = Node::live_count();
  CHECK_THROWS_AS(x + leaf({1, 2, 3}), Error);
  CHECK_THROWS_AS(matmul(x, leaf({1, 2, 3})), Error);
  CHECK_THROWS_AS(embedding(Tensor::of({7}, {.dtype = int64}), reshape(x, {1, 2})), Error);
  CHECK(Node::live_count() == nodes);
  CHECK(GradMode::enabled());
}

TEST_CASE_FIXTURE(NoLeak, "a hook that holds its own tensor keeps it alive until it is removed, not longer") {
  std::weak_ptr<Tensor::Impl> of_leaf, of_middle;
  {
    const Tensor x = leaf({1, 2}), y = exp(x);
    of_leaf = x.impl();
    of_middle = y.impl();
    const auto remove_x = x.register_hook([x](const Tensor& g) { return g * x.detach(); });
    const auto remove_y = y.register_hook([y](const Tensor& g) { return g * 2; });
    sum(y).backward();
    remove_x();
    remove_y();
  }
  CHECK(of_leaf.expired());
  CHECK(of_middle.expired());
}

TEST_CASE_FIXTURE(NoLeak, "a hook may run backward of another graph") {
  const Tensor x = leaf({1, 2}), other = leaf({5});
  const Tensor y = x * x;
  const auto remove = y.register_hook([&](const Tensor& g) {
    const SetGrad on(true);
    sum(other * 3).backward();
    return g;
  });
  sum(y).backward();
  remove();
  CHECK(x.grad().to_vector() == Doubles{2, 4});
  CHECK(other.grad().to_vector() == Doubles{3});
}

TEST_CASE_FIXTURE(NoLeak, "threads that fail in backward at once do not touch each other") {
  std::vector<Doubles> results(2);
  std::atomic<int> thrown = 0;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < results.size(); ++t) {
    threads.emplace_back([&, t] {
      const Tensor w = leaf({1, 2});
      for (int i = 0; i < 100; ++i) {
        try {
          sum(apply_op<Broken>({w * w})[0]).backward();
        } catch (const std::runtime_error&) {
          ++thrown;
        }
        sum(w * w).backward();
      }
      results[t] = w.grad().to_vector();
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(thrown == 200);
  for (const Doubles& result : results) CHECK(result == Doubles{200, 400});
}

}  // namespace
}  // namespace prenorm
