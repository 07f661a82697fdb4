#include "gradcheck_rows/rows.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "autograd/ops.h"

namespace prenorm::gradcheck_rows {
namespace {

// A leaf of these values whose elements lie as asked for.
Tensor leaf(const std::vector<double>& values, const Shape& shape, Layout layout) {
  const Tensor x = Tensor::of(values, shape, {.dtype = float64});
  if (layout == Layout::dense || shape.empty() || x.numel() == 0) return Tensor(x).requires_grad_();
  Shape reversed;
  Dims order;
  for (std::int64_t d = shape.dims() - 1; d >= 0; --d) {
    reversed.push_back(shape[d]);
    order.push_back(d);
  }
  Tensor out;
  if (layout == Layout::transposed) {
    out = permute(zeros(reversed, float64), order);
  } else {  // every other element of rows twice as long
    Shape wide = shape;
    wide.back() *= 2;
    out = slice(zeros(wide, float64), -1, 0, wide.back(), 2);
  }
  copy_(out, x);
  return out.requires_grad_();
}

// "[2,3] [3]~": constants too, since their shape decides what is broadcast.
std::string describe(const NamedTensors& inputs, std::size_t skip) {
  std::ostringstream out;
  for (std::size_t i = skip; i < inputs.size(); ++i) {
    const Tensor& x = inputs[i].tensor;
    if (!x.defined()) continue;
    if (out.tellp() > 0) out << ' ';
    out << '[';
    for (std::int64_t d = 0; d < x.dims(); ++d) out << (d > 0 ? "," : "") << x.shape()[d];
    out << ']' << (x.is_contiguous() ? "" : "~");
  }
  return out.str();
}

}  // namespace

template <class F>
Tensor Cases::filled(const Shape& shape, Layout layout, F next_value) {
  std::vector<double> values(static_cast<std::size_t>(numel(shape)));
  std::generate(values.begin(), values.end(), next_value);
  return leaf(values, shape, layout);
}

Tensor Cases::normal(const Shape& shape, Layout layout) {
  return filled(shape, layout, [this] { return generator_.standard_normal(); });
}

Tensor Cases::uniform(const Shape& shape, double low, double high, Layout layout) {
  return filled(shape, layout, [&] { return low + (high - low) * generator_.uniform(); });
}

Tensor Cases::nonzero(const Shape& shape, Layout layout) {
  return filled(shape, layout, [this, first = true]() mutable {
    const double magnitude = 0.3 + 1.7 * generator_.uniform();
    const bool negative = generator_.uniform() < 0.5 && !first;
    first = false;
    return negative ? -magnitude : magnitude;
  });
}

Tensor Cases::distinct(const Shape& shape, Layout layout) {
  std::vector<double> values(static_cast<std::size_t>(numel(shape)));
  const std::size_t half = values.size() / 2;
  std::iota(values.begin(), values.end(), -static_cast<double>(half));
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[generator_.next64() % i]);
  }
  for (double& value : values) value /= 64;
  return leaf(values, shape, layout);
}

Tensor Cases::ids(const Shape& shape, std::int64_t n) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(numel(shape)));
  for (std::int64_t& value : values) value = static_cast<std::int64_t>(generator_.uniform() * static_cast<double>(n));
  return Tensor::of(values, shape, {.dtype = int64});
}

Tensor Cases::mask(const Shape& shape) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(numel(shape)));
  for (std::int64_t& value : values) value = generator_.uniform() < 0.6 ? 1 : 0;
  if (values.size() > 1) {
    values.front() = 0;
    values.back() = 1;
  }
  return Tensor::of(values, shape, {.dtype = boolean});
}

void Cases::check(GradcheckFunction f, NamedTensors inputs, const GradcheckOptions& options) {
  Case one{std::move(f), std::move(inputs), options, ""};
  one.shapes = describe(one.inputs, 0);
  one.options.seed = seed_ + cases_.size();
  cases_.push_back(std::move(one));
}

void Cases::add_layer(nn::LayerFunction function, std::size_t parameters, const GradcheckOptions& options) {
  check(std::move(function.f), std::move(function.inputs), options);
  cases_.back().shapes = describe(cases_.back().inputs, parameters);
}

MakeCases unary(OneInput f, Draw draw) {
  return [f = std::move(f), draw](Cases& c) {
    const GradcheckFunction function([f](const Tensors& in) { return f(in[0]); });
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{2, 3}, Shape{19}}) {
      c.check(function, {{"x", (c.*draw)(shape, Layout::dense)}});
    }
    c.check(function, {{"x", (c.*draw)({3, 4}, Layout::transposed)}});
    c.check(function, {{"x", (c.*draw)({2, 1, 5}, Layout::gaps)}});
    c.check_empty(function, {{"x", (c.*draw)({0, 3}, Layout::dense)}});
  };
}

MakeCases binary(TwoInputs f, Draw draw_a, Draw draw_b) {
  return [f = std::move(f), draw_a, draw_b](Cases& c) {
    const GradcheckFunction function([f](const Tensors& in) { return f(in[0], in[1]); });
    const auto check = [&](const Shape& a, const Shape& b, Layout layout_a, Layout layout_b) {
      c.check(function, {{"a", (c.*draw_a)(a, layout_a)}, {"b", (c.*draw_b)(b, layout_b)}});
    };
    using enum Layout;
    check({}, {}, dense, dense);
    check({2, 3}, {2, 3}, dense, dense);
    check({17}, {17}, dense, gaps);
    check({2, 3}, {}, dense, dense);
    check({}, {2, 3}, dense, transposed);
    check({2, 1}, {1, 3}, dense, dense);
    check({3, 1, 2}, {2, 3, 2, 2}, gaps, dense);
    check({2, 3}, {3}, transposed, dense);
    check({1, 1}, {4}, dense, dense);
    c.check_empty(function, {{"a", (c.*draw_a)({0, 3}, dense)}, {"b", (c.*draw_b)({3}, dense)}});
  };
}

MakeCases over(std::vector<Shape> shapes, OneInput f) {
  return [shapes = std::move(shapes), f = std::move(f)](Cases& c) {
    const GradcheckFunction function([f](const Tensors& in) { return f(in[0]); });
    for (const Shape& shape : shapes) c.check(function, {{"x", c.normal(shape)}});
    for (Layout layout : {Layout::transposed, Layout::gaps}) {
      c.check(function, {{"x", c.normal(shapes.back(), layout)}});
    }
  };
}

std::vector<Family> all_families() {
  return {{"Pointwise", pointwise_rows()},
          {"Reductions", reduction_rows()},
          {"Shape", shape_rows()},
          {"Products", product_rows()},
          {"Normalisation", norm_rows()},
          {"Probabilities and losses", probability_rows()},
          {"Lookup and attention", attention_rows()},
          {"Layers", layer_rows()},
          {"Transformers", transformer_rows()}};
}

}  // namespace prenorm::gradcheck_rows
