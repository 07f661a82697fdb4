#include "autograd/ops.h"
#include "gradcheck_rows/rows.h"

namespace prenorm::gradcheck_rows {
namespace {

// For ops that hand elements on: f of one shape, in every layout, and of an empty one.
MakeCases at(const Shape& shape, OneInput f) {
  return [shape, f = std::move(f)](Cases& c) {
    const GradcheckFunction function([f](const Tensors& in) { return f(in[0]); });
    for (Layout layout : {Layout::dense, Layout::transposed, Layout::gaps}) {
      c.check(function, {{"x", c.normal(shape, layout)}});
    }
    Shape empty = shape;
    empty[0] = 0;
    c.check_empty(function, {{"x", c.normal(empty)}});
  };
}

void reshape_cases(Cases& c) {
  const auto to = [](const Shape& shape) { return [shape](const Tensors& in) { return reshape(in[0], shape); }; };
  c.check(to({}), {{"x", c.normal({1})}});
  c.check(to({1, 1}), {{"x", c.normal({})}});
  c.check(to({6}), {{"x", c.normal({2, 3})}});
  c.check(to({3, -1}), {{"x", c.normal({2, 3, 2})}});
  c.check(to({4, 3}), {{"x", c.normal({3, 4}, Layout::transposed)}});
  c.check(to({2, 6}), {{"x", c.normal({3, 4}, Layout::gaps)}});
  c.check_empty(to({3, 0}), {{"x", c.normal({0, 2})}});
}

void expand_cases(Cases& c) {
  const auto to = [](const Shape& shape) { return [shape](const Tensors& in) { return expand(in[0], shape); }; };
  c.check(to({2, 3}), {{"x", c.normal({})}});
  c.check(to({2, 3}), {{"x", c.normal({3})}});
  c.check(to({-1, 4}), {{"x", c.normal({3, 1})}});
  c.check(to({2, 3, 4}), {{"x", c.normal({1, 3, 1})}});
  c.check(to({2, 3, 2}), {{"x", c.normal({3, 2}, Layout::transposed)}});
  c.check_empty(to({0, 3}), {{"x", c.normal({1, 3})}});
}

void sum_to_cases(Cases& c) {
  const auto to = [](const Shape& shape) { return [shape](const Tensors& in) { return sum_to(in[0], shape); }; };
  c.check(to({}), {{"x", c.normal({2, 3})}});
  c.check(to({3}), {{"x", c.normal({2, 3})}});
  c.check(to({2, 1}), {{"x", c.normal({2, 3})}});
  c.check(to({1, 3, 1}), {{"x", c.normal({2, 3, 4}, Layout::transposed)}});
  c.check_empty(to({3}), {{"x", c.normal({0, 3})}});
}

void concat_cases(Cases& c) {
  const auto along = [](std::int64_t dim) { return [dim](const Tensors& in) { return concat(in, dim); }; };
  c.check(along(0), {{"a", c.normal({2, 3})}});
  c.check(along(0), {{"a", c.normal({2, 3})}, {"b", c.normal({1, 3})}});
  c.check(along(-1), {{"a", c.normal({2, 1})}, {"b", c.normal({2, 3}, Layout::transposed)}, {"c", c.normal({2, 2})}});
  c.check(along(1), {{"a", c.normal({2, 2, 3}, Layout::gaps)}, {"b", c.normal({2, 1, 3})}});
  c.check(along(0), {{"a", c.normal({3})}, {"empty", c.normal({0})}});
  c.check([](const Tensors& in) { return concat({in[0], in[0]}, 0); }, {{"twice", c.normal({3})}});
}

// Parts of their own size, whose gradients meet again in x.
void split_cases(Cases& c) {
  const auto into = [](const std::vector<std::int64_t>& sizes, std::int64_t dim) {
    return [=](const Tensors& in) { return split(in[0], sizes, dim); };
  };
  c.check(into({2, 1}, 0), {{"x", c.normal({3, 2})}});
  c.check(into({1, 3, 2}, -1), {{"x", c.normal({2, 6}, Layout::transposed)}});
  c.check(into({0, 4}, 1), {{"x", c.normal({2, 4, 2}, Layout::gaps)}});
  c.check([](const Tensors& in) { return split(in[0], {2, 2})[1]; }, {{"x", c.normal({4})}});
}

void chunk_cases(Cases& c) {
  c.check([](const Tensors& in) { return chunk(in[0], 3, -1); }, {{"x", c.normal({2, 6})}});
  c.check([](const Tensors& in) { return chunk(in[0], 2); }, {{"x", c.normal({5, 2}, Layout::transposed)}});
  c.check([](const Tensors& in) { return chunk(in[0], 3, 1)[1]; }, {{"x", c.normal({2, 7}, Layout::gaps)}});
}

void overlapping_slices(Cases& c) {
  c.check(
      [](const Tensors& in) {
        return Tensors{slice(in[0], 1, 0, 3), slice(in[0], 1, 1, 5), slice(in[0], 1, 4, 5)};
      },
      {{"x", c.normal({2, 5})}});
}

}  // namespace

Rows shape_rows() {
  return {
      {"reshape", "", ops("reshape.cpp"), reshape_cases},
      {"transpose", "", ops("permute.cpp"), at({2, 3, 4}, [](const Tensor& x) { return transpose(x, 0, -1); })},
      {"permute", "", ops("permute.cpp"),
       at({2, 3, 4},
          [](const Tensor& x) {
            return permute(x, {1, 2, 0});
          })},
      {"unsqueeze", "", ops("squeeze.cpp"), at({2, 3}, [](const Tensor& x) { return unsqueeze(x, 1); })},
      {"squeeze", "", ops("squeeze.cpp"), at({2, 1, 3}, [](const Tensor& x) { return squeeze(x, 1); })},
      {"expand", "", ops("expand.cpp"), expand_cases},
      {"sum_to", "", ops("expand.cpp"), sum_to_cases},
      {"slice", "", ops("slice.cpp"), at({3, 5}, [](const Tensor& x) { return slice(x, 1, 1, -1); })},
      {"slice", "step 2", ops("slice.cpp"), at({3, 5, 2}, [](const Tensor& x) { return slice(x, 1, 0, 5, 2); })},
      {"slice", "several that overlap", ops("slice.cpp"), overlapping_slices},
      {"select", "", ops("slice.cpp"), at({3, 4, 2}, [](const Tensor& x) { return select(x, 1, -2); })},
      {"concat", "", ops("concat.cpp"), concat_cases},
      {"split", "", ops("split.cpp"), split_cases},
      {"chunk", "", ops("split.cpp"), chunk_cases},
      {"clone", "", ops("clone.cpp"), unary(clone)},
      {"contiguous", "", ops("clone.cpp"), unary(contiguous)},
      {"triu", "", ops("triu.cpp"), at({3, 4}, [](const Tensor& x) { return triu(x); })},
      {"triu", "diagonal 1", ops("triu.cpp"), at({2, 3, 3}, [](const Tensor& x) { return triu(x, 1); })},
      {"tril", "", ops("triu.cpp"), at({3, 4}, [](const Tensor& x) { return tril(x); })},
      {"tril", "diagonal -1", ops("triu.cpp"), at({2, 4, 3}, [](const Tensor& x) { return tril(x, -1); })},
  };
}

}  // namespace prenorm::gradcheck_rows
