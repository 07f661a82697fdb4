#include "autograd/node.h"
#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("residual_add: gradients, layouts, one tensor as skip and branch") {
  const auto f = [](const Tensors& in) { return residual_add(in[0], in[1]); };
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{2, 3}, Shape{2, 0, 3}}) {
    const Tensor x = randn64(shape, 1), branch = randn64(shape, 2);
    expect_gradients(f, NamedTensors{{"x", x}, {"branch", branch}}, maybe_vacuous(x));
    expect_close(f({x, branch}), x + branch, 0);
  }
  expect_gradients(f, Tensors{strided(randn64({3, 4}, 1)), randn64({3, 4}, 2)});
  expect_gradients([](const Tensors& in) { return residual_add(in[0], in[0] * in[0]); }, Tensors{randn64({2, 3})});
  const Tensor x = randn64({3});
  expect_gradient(residual_add(x, x), x, {2, 2, 2});
}

TEST_CASE("residual_add: an op of its own, skip first") {
  const Tensor x = randn64({2}, 1), branch = randn64({2}, 2);
  const Tensor y = residual_add(x, branch);
  CHECK(y.node()->info().name == "residual_add");
  CHECK(y.node()->edges()[0].node == edge_of(x).node);
  CHECK(y.node()->edges()[1].node == edge_of(branch).node);
}

TEST_CASE("residual_add: a branch of another shape or dtype is refused, broadcastable or not") {
  expect_error([] { residual_add(ones({2, 3}), ones({2, 4})); }, {"residual_add", "[2, 3]", "[2, 4]"});
  expect_error([] { residual_add(ones({2, 3}), ones({3})); }, {"residual_add", "[2, 3]", "[3]"});
  expect_error([] { residual_add(ones({2}), ones({2}, float64)); }, {"residual_add", "float32", "float64"});
}

TEST_CASE("residual_add: gradients of skip and branch do not share memory") {
  const Tensor x = randn64({2}, 1), branch = randn64({2}, 2);
  sum(residual_add(x, branch)).backward();
  fill_(x.grad(), 7);
  expect_close(branch.grad(), {1, 1});
}

}  // namespace
}  // namespace prenorm
