// What holds for every op: tensors without elements pass through in both directions, NaN and infinity are never hidden,
// shapes that overflow are refused before memory is asked for, and running out of memory is an error like others.

#include <filesystem>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "files.h"
#include "support.h"

namespace prenorm {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What may become of an infinity: in most ops it shows as one, or as NaN; some have a finite limit there.
enum class Infinity { shows, has_limit };

struct Op {
  std::string file;  // below autograd/ops
  std::vector<Shape> inputs;
  std::function<Tensor(const Tensors&)> f;
  std::vector<std::vector<Shape>> empty;  // inputs without elements, or leading to none
  Infinity infinity = Infinity::shows;
  double low = 0.5, high = 1.5;
};

Tensor ids(std::initializer_list<double> values) { return Tensor::of(values, {.dtype = int64}); }
Tensor mask(const Shape& shape, bool value) { return full(shape, value ? 1 : 0, boolean); }

Op unary(std::string file, Tensor (*f)(const Tensor&), Infinity infinity = Infinity::shows) {
  return {
      std::move(file), {{2, 3}}, [f](const Tensors& in) { return f(in[0]); }, {{{0}}, {{2, 0}}, {{0, 3}}}, infinity};
}
Op binary(std::string file, Tensor (*f)(const Tensor&, const Tensor&), Infinity infinity = Infinity::shows) {
  return {std::move(file),
          {{2, 3}, {3}},
          [f](const Tensors& in) { return f(in[0], in[1]); },
          {{{0}, {0}}, {{2, 0}, {1, 1}}, {{0, 3}, {3}}},
          infinity};
}
// A function of one input that also takes ones without elements of these shapes.
Op of_one(std::string file, const Shape& shape, const std::function<Tensor(const Tensor&)>& f,
          const std::vector<Shape>& empty, Infinity infinity = Infinity::shows) {
  std::vector<std::vector<Shape>> lists;
  for (const Shape& e : empty) lists.push_back({e});
  return {std::move(file), {shape}, [f](const Tensors& in) { return f(in[0]); }, lists, infinity};
}

std::vector<Op> all_ops() {
  using In = const Tensors&;
  const auto limit = Infinity::has_limit;
  const auto x = [](auto f) { return [f](const Tensor& in) { return f(in); }; };
  return {
      unary("abs", abs),
      unary("clone", clone),
      unary("cos", cos),
      unary("exp", exp, limit),
      unary("log", log),
      unary("neg", neg),
      unary("relu", relu, limit),
      unary("sigmoid", sigmoid, limit),
      unary("sin", sin),
      unary("sqrt", sqrt),
      unary("tanh", tanh, limit),
      of_one("gelu", {2, 3}, x([](const Tensor& a) { return gelu(a); }), {{0}, {2, 0}}, limit),
      of_one("gelu", {2, 3}, x([](const Tensor& a) { return gelu(a, Gelu::tanh); }), {{0}, {2, 0}}, limit),
      of_one("to", {2, 3}, x([](const Tensor& a) { return to(a, float32); }), {{0}, {2, 0}}),
      binary("add", add),
      binary("sub", sub),
      binary("mul", mul),
      binary("div", div, limit),
      {"pow", {{2, 3}, {3}}, [](In in) { return pow(in[0], in[1]); }, {{{0}, {0}}, {{2, 0}, {1}}}, limit},
      of_one("pow", {2, 3}, x([](const Tensor& a) { return pow(a, 3); }), {{0}, {2, 0}}),
      {"where",
       {{2, 3}, {2, 3}},
       [](In in) {
         return where(mask(in[0].shape(), true), in[0], in[1]) + where(mask(in[0].shape(), false), in[0], in[1]);
       },
       {{{0}, {0}}, {{2, 0}, {2, 0}}}},
      of_one("masked_fill", {2, 3}, x([](const Tensor& a) { return masked_fill(a, mask(a.shape(), false), 0); }),
             {{0}, {2, 0}}),
      of_one("dropout", {2, 3}, x([](const Tensor& a) { return dropout(a, 1e-9); }), {{0}, {2, 0}}),
      {"residual_add",
       {{2, 3}, {2, 3}},
       [](In in) { return residual_add(in[0], in[1]); },
       {{{0}, {0}}, {{2, 0}, {2, 0}}}},
      of_one("sum", {2, 3}, x([](const Tensor& a) { return sum(a, {-1}); }), {{0}, {2, 0}, {0, 3}}),
      of_one("mean", {2, 3}, x([](const Tensor& a) { return mean(a, {-1}); }), {{0}, {2, 0}, {0, 3}}),
      of_one("var", {2, 3}, x([](const Tensor& a) { return var(a, {-1}); }), {{0}, {2, 0}, {0, 3}}),
      of_one("std", {2, 3}, x([](const Tensor& a) { return std(a, {-1}); }), {{0}, {2, 0}, {0, 3}}),
      of_one("norm", {2, 3}, x([](const Tensor& a) { return norm(a, {-1}); }), {{0}, {2, 0}, {0, 3}}),
      of_one("max", {2, 3}, x([](const Tensor& a) { return max(a, -1).values; }), {{0, 3}}, limit),
      of_one("expand", {1, 3}, x([](const Tensor& a) {
               return expand(a, {2, -1});
             }),
             {{1, 0}}),
      of_one("expand", {2, 3}, x([](const Tensor& a) {
               return sum_to(a, {1, a.size(1)});
             }),
             {{2, 0}, {0, 3}}),
      of_one("reshape", {2, 3}, x([](const Tensor& a) {
               return reshape(a, {a.size(1), a.size(0)});
             }),
             {{2, 0}, {0, 3}}),
      of_one("permute", {2, 3}, x([](const Tensor& a) {
               return permute(a, {1, 0});
             }),
             {{2, 0}, {0, 3}}),
      of_one("squeeze", {2, 3}, x([](const Tensor& a) { return squeeze(unsqueeze(a, 0), 0); }), {{2, 0}, {0, 3}}),
      of_one("slice", {2, 3}, x([](const Tensor& a) { return slice(a, 1, 0, 3, 1); }), {{2, 0}, {0, 3}}),
      {"concat",
       {{2, 3}, {2, 1}},
       [](In in) {
         return concat({in[0], in[1]}, 1);
       },
       {{{2, 0}, {2, 0}}, {{0, 3}, {0, 1}}}},
      of_one("triu", {1, 3}, x([](const Tensor& a) { return triu(a); }), {{2, 0}, {0, 3}, {0, 2, 2}}),
      {"matmul",
       {{2, 3}, {3, 2}},
       [](In in) { return matmul(in[0], in[1]); },
       {{{0, 3}, {3, 2}}, {{2, 0}, {0, 2}}, {{2, 3}, {3, 0}}, {{0, 2, 3}, {3, 2}}}},
      {"linear",
       {{2, 3}, {4, 3}, {4}},
       [](In in) { return linear(in[0], in[1], in[2]); },
       {{{0, 3}, {4, 3}, {4}}, {{2, 0}, {4, 0}, {4}}, {{2, 3}, {0, 3}, {0}}}},
      {"layer_norm",
       {{2, 3}, {3}, {3}},
       [](In in) { return layer_norm(in[0], in[1], in[2]); },
       {{{0, 3}, {3}, {3}}, {{2, 0}, {0}, {0}}}},
      {"layer_norm_std",
       {{2, 3}, {3}, {3}},
       [](In in) { return layer_norm_std(in[0], in[1], in[2]); },
       {{{0, 3}, {3}, {3}}}},
      {"rms_norm", {{2, 3}, {3}}, [](In in) { return rms_norm(in[0], in[1]); }, {{{0, 3}, {3}}, {{2, 0}, {0}}}},
      {"batch_norm", {{4, 3}, {3}, {3}}, [](In in) { return batch_norm(in[0], in[1], in[2]).y; }, {{{4, 0}, {0}, {0}}}},
      {"batch_norm",
       {{4, 3}, {3}, {3}, {3}, {3}},
       [](In in) {
         return batch_norm_with(in[0], in[1].detach(), in[2].detach(), in[3], in[4]) + in[1] * 0 + in[2] * 0;
       },
       {{{4, 0}, {0}, {0}, {0}, {0}}}},
      of_one("softmax", {2, 3}, x([](const Tensor& a) { return softmax(a); }), {{0}, {2, 0}, {0, 3}}),
      of_one("log_softmax", {2, 3}, x([](const Tensor& a) { return log_softmax(a); }), {{0}, {2, 0}, {0, 3}}),
      of_one("cross_entropy", {2, 3}, x([](const Tensor& a) {
               return cross_entropy(a, zeros({a.size(0)}, int64), {.reduction = Reduction::sum});
             }),
             {{0, 3}}),
      of_one("nll_loss", {2, 1},
             x([](const Tensor& a) { return nll_loss(a, zeros({a.size(0)}, int64), {.reduction = Reduction::sum}); }),
             {{0, 3}}),
      of_one("kl_div", {2, 3}, x([](const Tensor& a) { return kl_div(a, full_like(a, 0.3), Reduction::sum); }),
             {{0, 3}, {2, 0}}),
      of_one("embedding", {3, 2}, x([](const Tensor& a) {
               return embedding(a.numel() == 0 ? zeros({0}, int64) : ids({2, 0, 1}), a);
             }),
             {{3, 0}, {0, 2}}),
      {"attention",
       {{2, 3}, {4, 3}, {4, 2}},
       [](In in) { return scaled_dot_product_attention(in[0], in[1], in[2]).y; },
       {{{0, 3}, {4, 3}, {4, 2}}, {{2, 3}, {4, 3}, {4, 0}}, {{0, 2, 3}, {0, 4, 3}, {0, 4, 2}}}},
      of_one("causal_attention", {1, 3, 6}, x([](const Tensor& a) { return causal_attention_packed(a, 2); }),
             {{0, 3, 6}, {2, 0, 6}}),
  };
}

bool has(const Tensor& tensor, bool (*wanted)(double)) {
  for (const double value : tensor.to_vector()) {
    if (wanted(value)) return true;
  }
  return false;
}
bool is_nan(double value) { return std::isnan(value); }
bool is_not_finite(double value) { return !std::isfinite(value); }

// Leaves of an op, away from 0. With one element replaced in one of them.
Tensors leaves(const Op& op, const std::vector<Shape>& shapes) {
  Tensors in;
  for (const Shape& shape : shapes) in.push_back(uniform64(shape, op.low, op.high, in.size() + 1));
  return in;
}
Tensors leaves_with(const Op& op, std::size_t input, std::int64_t element, double value, DType dtype) {
  Tensors in = leaves(op, op.inputs);
  std::vector<double> values = in[input].to_vector();
  values[static_cast<std::size_t>(element)] = value;
  in[input] = Tensor::of(values, op.inputs[input], {.dtype = float64, .requires_grad = true});
  for (Tensor& tensor : in) tensor = to(tensor.detach(), dtype).requires_grad_();
  return in;
}

TEST_CASE("all ops: the table has every file with an op in it") {
  std::set<std::string> tabled;
  for (const Op& op : all_ops()) tabled.insert(op.file);
  const std::filesystem::path folder = std::filesystem::path(PRENORM_SOURCE_DIR) / "autograd" / "ops";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".cpp" || get(entry.path()).find("apply_op<") == std::string::npos) continue;
    CHECK_MESSAGE(tabled.contains(entry.path().stem().string()), entry.path().string());
  }
}

