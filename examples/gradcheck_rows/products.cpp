#include "autograd/ops.h"
#include "gradcheck_rows/rows.h"

namespace prenorm::gradcheck_rows {
namespace {

const auto product = [](const Tensors& in) { return matmul(in[0], in[1]); };

struct Operands {
  Shape a, b;
  Layout layout_a = Layout::dense, layout_b = Layout::dense;
};

MakeCases products(std::vector<Operands> list) {
  return [list = std::move(list)](Cases& c) {
    for (const Operands& o : list) {
      const bool empty = numel(o.a) == 0 || numel(o.b) == 0;
      c.check(product, {{"a", c.normal(o.a, o.layout_a)}, {"b", c.normal(o.b, o.layout_b)}}, {.allow_vacuous = empty});
    }
  };
}

MakeCases linear_cases(bool bias) {
  return [bias](Cases& c) {
    const auto inputs = [&](const Shape& x, std::int64_t in, std::int64_t out, Layout layout = Layout::dense) {
      NamedTensors named{{"x", c.normal(x, layout)}, {"weight", c.normal({out, in})}};
      if (bias) named.push_back({"bias", c.normal({out})});
      return named;
    };
    const GradcheckFunction f([bias](const Tensors& in) { return linear(in[0], in[1], bias ? in[2] : Tensor()); });
    c.check(f, inputs({3}, 3, 4));
    c.check(f, inputs({1, 2}, 2, 1));
    c.check(f, inputs({5, 3}, 3, 4));
    c.check(f, inputs({2, 3, 4}, 4, 2, Layout::transposed));
    c.check(f, inputs({2, 2, 2, 3}, 3, 5, Layout::gaps));
    c.check(f, inputs({40, 24}, 24, 17));
    c.check_empty(f, inputs({0, 3}, 3, 2));
  };
}

// One weight in two places: what the second use adds to the first one's gradient.
void shared_weight(Cases& c) {
  const GradcheckFunction f([](const Tensors& in) { return linear(linear(in[0], in[1], in[2]), in[1], in[2]); });
  c.check(f, {{"x", c.normal({4, 3})}, {"weight", c.normal({3, 3})}, {"bias", c.normal({3})}});
}

}  // namespace

Rows product_rows() {
  using enum Layout;
  return {
      {"matmul", "two matrices", ops("matmul.cpp"),
       products({{{2, 3}, {3, 4}},
                 {{1, 3}, {3, 1}},
                 {{1, 1}, {1, 1}},
                 {{4, 3}, {3, 5}, transposed, dense},
                 {{4, 3}, {3, 5}, dense, transposed},
                 {{3, 2}, {2, 4}, gaps, gaps},
                 {{20, 17}, {17, 9}},
                 {{0, 2}, {2, 3}},
                 {{2, 0}, {0, 3}}})},
      {"matmul", "batches", ops("matmul.cpp"),
       products({{{2, 3, 4}, {2, 4, 2}},
                 {{2, 2, 3, 2}, {2, 2, 2, 3}, dense, transposed},
                 {{3, 2, 4}, {3, 4, 2}, transposed, gaps},
                 {{0, 2, 3}, {0, 3, 2}}})},
      {"matmul", "batches broadcast", ops("matmul.cpp"),
       products({{{2, 3, 4}, {4, 2}},
                 {{3, 4}, {2, 4, 2}},
                 {{2, 1, 2, 3}, {3, 3, 2}},
                 {{1, 3, 2}, {4, 2, 2}, dense, transposed},
                 {{2, 2, 3, 2}, {2, 3}, gaps, dense},
                 {{0, 2, 3}, {3, 2}}})},
      {"matmul", "vectors", ops("matmul.cpp"),
       products({{{3}, {3}},
                 {{3}, {3, 2}},
                 {{2, 3}, {3}, transposed, dense},
                 {{3}, {2, 3, 2}, gaps, dense},
                 {{2, 2, 3}, {3}}})},
      {"linear", "bias", ops("linear.cpp"), linear_cases(true)},
      {"linear", "no bias", ops("linear.cpp"), linear_cases(false)},
      {"linear", "weight used twice", ops("linear.cpp"), shared_weight},
  };
}

}  // namespace prenorm::gradcheck_rows
