// What holds for every pointwise op, unary or binary.
#pragma once

#include <functional>

#include "autograd/ops.h"
#include "support.h"

namespace prenorm {

// A leaf with the values of x, in memory that is not row-major: transposed, or every second element.
inline Tensor strided(const Tensor& x) {
  if (x.dims() == 0) return x;
  const Tensor values = x.detach();
  const Tensor y = x.dims() == 1 ? select(clone(expand(unsqueeze(values, 1), {x.numel(), 2})), 1, 0)
                                 : transpose(clone(transpose(values, 0, -1)), 0, -1);
  return y.detach().requires_grad_(x.requires_grad());
}

inline GradcheckOptions maybe_vacuous(const Tensor& x) { return {.allow_vacuous = x.numel() == 0}; }

// f applied to elements in (low, high), where it has two derivatives: gradients for all kinds of shapes and layouts,
// float32 against float64, refusal of integers.
inline void expect_unary(std::string_view op, const std::function<Tensor(const Tensor&)>& f, double low, double high) {
  const auto call = [&](const Tensors& in) { return f(in[0]); };
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{5}, Shape{2, 3}, Shape{2, 0, 3}, Shape{2, 1, 2, 2}}) {
    const Tensor x = uniform64(shape, low, high);
    expect_gradients(call, Tensors{x}, maybe_vacuous(x));
    CHECK(f(x).shape() == shape);
  }
  const Tensor x = uniform64({3, 4}, low, high, 1);
  expect_gradients(call, Tensors{strided(x)});
  expect_gradients(call, Tensors{strided(uniform64({3}, low, high))});
  expect_gradients([&](const Tensors& in) { return f(expand(in[0], {2, 3, 4})); }, Tensors{x});
  expect_gradients([&](const Tensors& in) { return f(in[0]) * in[0]; }, Tensors{x});
  expect_close(f(strided(x)), f(x), 0);
  const Tensor many = uniform64({3, 1000}, low, high, 2);
  expect_close(f(to(many, float32)), f(to(to(many, float32), float64)), 1e-6);
  CHECK(f(to(x, float32)).dtype() == float32);
  expect_error([&] { f(ones({2}, boolean)); }, {op, "bool"});
}

// Pairs that meet in a binary op: scalars, stretching on either side or on both, new dimensions, empty ones.
inline std::vector<std::pair<Shape, Shape>> broadcast_pairs() {
  return {{{}, {}},
          {{3}, {}},
          {{}, {2, 2}},
          {{3}, {3}},
          {{1}, {3}},
          {{2, 1}, {1, 3}},
          {{3, 1, 2}, {2, 3, 2, 2}},
          {{2, 3, 2}, {3, 1}},
          {{0}, {1}},
          {{}, {0, 2}},
          {{2, 1, 0}, {3, 1}},
          {{2, 2}, {1, 1, 1, 2}},
          {{1, 1}, {}},
          {{1, 2}, {2, 1}},
          {{2, 1, 3}, {2, 3}}};
}

struct Interval {
  double low, high;
};

inline void expect_binary(std::string_view op, const std::function<Tensor(const Tensor&, const Tensor&)>& f,
                          Interval left, Interval right) {
  const auto call = [&](const Tensors& in) { return f(in[0], in[1]); };
  for (const auto& [shape_a, shape_b] : broadcast_pairs()) {
    const Tensor a = uniform64(shape_a, left.low, left.high, 1), b = uniform64(shape_b, right.low, right.high, 2);
    const Tensor y = f(a, b);
    CHECK(y.shape() == broadcast_shapes("test", shape_a, shape_b));
    expect_gradients(call, NamedTensors{{"a", a}, {"b", b}}, maybe_vacuous(y));
  }
  const Tensor a = uniform64({3, 4}, left.low, left.high, 3), b = uniform64({3, 4}, right.low, right.high, 4);
  expect_gradients(call, NamedTensors{{"a", strided(a)}, {"b", b}});
  expect_gradients(call, NamedTensors{{"a", a}, {"b", strided(b)}});
  expect_close(f(strided(a), strided(b)), f(a, b), 0);
  // One operand twice; one that needs no gradient.
  const Interval both{std::max(left.low, right.low), std::min(left.high, right.high)};
  const Tensor x = uniform64({2, 3}, both.low, both.high, 5);
  expect_gradients([&](const Tensors& in) { return f(in[0], in[0]) + in[0] * in[0]; }, Tensors{x});
  expect_gradients(call, Tensors{a, b.detach()});
  expect_gradients(call, Tensors{a.detach(), b});
  const Tensor a32 = to(uniform64({7, 1, 90}, left.low, left.high, 6).detach(), float32),
               b32 = to(uniform64({3, 90}, right.low, right.high, 7).detach(), float32);
  expect_close(f(a32, b32), f(to(a32, float64), to(b32, float64)), 1e-6);
  CHECK(f(a32, b32).dtype() == float32);

  expect_error([&] { f(a, b32); }, {op, "float64", "[3, 4]", "float32", "[3, 90]"});
  expect_error([&] { f(ones({2, 3}), ones({2, 4})); }, {op, "[2, 3]", "[2, 4]"});
  expect_error([&] { f(ones({2}, boolean), ones({2}, boolean)); }, {op, "bool"});
  expect_error([&] { f(a, Tensor()); }, {op, "undefined"});
}

// The gradients of sum(y) with respect to the inputs, plain and with a graph: both must be these.
inline void expect_gradient(const Tensor& y, const Tensor& x, const std::vector<double>& expected,
                            double tolerance = 1e-12) {
  for (bool create_graph : {false, true}) {
    const GradOptions options{.create_graph = create_graph, .keep_graph = true};
    expect_close(grad({y}, {x}, {ones_like(y)}, options)[0], expected, tolerance);
  }
}

}  // namespace prenorm