TEST_CASE("all ops: tensors without elements, forward and backward") {
  for (const Op& op : all_ops()) {
    CAPTURE(op.file);
    for (const std::vector<Shape>& shapes : op.empty) {
      for (const Shape& shape : shapes) CAPTURE(shape);
      const Tensors in = leaves(op, shapes);
      const Tensor y = op.f(in);
      y.backward(ones(y.shape(), y.dtype()));
      for (const Tensor& leaf : in) {
        REQUIRE(leaf.grad().defined());
        CHECK(leaf.grad().shape() == leaf.shape());
      }
    }
  }
}

// Puts `value` in each place of the op's inputs, one at a time, and looks for it in the output.
template <class Is>
void expect_shown(const Op& op, double value, Is is) {
  CAPTURE(op.file);
  for (const DType dtype : {float64, float32}) {
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      for (std::int64_t e = 0; e < numel(op.inputs[i]); ++e) {
        CAPTURE(i);
        CAPTURE(e);
        CHECK(has(op.f(leaves_with(op, i, e, value, dtype)), is));
      }
    }
  }
}

TEST_CASE("all ops: a NaN anywhere in the input shows in the output") {
  for (const Op& op : all_ops()) expect_shown(op, kNan, is_nan);
}

TEST_CASE("all ops: an infinity anywhere in the input shows in the output, but where there is a limit") {
  for (const Op& op : all_ops()) {
    if (op.infinity != Infinity::has_limit) expect_shown(op, kInfinity, is_not_finite);
  }
}

