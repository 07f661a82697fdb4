// What holds for every op that reduces dimensions.
#pragma once

#include <functional>

#include "autograd/ops/op_checks.h"

namespace prenorm {

using Reduction64 = std::function<double(const std::vector<double>&)>;

// Each group of x's elements that share their indices outside `dims`, reduced by plain loops.
inline std::vector<double> reduce_naively(const Tensor& x, const Dims& dims, const Reduction64& reduce) {
  const Shape& shape = x.shape();
  std::vector<bool> goes(static_cast<std::size_t>(shape.dims()), dims.empty());
  for (std::int64_t d : dims) {
    if (shape.dims() > 0) goes[static_cast<std::size_t>(d < 0 ? d + shape.dims() : d)] = true;
  }
  std::int64_t results = 1;
  for (std::int64_t d = 0; d < shape.dims(); ++d) results *= goes[static_cast<std::size_t>(d)] ? 1 : shape[d];
  std::vector<std::vector<double>> groups(static_cast<std::size_t>(results));
  const std::vector<double> values = x.to_vector();
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::int64_t rest = static_cast<std::int64_t>(i), group = 0, step = 1;
    for (std::int64_t d = shape.dims() - 1; d >= 0; --d) {
      const std::int64_t index = rest % shape[d];
      rest /= shape[d];
      if (goes[static_cast<std::size_t>(d)]) continue;
      group += index * step;
      step *= shape[d];
    }
    groups[static_cast<std::size_t>(group)].push_back(values[i]);
  }
  std::vector<double> out;
  for (const auto& group : groups) out.push_back(reduce(group));
  return out;
}

using ReductionOp = std::function<Tensor(const Tensor& x, const Dims& dims, bool keepdim)>;

// f against plain loops and differences, over one dimension, several and all, in order or not, for rows and columns.
// Groups of fewer than `smallest` elements are left out of the gradient check.
inline void expect_reduction(std::string_view op, const ReductionOp& f, const Reduction64& reduce,
                             std::int64_t smallest = 1) {
  struct Case {
    Shape shape;
    Dims dims;
  };
  const std::vector<Case> cases{{{}, {}},
                                {{}, {0}},
                                {{}, {-1}},
                                {{5}, {}},
                                {{1}, {0}},
                                {{2, 3}, {}},
                                {{2, 3}, {0}},
                                {{2, 3}, {-1}},
                                {{2, 3}, {1, 0}},
                                {{2, 3, 4}, {1}},
                                {{2, 3, 4}, {2, 0}},
                                {{2, 3, 4}, {0, 1}},
                                {{2, 3, 4}, {-3}},
                                {{3, 2, 1, 2}, {1, 3}},
                                {{0, 3}, {1}},
                                {{2, 0}, {0}},
                                {{2, 0}, {1}},
                                {{0}, {}},
                                {{3, 1}, {1}}};
  for (const Case& one : cases) {
    const Shape& shape = one.shape;
    const Dims& dims = one.dims;
    CAPTURE(shape);
    CAPTURE(dims);
    const Tensor x = randn64(shape, 1);
    const std::vector<double> expected = reduce_naively(x, dims, reduce);
    for (bool keepdim : {false, true}) {
      const Tensor y = f(x, dims, keepdim);
      Shape kept = shape;
      for (std::int64_t d = 0; d < shape.dims(); ++d) {
        const bool named = std::find(dims.begin(), dims.end(), d) != dims.end() ||
                           std::find(dims.begin(), dims.end(), d - shape.dims()) != dims.end();
        if (named || dims.empty()) kept[d] = keepdim ? 1 : -1;
      }
      kept = Shape(kept.begin(), std::remove(kept.begin(), kept.end(), -1));
      CHECK(y.shape() == kept);
      expect_close(y, expected, 1e-12);
      expect_close(f(strided(x), dims, keepdim), expected, 1e-12);
      const bool enough = x.numel() == 0 || x.numel() / y.numel() >= smallest;
      const auto call = [&, d = dims](const Tensors& in) { return f(in[0], d, keepdim); };
      if (enough) expect_gradients(call, Tensors{x}, {.allow_vacuous = x.numel() == 0});
    }
  }
  const Tensor x = randn64({3, 4}, 2);
  expect_gradients([&](const Tensors& in) { return f(in[0], {0}, false); }, Tensors{strided(x)});
  expect_gradients([&](const Tensors& in) { return in[0] * f(in[0], {1}, true); }, Tensors{x});
  expect_gradients([&](const Tensors& in) { return f(expand(in[0], {2, 3, 4}), {0, 2}, false); }, Tensors{x});
  // Long rows and columns, in float32.
  const Tensor x32 = to(uniform64({40, 70, 11}, 1, 2).detach(), float32);
  for (const Dims& dims : {Dims{}, Dims{0}, Dims{1}, Dims{2}, Dims{0, 1}, Dims{0, 2}}) {
    const Tensor y = f(x32, dims, false);
    CHECK(y.dtype() == float32);
    expect_close(y, f(to(x32, float64), dims, false), 1e-6);
  }
  expect_error([&] { f(x, {2}, false); }, {op, "dimension 2", "out of range"});
  expect_error([&] { f(x, {1, -1}, false); }, {op, "dimension -1", "twice"});
  expect_error([&] { f(ones({2}, boolean), {}, false); }, {op, "bool"});
}

}  // namespace prenorm
