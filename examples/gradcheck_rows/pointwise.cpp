#include "autograd/ops.h"
#include "gradcheck_rows/rows.h"

namespace prenorm::gradcheck_rows {
namespace {

// x in steps that float32 holds exactly, so that rounding to it does not show in differences.
void to_float32(Cases& c) {
  for (Layout layout : {Layout::dense, Layout::transposed}) {
    c.check([](const Tensors& in) { return to(in[0], float32); }, {{"x", c.distinct({3, 4}, layout)}},
            {.step = 0x1p-9});
  }
}

void to_float64(Cases& c) {
  const NoGrad no_grad;
  Tensor x = to(c.distinct({3, 4}), float32);
  c.check([](const Tensors& in) { return to(in[0], float64); }, {{"x", x.requires_grad_()}},
          {.step = 0x1p-7, .allow_float32 = true});
}

void where_cases(Cases& c) {
  const GradcheckFunction f([](const Tensors& in) { return where(in[0], in[1], in[2]); });
  const auto check = [&](const Shape& condition, const Shape& a, const Shape& b, Layout layout) {
    c.check(f, {{"condition", c.mask(condition)}, {"a", c.normal(a, layout)}, {"b", c.normal(b)}});
  };
  check({4, 5}, {4, 5}, {4, 5}, Layout::dense);
  check({4, 5}, {4, 1}, {5}, Layout::dense);
  check({5}, {4, 5}, {}, Layout::transposed);
  check({3, 2, 4}, {}, {2, 1}, Layout::dense);
  c.check_empty(f, {{"condition", c.mask({0, 3})}, {"a", c.normal({3})}, {"b", c.normal({0, 3})}});
}

void masked_fill_cases(Cases& c) {
  const GradcheckFunction f([](const Tensors& in) { return masked_fill(in[0], in[1], -1e9); });
  const auto check = [&](const Shape& x, const Shape& mask, Layout layout) {
    c.check(f, {{"x", c.normal(x, layout)}, {"mask", c.mask(mask)}});
  };
  check({4, 5}, {4, 5}, Layout::dense);
  check({3, 4, 5}, {4, 1}, Layout::transposed);
  check({5}, {4, 5}, Layout::gaps);
  check({3, 1}, {3, 4}, Layout::dense);
  c.check_empty(f, {{"x", c.normal({0, 3})}, {"mask", c.mask({3})}});
}

MakeCases dropout_cases(double p, bool training) {
  return [=](Cases& c) {
    // Next to x itself: at p = 1 dropout's own gradient is 0, and 0 alone would prove nothing.
    const auto f = seeded([=](const Tensors& in) { return in[0] + 2 * dropout(in[0], p, training); });
    c.check(f, {{"x", c.normal({4, 5})}});
    c.check(f, {{"x", c.normal({3, 2, 7}, Layout::transposed)}});
    c.check(f, {{"x", c.normal({40})}});
    c.check_empty(f, {{"x", c.normal({0, 3})}});
  };
}

// Base and exponent that can be moved in every direction.
MakeCases power(double exponent, Draw base) {
  return unary([exponent](const Tensor& x) { return pow(x, exponent); }, base);
}

void residual_cases(Cases& c) {
  const GradcheckFunction f([](const Tensors& in) { return residual_add(in[0], in[1]); });
  c.check(f, {{"x", c.normal({2, 3})}, {"branch", c.normal({2, 3})}});
  c.check(f, {{"x", c.normal({2, 3, 4}, Layout::transposed)}, {"branch", c.normal({2, 3, 4})}});
  c.check([](const Tensors& in) { return residual_add(in[0], in[0]); }, {{"x and branch", c.normal({3})}});
}

// Where left and right derivatives differ, the gradient taken lies between them.
MakeCases at_kink(OneInput f) {
  return [f = std::move(f)](Cases& c) {
    Tensor x = Tensor::of({0, -1.5, 0, 1.5}, {.dtype = float64, .requires_grad = true});
    c.check([f](const Tensors& in) { return f(in[0]); }, {{"x", x}}, {.order = 1, .allow_kinks = true});
  };
}

}  // namespace

Rows pointwise_rows() {
  const auto nonzero = &Cases::nonzero, positive = &Cases::positive;
  return {
      {"add", "", ops("add.cpp"), binary([](const Tensor& a, const Tensor& b) { return a + b; })},
      {"add", "a number", ops("add.cpp"), unary([](const Tensor& x) { return (x + 3) * (2 + x); })},
      {"sub", "", ops("sub.cpp"), binary([](const Tensor& a, const Tensor& b) { return a - b; })},
      {"sub", "a number", ops("sub.cpp"), unary([](const Tensor& x) { return (x - 3) * (2 - x); })},
      {"mul", "", ops("mul.cpp"), binary([](const Tensor& a, const Tensor& b) { return a * b; })},
      {"mul", "by itself", ops("mul.cpp"), unary([](const Tensor& x) { return x * x; })},
      {"mul", "a number", ops("mul.cpp"), unary([](const Tensor& x) { return 3 * x * -0.5; })},
      {"div", "", ops("div.cpp"),
       binary([](const Tensor& a, const Tensor& b) { return a / b; }, &Cases::normal, nonzero)},
      {"div", "a number", ops("div.cpp"), unary([](const Tensor& x) { return x / 3 + 2 / x; }, nonzero)},
      {"pow", "", ops("pow.cpp"),
       binary([](const Tensor& b, const Tensor& e) { return pow(b, e); }, positive, &Cases::normal)},
      {"pow", "exponent 2", ops("pow.cpp"), power(2, &Cases::normal)},
      {"pow", "exponent 3", ops("pow.cpp"), power(3, &Cases::normal)},
      {"pow", "exponent 1/2", ops("pow.cpp"), power(0.5, positive)},
      {"pow", "exponent -1", ops("pow.cpp"), power(-1, nonzero)},
      {"neg", "", ops("neg.cpp"), unary(neg)},
      {"exp", "", ops("exp.cpp"), unary(exp)},
      {"log", "", ops("log.cpp"), unary(log, positive)},
      {"sqrt", "", ops("sqrt.cpp"), unary(sqrt, positive)},
      {"abs", "", ops("abs.cpp"), unary(abs, nonzero)},
      {"abs", "kink at 0", ops("abs.cpp"), at_kink(abs)},
      {"sin", "", ops("sin.cpp"), unary(sin)},
      {"cos", "", ops("cos.cpp"), unary(cos)},
      {"tanh", "", ops("tanh.cpp"), unary(tanh)},
      {"sigmoid", "", ops("sigmoid.cpp"), unary(sigmoid)},
      {"relu", "", ops("relu.cpp"), unary(relu, nonzero)},
      {"relu", "kink at 0", ops("relu.cpp"), at_kink(relu)},
      {"gelu", "exact", ops("gelu.cpp"), unary([](const Tensor& x) { return gelu(x); })},
      {"gelu", "tanh", ops("gelu.cpp"), unary([](const Tensor& x) { return gelu(x, Gelu::tanh); })},
      {"where", "", ops("where.cpp"), where_cases},
      {"masked_fill", "", ops("masked_fill.cpp"), masked_fill_cases},
      {"dropout", "training", ops("dropout.cpp"), dropout_cases(0.3, true)},
      {"dropout", "training, p = 1", ops("dropout.cpp"), dropout_cases(1, true)},
      {"dropout", "evaluation", ops("dropout.cpp"), dropout_cases(0.3, false)},
      {"to", "float32", ops("to.cpp"), to_float32},
      {"to", "float64", ops("to.cpp"), to_float64},
      {"residual_add", "", ops("residual_add.cpp"), residual_cases},
  };
}

}  // namespace prenorm::gradcheck_rows
