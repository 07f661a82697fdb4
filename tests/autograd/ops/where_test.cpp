#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

Tensor mask_of(const Shape& shape, std::uint64_t seed = 0) {
  return gt(randn64(shape, seed).detach(), zeros({}, float64));
}

TEST_CASE("where: gradients, and all three broadcast") {
  struct Case {
    Shape condition, a, b;
  };
  const std::vector<Case> cases{{Shape{}, {}, {}},
                                {{3}, {}, {}},
                                {{}, {3}, {2, 1}},
                                {{2, 3}, {2, 3}, {2, 3}},
                                {{2, 1}, {1, 3}, {2, 3}},
                                {{2, 2, 1}, {3}, {}},
                                {{1, 3}, {2, 1, 1}, {4, 1}},
                                {{0, 3}, {3}, {1, 1}},
                                {{2, 3, 2}, {2, 1, 2}, {3, 1}}};
  for (const auto& [c, a, b] : cases) {
    const Tensor condition = mask_of(c, 3);
    const auto f = [&](const Tensors& in) { return where(condition, in[0], in[1]); };
    const Tensor x = randn64(a, 1), y = randn64(b, 2);
    expect_gradients(f, NamedTensors{{"a", x}, {"b", y}}, {.allow_vacuous = f({x, y}).numel() == 0});
  }
  const Tensor condition = mask_of({3, 4});
  const Tensor x = randn64({3, 4}, 1), y = randn64({3, 4}, 2);
  const auto f = [&](const Tensors& in) { return where(condition, in[0], in[1]); };
  expect_gradients(f, Tensors{strided(x), y});
  expect_gradients(f, Tensors{x, y.detach()});
  expect_gradients([&](const Tensors& in) { return where(condition, in[0], in[0] * in[0]); }, Tensors{x});
  expect_close(where(transpose(mask_of({4, 3}), 0, 1), strided(x), strided(y)),
               where(contiguous(transpose(mask_of({4, 3}), 0, 1)), x, y), 0);
}

TEST_CASE("where: what was not taken does not matter, NaN neither") {
  const Tensor a = Tensor::of({1, NAN}, {.dtype = float64, .requires_grad = true});
  const Tensor b = Tensor::of({INFINITY, 4}, {.dtype = float64, .requires_grad = true});
  const Tensor condition = Tensor::of({1, 0}, {.dtype = boolean});
  const Tensor y = where(condition, a, b);
  expect_close(y, {1, 4});
  expect_gradient(y * y, a, {2, 0});
  expect_gradient(y * y, b, {0, 8});
}

TEST_CASE("where: long rows, every way to repeat an operand, all dtypes") {
  const Tensor condition = mask_of({3, 1000});
  const std::vector<bool> chosen = condition.to_vector<bool>();
  for (DType dtype : {float32, float64, int64, boolean}) {
    const Tensor a = to(uniform64({3, 1000}, 0, 9, 1).detach(), dtype), b = to(uniform64({1000}, 0, 9, 2), dtype);
    for (const auto& [p, q] : std::vector<std::pair<Tensor, Tensor>>{
             {a, b}, {b, a}, {a, a}, {full({}, 1, dtype), a}, {a, full({}, 1, dtype)}, {b, full({3, 1}, 1, dtype)}}) {
      const Tensor y = where(condition, p, q);
      CHECK(y.dtype() == dtype);
      const auto from_p = expand(p, {3, 1000}).to_vector(), from_q = expand(q, {3, 1000}).to_vector();
      std::vector<double> expected;
      for (std::size_t i = 0; i < chosen.size(); ++i) expected.push_back(chosen[i] ? from_p[i] : from_q[i]);
      CHECK(y.to_vector() == expected);
    }
  }
}

TEST_CASE("where: division by a length that may be 0") {
  const auto direction = [](const Tensor& x) {
    const Tensor n = norm(x);
    return x / where(gt(n, zeros({}, float64)), n, ones({}, float64));
  };
  expect_gradients([&](const Tensors& in) { return direction(in[0]); }, Tensors{randn64({3})});
  const Tensor zero = zeros({3}, float64).requires_grad_();
  expect_close(direction(zero), {0, 0, 0});
  expect_gradient(direction(zero), zero, {1, 1, 1});
}

TEST_CASE("where: refusals") {
  const Tensor a = ones({2, 3}), condition = ones({2, 3}, boolean);
  expect_error([&] { where(a, a, a); }, {"where", "bool", "float32"});
  expect_error([&] { where(condition, a, ones({2, 3}, float64)); }, {"where", "float32", "float64"});
  expect_error([&] { where(condition, a, ones({4})); }, {"where", "[2, 3]", "[4]"});
  expect_error([&] { where(ones({4}, boolean), a, a); }, {"where", "[2, 3]", "[4]"});
}

}  // namespace
}  // namespace prenorm