TEST_CASE("all ops: the limits at infinity") {
  const Tensor both = Tensor::of({-kInfinity, kInfinity}, {.dtype = float64});
  expect_close(exp(both), std::vector<double>{0, kInfinity});
  expect_close(relu(both), std::vector<double>{0, kInfinity});
  expect_close(sigmoid(both), std::vector<double>{0, 1});
  expect_close(tanh(both), std::vector<double>{-1, 1});
  expect_close(1.0 / both, std::vector<double>{0, 0});
  expect_close(both / 2.0, std::vector<double>{-kInfinity, kInfinity});
  expect_close(pow(Tensor::of({0.5, 2}, {.dtype = float64}), full({2}, kInfinity, float64)),
               std::vector<double>{0, kInfinity});
  expect_close(max(both), std::vector<double>{kInfinity});
  CHECK(gelu(both).to_vector()[1] == kInfinity);
}

TEST_CASE("all ops: a NaN or infinity in the cotangent shows in a gradient") {
  for (const Op& op : all_ops()) {
    CAPTURE(op.file);
    for (const double value : {kNan, kInfinity}) {
      const Tensors in = leaves(op, op.inputs);
      const Tensor y = op.f(in);
      y.backward(full(y.shape(), value, y.dtype()));
      bool seen = false;
      for (const Tensor& leaf : in) seen = seen || (leaf.grad().defined() && has(leaf.grad(), is_not_finite));
      CHECK(seen);
    }
  }
}

