#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

// y[.., i, j] = sum_k a[.., i, k] b[.., k, j] by plain loops, from contiguous copies broadcast to one batch shape.
Tensor naive(const Tensor& a, const Tensor& b) {
  const auto lead = [](const Tensor& x) { return Shape(x.shape().begin(), x.shape().end() - 2); };
  const Shape batch = broadcast_shapes("naive", lead(a), lead(b));
  const std::int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1);
  const auto stretched = [&](const Tensor& x) {
    Shape shape = batch;
    shape.push_back(x.size(-2));
    shape.push_back(x.size(-1));
    return expand(x, shape).to_vector();
  };
  const std::vector<double> p = stretched(a), q = stretched(b);
  std::vector<double> y(static_cast<std::size_t>(numel(batch) * m * n), 0);
  for (std::int64_t item = 0; item < numel(batch); ++item) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        double& sum = y[static_cast<std::size_t>((item * m + i) * n + j)];
        for (std::int64_t l = 0; l < k; ++l) {
          sum +=
              p[static_cast<std::size_t>((item * m + i) * k + l)] * q[static_cast<std::size_t>((item * k + l) * n + j)];
        }
      }
    }
  }
  Shape shape = batch;
  shape.push_back(m);
  shape.push_back(n);
  return Tensor::of(y, shape, {.dtype = float64});
}

TEST_CASE("matmul: values and gradients; batches broadcast both ways, empty ones too") {
  struct Case {
    Shape a, b;
  };
  const std::vector<Case> cases{
      {{1, 1}, {1, 1}},    {{2, 3}, {3, 4}},          {{2, 3, 4}, {2, 4, 2}},    {{2, 3, 4}, {4, 2}},
      {{3, 4}, {2, 4, 2}}, {{2, 1, 2, 3}, {3, 3, 2}}, {{1, 2, 3}, {2, 2, 3, 1}}, {{2, 1, 1, 2}, {1, 3, 2, 1}},
      {{0, 3}, {3, 2}},    {{2, 0}, {0, 3}},          {{2, 3}, {3, 0}},          {{0, 2, 3}, {3, 2}},
      {{2, 2, 0}, {0, 2}}, {{2, 2, 0}, {2, 0, 2}},    {{1, 2, 3}, {0, 3, 2}}};
  for (const Case& one : cases) {
    const Shape& shape_a = one.a;
    const Shape& shape_b = one.b;
    CAPTURE(shape_a);
    CAPTURE(shape_b);
    const Tensor a = randn64(shape_a, 1), b = randn64(shape_b, 2);
    const Tensor expected = naive(a, b);
    const auto f = [](const Tensors& in) { return matmul(in[0], in[1]); };
    const bool vacuous = a.numel() == 0 || b.numel() == 0;
    for (const auto& [left, right] : {std::pair{a, b}, {strided(a), b}, {a, strided(b)}, {strided(a), strided(b)}}) {
      expect_close(matmul(left, right), expected, 1e-13);
      expect_gradients(f, NamedTensors{{"a", left}, {"b", right}}, {.allow_vacuous = vacuous});
    }
  }
}

TEST_CASE("matmul: vectors, as rows on the left and columns on the right") {
  struct Case {
    Shape a, b, y;
  };
  for (const auto& [shape_a, shape_b, shape] : std::vector<Case>{{{3}, {3}, {}},
                                                                 {{3}, {3, 2}, {2}},
                                                                 {{2, 3}, {3}, {2}},
                                                                 {{3}, {2, 3, 4}, {2, 4}},
                                                                 {{2, 4, 3}, {3}, {2, 4}},
                                                                 {{0}, {0}, {}}}) {
    const Tensor a = randn64(shape_a, 1), b = randn64(shape_b, 2);
    const Tensor y = matmul(a, b);
    CHECK(y.shape() == shape);
    const Tensor rows = a.dims() == 1 ? unsqueeze(a, 0) : a, columns = b.dims() == 1 ? unsqueeze(b, 1) : b;
    expect_close(y, naive(rows, columns).to_vector(), 1e-13);
    expect_gradients([](const Tensors& in) { return matmul(in[0], in[1]); }, Tensors{a, b},
                     {.allow_vacuous = a.numel() == 0});
  }
}

