#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

Tensor mask_of(const Shape& shape) { return gt(randn64(shape, 3).detach(), zeros({}, float64)); }

TEST_CASE("masked_fill: gradients; mask and x broadcast") {
  for (const auto& [shape, mask_shape] : broadcast_pairs()) {
    const Tensor mask = mask_of(mask_shape), x = randn64(shape);
    const auto f = [&](const Tensors& in) { return masked_fill(in[0], mask, 10); };
    CHECK(f({x}).shape() == broadcast_shapes("test", shape, mask_shape));
    const bool all_masked = allclose(f({x}), full({}, 10, float64));
    expect_gradients(f, Tensors{x}, {.allow_vacuous = all_masked});
  }
  const Tensor mask = mask_of({3, 4});
  expect_gradients([&](const Tensors& in) { return masked_fill(in[0], mask, -1e9) * 1e-3; },
                   Tensors{strided(randn64({3, 4}))}, {.step = 1e-3});
  expect_gradients([&](const Tensors& in) { return masked_fill(in[0], mask, 2) * in[0]; }, Tensors{randn64({3, 4})});
}

TEST_CASE("masked_fill: values in all dtypes; what is overwritten has gradient 0") {
  const Tensor mask = Tensor::of({1, 0, 1}, {.dtype = boolean});
  expect_close(masked_fill(Tensor::of({1, 2, NAN}), mask, -INFINITY), {-INFINITY, 2, -INFINITY});
  expect_close(masked_fill(Tensor::of({1, 2, 3}, {.dtype = int64}), mask, -7), {-7, 2, -7});
  expect_close(masked_fill(Tensor::of({0, 0, 1}, {.dtype = boolean}), mask, 1), {1, 0, 1});
  const Tensor x = Tensor::of({1, 2, NAN}, {.dtype = float64, .requires_grad = true});
  const Tensor y = masked_fill(x, mask, 5);
  expect_gradient(y * y, x, {0, 4, 0});
}

TEST_CASE("masked_fill: refusals") {
  const Tensor x = ones({2, 3});
  expect_error([&] { masked_fill(x, x, 0); }, {"masked_fill", "bool", "float32"});
  expect_error([&] { masked_fill(x, ones({4}, boolean), 0); }, {"masked_fill", "[2, 3]", "[4]"});
  expect_error([&] { masked_fill(x, Tensor(), 0); }, {"masked_fill", "undefined"});
  for (double value : {static_cast<double>(INFINITY), 0.5, 1e30}) {
    expect_error([&] { masked_fill(ones({2}, int64), ones({2}, boolean), value); }, {"masked_fill", "int64"});
  }
}

}  // namespace
}  // namespace prenorm