TEST_CASE("all ops: shapes that overflow are refused before memory is asked for") {
  const std::int64_t big = std::int64_t{1} << 33;
  const Tensor one = ones({1, 1}), column = expand(one, {big, 1}), row = expand(one, {1, big});
  const memory::Stats before = memory::stats();
  const auto refused = [](const auto& f) { expect_error(f, {"int64"}); };
  refused([&] { column + row; });
  refused([&] { mul(column, row); });
  refused([&] { where(mask({1, 1}, true), column, row); });
  refused([&] { eq(column, row); });
  refused([&] { matmul(column, row); });
  refused([&] { linear(column, column); });
  refused([&] { scaled_dot_product_attention(column, column, column); });
  refused([&] { embedding(expand(zeros({1, 1}, int64), {big, 1}), row); });
  refused([&] { expand(column, {big, big}); });
  refused([&] { zeros({big, big}); });
  refused([&] { concat({expand(one, {1, big, big / 8}), expand(one, {1, big, big / 8})}, 1); });
  refused([&] { unsqueeze(expand(one, {big, 1}), 0) + expand(one, {1, 1, big}); });
  CHECK(memory::stats().live == before.live);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Sanitizers end the process instead of letting an allocation fail.
TEST_CASE("all ops: without memory an op is an error, and what was there goes on") {
  const std::int64_t big = std::int64_t{1} << 28;
  const Tensor x = uniform64({1, 1}, 1, 2), huge = expand(x, {big, big});
  for (int attempt = 0; attempt < 2; ++attempt) {
    expect_error([&] { exp(huge); }, {"no memory for 576460752303423488 bytes"});
    expect_error([&] { huge + huge; }, {"no memory"});
    expect_error([&] { softmax(huge); }, {"no memory"});
    expect_error([&] { clone(huge); }, {"no memory"});
  }
  // In backward: the gradient of sum is a view, that of the square is not.
  const Tensor y = sum(x * x);
  y.backward();
  CHECK(x.grad().defined());
  CHECK(GradMode::enabled());
}
#endif

}  // namespace
}  // namespace prenorm