TEST_CASE("matmul: layouts that BLAS can and cannot read") {
  const Tensor a = randn64({4, 6}, 1), b = randn64({6, 5}, 2), items = randn64({3, 4, 6}, 3);
  struct Case {
    Tensor left, right;
  };
  const std::vector<Case> cases{{slice(a, 1, 0, 6, 2), slice(b, 0, 1, 4)},        // rows with gaps
                                {slice(a, 0, 0, 4, 2), slice(b, 1, 1, 4)},        // a leading dimension
                                {expand(slice(a, 0, 0, 1), {4, 6}), b},           // one row repeated
                                {expand(slice(a, 1, 0, 1), {4, 6}), b},           // one column repeated
                                {transpose(items, 0, 1), b},                      // batch inside
                                {expand(a, {3, 4, 6}), expand(b, {3, 6, 5})},     // one matrix for all
                                {permute(items, {2, 0, 1}), slice(a, 1, 2, 3)}};  // everything at once
  for (const auto& [left, right] : cases) {
    const Tensor p = left.detach().requires_grad_(), q = clone(right).detach().requires_grad_();
    expect_close(matmul(p, right), naive(clone(p), clone(q)), 1e-13);
    expect_close(grad({matmul(p, q)}, {q}, {ones(matmul(p, q).shape(), float64)})[0],
                 grad({matmul(clone(p), q)}, {q}, {ones(matmul(p, q).shape(), float64)})[0], 1e-13);
  }
}

TEST_CASE("matmul: one matrix on both sides") {
  expect_gradients([](const Tensors& in) { return matmul(in[0], in[0]); }, Tensors{randn64({3, 3})});
  expect_gradients([](const Tensors& in) { return matmul(in[0], transpose(in[0], -2, -1)); },
                   Tensors{randn64({2, 3, 2})});
  expect_gradients([](const Tensors& in) { return matmul(in[0], in[1]); },
                   Tensors{randn64({2, 3}, 1), randn64({3, 2}, 2).detach()});
}

TEST_CASE("matmul: float32 is close to float64, large and small") {
  for (const auto& [a, b] : std::vector<std::pair<Shape, Shape>>{
           {{64, 128}, {128, 96}}, {{3, 1, 17, 33}, {2, 33, 9}}, {{1, 300}, {300, 1}}}) {
    const Tensor p = to(randn64(a, 1).detach(), float32), q = to(randn64(b, 2).detach(), float32);
    const Tensor y = matmul(p, q);
    CHECK(y.dtype() == float32);
    expect_close(y, naive(p, q), 2e-5);
  }
}

TEST_CASE("matmul: refusals") {
  expect_error([] { matmul(ones({2, 3}), ones({4, 5})); }, {"matmul", "[2, 3]", "[4, 5]", "3"});
  expect_error([] { matmul(ones({3}), ones({4})); }, {"matmul", "[3]", "[4]"});
  expect_error([] { matmul(ones({2, 2, 3}), ones({3, 3, 2})); }, {"matmul", "[2]", "[3]"});
  expect_error([] { matmul(Tensor::scalar(1), ones({2})); }, {"matmul", "[]", "[2]"});
  expect_error([] { matmul(ones({2, 2}), ones({2, 2}, float64)); }, {"matmul", "float32", "float64"});
  expect_error([] { matmul(ones({2, 2}, int64), ones({2, 2}, int64)); }, {"matmul", "int64"});
  expect_error([] { matmul(ones({2, 2}), Tensor()); }, {"matmul", "undefined"});
}

}  // namespace
}  // namespace prenorm
