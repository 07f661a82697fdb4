#include "autograd/ops.h"
#include "gradcheck_rows/rows.h"

namespace prenorm::gradcheck_rows {
namespace {

using Reduce = std::function<Tensor(const Tensor& x, const Dims& dims, bool keepdim)>;

// A reduction over all elements, over one dimension (the first, the last, one between) and over two, kept or not.
Rows reductions(const std::string& name, const std::string& options, const std::string& file, const Reduce& f) {
  const auto variant = [&options](const std::string& dims) { return options.empty() ? dims : options + ", " + dims; };
  const auto row = [&](const std::string& dims, const MakeCases& make) { return Row{name, variant(dims), file, make}; };
  const auto along = [f](Dims dims, bool keepdim) {
    return [=](const Tensors& in) { return f(in[0], dims, keepdim); };
  };
  return {
      row("all", over({{2}, {5, 1}, {2, 3, 4}}, [f](const Tensor& x) { return f(x, {}, false); })),
      row("one dim",
          [along](Cases& c) {
            c.check(along({0}, false), {{"x", c.normal({4, 3})}});
            c.check(along({-1}, false), {{"x", c.normal({3, 19})}});
            c.check(along({1}, false), {{"x", c.normal({2, 3, 4})}});
            c.check(along({1}, false), {{"x", c.normal({2, 3, 4}, Layout::transposed)}});
            c.check(along({0}, false), {{"x", c.normal({4, 3}, Layout::gaps)}});
            c.check_empty(along({1}, false), {{"x", c.normal({0, 3})}});
          }),
      row("one dim, keepdim",
          [along](Cases& c) {
            c.check(along({0}, true), {{"x", c.normal({4, 3})}});
            c.check(along({1}, true), {{"x", c.normal({2, 3, 4}, Layout::transposed)}});
          }),
      row("two dims",
          [along](Cases& c) {
            c.check(along({0, 2}, false), {{"x", c.normal({2, 3, 4})}});
            c.check(along({-1, 0}, false), {{"x", c.normal({2, 3, 4}, Layout::transposed)}});
            c.check(along({1, 2}, true), {{"x", c.normal({2, 3, 4}, Layout::gaps)}});
          }),
  };
}

// Long enough to be cut into blocks for threads.
MakeCases large(Reduce f) {
  return [f = std::move(f)](Cases& c) {
    c.check([f](const Tensors& in) { return f(in[0], {0}, false); }, {{"x", c.normal({700, 130})}});
    c.check([f](const Tensors& in) { return f(in[0], {1}, false); }, {{"x", c.normal({130, 700})}});
  };
}

void max_of_all(Cases& c) {
  const GradcheckFunction f([](const Tensors& in) { return max(in[0]); });
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{7}, Shape{3, 4}}) c.check(f, {{"x", c.distinct(shape)}});
  c.check(f, {{"x", c.distinct({3, 4}, Layout::transposed)}});
}

MakeCases max_along(std::int64_t dim, bool keepdim) {
  return [=](Cases& c) {
    const GradcheckFunction f([=](const Tensors& in) { return max(in[0], dim, keepdim).values; });
    c.check(f, {{"x", c.distinct({4, 5})}});
    c.check(f, {{"x", c.distinct({2, 4, 3}, Layout::transposed)}});
    c.check(f, {{"x", c.distinct({3, 3, 2}, Layout::gaps)}});
  };
}

// Two equal elements: the gradient goes to the first.
void max_tie(Cases& c) {
  const Tensor x = Tensor::of({2, 5, 5, 1}, {.dtype = float64, .requires_grad = true});
  c.check([](const Tensors& in) { return max(in[0]); }, {{"x", x}}, {.order = 1, .allow_kinks = true});
}

}  // namespace

Rows reduction_rows() {
  Rows rows;
  const auto add = [&rows](Rows more) { rows.insert(rows.end(), more.begin(), more.end()); };
  const Reduce sum_of = [](const Tensor& x, const Dims& dims, bool keep) { return sum(x, dims, keep); };
  const Reduce mean_of = [](const Tensor& x, const Dims& dims, bool keep) { return mean(x, dims, keep); };
  const Reduce norm_of = [](const Tensor& x, const Dims& dims, bool keep) { return norm(x, dims, keep); };
  add(reductions("sum", "", ops("sum.cpp"), sum_of));
  add({{"sum", "large", ops("sum.cpp"), large(sum_of)}});
  add(reductions("mean", "", ops("mean.cpp"), mean_of));
  for (int correction : {1, 0}) {
    add(reductions("var", "correction " + std::to_string(correction), ops("var.cpp"),
                   [=](const Tensor& x, const Dims& dims, bool keep) { return var(x, dims, correction, keep); }));
  }
  for (int correction : {1, 0}) {
    add(reductions("std", "correction " + std::to_string(correction), ops("std.cpp"),
                   [=](const Tensor& x, const Dims& dims, bool keep) { return std(x, dims, correction, keep); }));
  }
  add(reductions("norm", "", ops("norm.cpp"), norm_of));
  add({{"max", "all", ops("max.cpp"), max_of_all},
       {"max", "dim 0", ops("max.cpp"), max_along(0, false)},
       {"max", "dim -1", ops("max.cpp"), max_along(-1, false)},
       {"max", "dim 1, keepdim", ops("max.cpp"), max_along(1, true)},
       {"max", "tie", ops("max.cpp"), max_tie}});
  return rows;
}

}  // namespace prenorm::gradcheck_rows
