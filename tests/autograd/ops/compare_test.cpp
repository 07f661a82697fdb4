#include <limits>

#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

struct Comparison {
  std::string_view op;
  Tensor (*f)(const Tensor&, const Tensor&);
  bool (*expected)(double, double);
};
const Comparison kComparisons[] = {
    {"eq", eq, [](double a, double b) { return a == b; }}, {"ne", ne, [](double a, double b) { return a != b; }},
    {"lt", lt, [](double a, double b) { return a < b; }},  {"le", le, [](double a, double b) { return a <= b; }},
    {"gt", gt, [](double a, double b) { return a > b; }},  {"ge", ge, [](double a, double b) { return a >= b; }}};

TEST_CASE("comparisons: all pairs of awkward numbers, in all dtypes") {
  for (DType dtype : {float32, float64, int64, boolean}) {
    std::vector<double> values{0, 1};
    if (dtype != boolean) values.insert(values.end(), {-3, 2});
    if (is_float(dtype)) values.insert(values.end(), {-0.0, 0.5, NAN, INFINITY, -INFINITY});
    const std::int64_t n = static_cast<std::int64_t>(values.size());
    const Tensor x = Tensor::of(values, {n}, {.dtype = dtype});
    for (const Comparison& comparison : kComparisons) {
      CAPTURE(comparison.op);
      const Tensor y = comparison.f(unsqueeze(x, 1), x);  // every one with every one
      CHECK(y.dtype() == boolean);
      CHECK(y.shape() == Shape{n, n});
      std::vector<double> table;
      for (double a : values) {
        for (double b : values) table.push_back(comparison.expected(a, b) ? 1 : 0);
      }
      CHECK(y.to_vector() == table);
    }
  }
}

TEST_CASE("comparisons: large integers are not rounded") {
  const Tensor a = Tensor::of(std::vector<std::int64_t>{9007199254740993}, {1}, {.dtype = int64});
  CHECK(eq(a, a - 1).item() == 0);
  CHECK(gt(a, a - 1).item() == 1);
}

TEST_CASE("comparisons: broadcasting, layouts, no place in the graph, refusals") {
  for (const auto& [op, f, expected] : kComparisons) {
    for (const auto& [a, b] : broadcast_pairs()) {
      CHECK(f(zeros(a), zeros(b)).shape() == broadcast_shapes("test", a, b));
    }
    const Tensor x = randn64({3, 4}, 1), y = randn64({3, 4}, 2);
    expect_close(f(strided(x), y), f(x, strided(y)), 0);
    CHECK(!f(x, y).requires_grad());
    expect_error([&, f = f] { f(ones({2, 3}), ones({2, 4})); }, {std::string(op) + ": shapes [2, 3] and [2, 4]"});
    expect_error([&, f = f] { f(ones({2}), ones({3}, int64)); }, {op, "float32 [2]", "int64 [3]"});
    expect_error([&, f = f] { f(ones({2}), Tensor()); }, {op, "undefined"});
  }
}

TEST_CASE("logical_not: of masks, and of numbers by x == 0") {
  expect_close(logical_not(Tensor::of({1, 0}, {.dtype = boolean})), {0, 1});
  expect_close(logical_not(Tensor::of({0, -0.0, 2, NAN})), {1, 1, 0, 0});
  CHECK(logical_not(Tensor::of({0, 3}, {.dtype = int64})).dtype() == boolean);
}

TEST_CASE("mod: the result has the divisor's sign") {
  const Tensor x = Tensor::of({-4, -3, -1, 0, 1, 3, 5}, {.dtype = int64});
  expect_close(mod(x, 3), {2, 0, 2, 0, 1, 0, 2});
  expect_close(mod(x, -3), {-1, 0, -1, 0, -2, 0, -1});
  expect_close(mod(x, 1), std::vector<double>(7, 0));
  const std::int64_t smallest = std::numeric_limits<std::int64_t>::min();
  const Tensor edge = Tensor::of(std::vector<std::int64_t>{smallest}, {1}, {.dtype = int64});
  CHECK(mod(edge, -1).item<std::int64_t>() == 0);
  CHECK(mod(edge, smallest).item<std::int64_t>() == 0);
  expect_error([&] { mod(x, 0); }, {"mod", "0"});
  expect_error([] { mod(ones({2}), 3); }, {"mod", "int64", "float32"});
}

TEST_CASE("allclose: |a - b| <= atol + rtol |b|, everywhere") {
  const Tensor x = Tensor::of({1, -100}, {.dtype = float64});
  CHECK(allclose(x, x));
  CHECK(allclose(x * (1 + 0.9e-5), x));
  CHECK(!allclose(x * (1 + 1.1e-5), x));
  CHECK(!allclose(x, x + 1e-3));
  CHECK(allclose(x, x + 1e-3, 0, 2e-3));
  CHECK(allclose(x, Tensor::scalar(1, {.dtype = float64}), 0, 101));
  CHECK(allclose(zeros({0}), zeros({0})));
  CHECK(allclose(arange(3), arange(3)));
  const Tensor infinite = Tensor::of({INFINITY, -INFINITY});
  CHECK(allclose(infinite, infinite));
  CHECK(!allclose(infinite, -infinite));
  CHECK(!allclose(ones({2}), infinite));
  CHECK(!allclose(infinite, ones({2})));
  CHECK(!allclose(Tensor::of({NAN}), Tensor::of({NAN})));
  expect_error([] { allclose(ones({2}), ones({3})); }, {"allclose", "[2]", "[3]"});
  expect_error([] { allclose(ones({2}), ones({2}, float64)); }, {"allclose", "float32", "float64"});
}

}  // namespace
}  // namespace prenorm
