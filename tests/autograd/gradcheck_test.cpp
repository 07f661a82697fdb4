#include "autograd/gradcheck.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/node.h"
#include "autograd/ops.h"
#include "tests/support.h"

namespace prenorm {
namespace {

Tensor constant64(const Shape& shape, double value) { return full(shape, value, float64).requires_grad_(); }

// The identity with a backward of the test's choice. `plain` runs without, `with_graph` with create_graph.
struct Faulty final : Node {
  using Backward = std::function<Tensor(const Tensor& dy)>;
  Faulty(Backward plain, Backward with_graph) : plain(std::move(plain)), with_graph(std::move(with_graph)) {}
  const Backward plain, with_graph;

  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "faulty", .formula = "", .derivative = "", .reference = "", .file = ""};
    return info;
  }
  Tensors forward(const Tensors& in) const override { return {clone(in[0])}; }
  void backward(const Tensors& dy, GradientSink& dx) const override {
    const Tensor gradient = (GradMode::enabled() ? with_graph : plain)(dy[0]);
    if (gradient.defined()) dx.add(0, gradient);
  }
};
Tensor faulty(const Tensor& x, Faulty::Backward plain, Faulty::Backward with_graph) {
  return apply_op<Faulty>({x}, std::move(plain), std::move(with_graph))[0];
}
Tensor faulty(const Tensor& x, const Faulty::Backward& backward) { return faulty(x, backward, backward); }
Tensor right(const Tensor& dy) { return dy; }

// The report on exp(x) with this backward of its identity.
GradcheckReport report_on(const Tensor& x, const Faulty::Backward& backward, const GradcheckOptions& options = {}) {
  return gradcheck([&](const Tensors& in) { return exp(faulty(in[0], backward)); }, NamedTensors{{"x", x}}, options);
}

void expect_failure(const GradcheckReport& report, GradcheckReason reason,
                    std::initializer_list<std::string_view> parts) {
  CHECK_FALSE(report.passed);
  REQUIRE_FALSE(report.failures.empty());
  CHECK_MESSAGE(report.failures[0].reason == reason, report.message);
  for (std::string_view part : parts) {
    CHECK_MESSAGE(report.message.find(part) != std::string::npos, "\"", std::string(part), "\" is not in \"",
                  report.message, "\"");
  }
}

// With the sign of 0.
std::vector<std::uint64_t> bits(const std::vector<double>& values) {
  std::vector<std::uint64_t> out;
  out.reserve(values.size());
  for (double value : values) out.push_back(std::bit_cast<std::uint64_t>(value));
  return out;
}

// Draws from the default generator.
Tensor noisy(const Tensor& x) { return x + randn(x.shape(), {.dtype = x.dtype()}); }

}  // namespace

TEST_CASE("gradcheck: right derivatives pass, and the report says how well") {
  const Tensor x = randn64({3, 4}), w = randn64({4}, 1);
  const GradcheckReport report =
      gradcheck([](const Tensors& in) { return tanh(in[0] * in[1]); }, NamedTensors{{"x", x}, {"w", w}});
  CHECK_MESSAGE(report.passed, report.message);
  CHECK(report.failures.empty());
  CHECK(report.worst_first < 1e-7);
  CHECK(report.worst_second < 1e-7);
  // Order 1: 16 elements for random cotangents and 12 rows of the Jacobian. Order 2: 16, and 12 cotangents.
  CHECK(report.elements == 16 * 13 + 16 + 12);
  CHECK(report.message.find("right: 236 elements compared") != std::string::npos);
  const GradcheckReport first = gradcheck([](const Tensors& in) { return tanh(in[0]); }, {x}, {.order = 1});
  CHECK(first.elements == 12 * 13);
  CHECK(first.worst_second == 0);
}

TEST_CASE("gradcheck: several outputs, integer outputs, constants and absent inputs") {
  const Tensor x = randn64({2, 6});
  const Tensor ids = Tensor::of(std::vector<std::int64_t>{1, 0}, {2}, {.dtype = int64});
  const auto f = [](const Tensors& in) {
    Tensors parts = split(in[0] * in[0], {2, 4}, 1);
    parts.push_back(in[1]);
    return parts;
  };
  expect_gradients(f, NamedTensors{{"x", x}, {"ids", ids}, {"bias", Tensor()}});
}

TEST_CASE("gradcheck: views are leaves as good as others") {
  const Tensor base = randn64({6, 8});
  const auto f = [](const Tensors& in) { return exp(in[0]) * in[1]; };
  const Tensor transposed = transpose(base.detach(), 0, 1).requires_grad_();
  expect_gradients(f, {transposed, randn64({6}, 1)});
  // Two slices of one storage, with gaps, that share no element.
  const Tensor even = slice(base.detach(), 1, 0, 8, 2).requires_grad_();
  const Tensor odd = slice(base.detach(), 1, 1, 8, 2).requires_grad_();
  expect_gradients(f, {even, odd});
}

TEST_CASE("gradcheck: works under NoGrad, and leaves the default generator alone") {
  manual_seed(3);
  const Tensor before = default_generator().state();
  const NoGrad no_grad;
  expect_gradients([](const Tensors& in) { return sin(in[0]); }, {randn64({3})});
  CHECK(default_generator().state().to_vector<std::int64_t>() == before.to_vector<std::int64_t>());
  CHECK_FALSE(GradMode::enabled());
}

TEST_CASE("gradcheck: leaves inputs as they were, also when the function throws") {
  const Tensor x = Tensor::of({-0.0, 1.5, 3e-320, 7.25}, {2, 2}, {.dtype = float64, .requires_grad = true});
  const Tensor w = randn64({2}, 1);
  x.set_grad(full({2, 2}, 5, float64));
  const std::vector<double> x_before = x.to_vector(), w_before = w.to_vector();
  const auto unchanged = [&] {
    return bits(x.to_vector()) == bits(x_before) && w.to_vector() == w_before && x.requires_grad() &&
           w.requires_grad() && x.grad().to_vector() == std::vector<double>(4, 5.0) && !w.grad().defined();
  };
  const GradcheckReport report = gradcheck([](const Tensors& in) { return exp(in[0]) * in[1]; }, {x, w});
  CHECK(report.passed);
  CHECK(unchanged());
  for (int last_good_call : {0, 1, 2, 5, 10, 15, 20, 30, 40}) {
    int calls = 0;
    const auto f = [&](const Tensors& in) {
      check(calls++ < last_good_call, "no more");
      return exp(in[0]) * in[1];
    };
    expect_error([&] { gradcheck(f, {x, w}); }, "no more");
    CHECK(unchanged());
    CHECK(GradMode::enabled());
  }
}

TEST_CASE("gradcheck: refuses what it cannot judge") {
  const Tensor x = randn64({2, 3});
  const auto square = [](const Tensors& in) { return in[0] * in[0]; };

  SUBCASE("random functions") {
    expect_error([&] { gradcheck([](const Tensors& in) { return noisy(in[0]); }, {x}); },
                 {"gradcheck", "not deterministic", "output 0 at [0, 0]", "dropout mask"});
    int calls = 0;
    const auto grows = [&](const Tensors& in) { return Tensors(static_cast<std::size_t>(++calls), in[0] * 2.0); };
    expect_error([&] { gradcheck(grows, {x}); }, {"not deterministic", "1 outputs, then 2"});
  }
  SUBCASE("overlapping inputs") {
    const NamedTensors twice{{"a", x}, {"b", x}};
    expect_error([&] { gradcheck([](const Tensors& in) { return in[0] * in[1]; }, twice); },
                 {"inputs a [2, 3] and b [2, 3] overlap in memory", "clone()"});
    const NamedTensors alias{{"a", x}, {"same values", slice(x.detach(), 0, 1, 2)}};
    expect_error([&] { gradcheck([](const Tensors& in) { return in[0] * in[1]; }, alias); },
                 {"a [2, 3] and same values [1, 3] overlap"});
    const Tensor row = randn64({3});
    const NamedTensors expanded{{"rows", expand(row.detach(), {2, 3}).requires_grad_()}};
    expect_error([&] { gradcheck(square, expanded); }, {"elements of the input rows [2, 3] overlap in memory"});
    // A constant may repeat itself.
    expect_gradients([](const Tensors& in) { return in[0] * in[1]; }, {x, expand(row.detach(), {2, 3})});
  }
  SUBCASE("float32, computed inputs, none to check") {
    const Tensor single = ones({2}).requires_grad_();
    expect_error([&] { gradcheck(square, NamedTensors{{"w", single}}); }, {"w [2] is float32", "allow_float32"});
    expect_error([&] { gradcheck(square, {x * 2.0}); }, {"input 0 [2, 3]", "detach()"});
    expect_error([&] { gradcheck(square, {x.detach()}); }, {"none of the 1 inputs requires grad", "requires_grad_()"});
    expect_error([&] { gradcheck(square, Tensors{}); }, "none of the 0 inputs");
  }
  SUBCASE("useless outputs") {
    expect_error([&] { gradcheck([](const Tensors&) { return Tensor(); }, {x}); },
                 "output 0 of the function is undefined");
    expect_error([&] { gradcheck([](const Tensors& in) { return argmax(in[0]); }, {x}); },
                 "none of the 1 outputs of the function is of a float type");
  }
  SUBCASE("inputs changed by the function") {
    const std::vector<double> before = x.to_vector();
    const auto writes = [](const Tensors& in) {
      const NoGrad no_grad;
      return clone(add_(in[0], ones_like(in[0])));
    };
    expect_error([&] { gradcheck(writes, NamedTensors{{"state", x}}); }, {"changed its input state [2, 3]", "clone()"});
    CHECK(x.to_vector() == before);
  }
  SUBCASE("options without sense") {
    expect_error([&] { gradcheck(square, {x}, {.order = 3}); }, "order is 1 or 2, got 3");
    expect_error([&] { gradcheck(square, {x}, {.step = 0}); }, "step is positive, got 0");
  }
}

TEST_CASE("gradcheck: a failure names the input, the place, the values and the count") {
  const Tensor x = randn64({2, 3});
  const Tensor mask = Tensor::of({1, 1, 1, 1, 1, 1.01}, {2, 3}, {.dtype = float64});
  const GradcheckReport report = report_on(x, [&](const Tensor& dy) { return dy * mask; });
  expect_failure(report, GradcheckReason::few_elements,
                 {"the first derivative with respect to x [2, 3] at [1, 2]: analytic ", ", numeric ",
                  ", relative error 0.0099 (at most 1e-06), step ", "1 of 6 elements wrong",
                  "likely reason: a few elements: all others are right, there analytic = 1.01 * numeric"});
  const GradcheckFailure& failure = report.failures[0];
  CHECK(failure.input == "x");
  CHECK(failure.order == 1);
  CHECK(failure.coordinate == Shape{1, 2});
  CHECK(failure.analytic / failure.numeric == doctest::Approx(1.01));
  CHECK(failure.relative_error == doctest::Approx(0.01 / 1.01));
  CHECK(failure.wrong == 1);
  CHECK(failure.total == 6);
  CHECK(failure.backward == GradcheckBackward::both);
  CHECK(report.worst_first == doctest::Approx(0.01 / 1.01));
}

TEST_CASE("gradcheck: likely reasons") {
  const Tensor x = randn64({3, 5});
  SUBCASE("sign") {
    const GradcheckReport report = report_on(x, [](const Tensor& dy) { return -dy; });
    expect_failure(report, GradcheckReason::sign, {"15 of 15 elements wrong", "the sign: analytic = -numeric"});
    CHECK(report.failures[0].ratio == doctest::Approx(-1));
  }
  SUBCASE("factor") {
    const GradcheckReport report = report_on(x, [](const Tensor& dy) { return dy * 1.01; });
    expect_failure(report, GradcheckReason::factor, {"a factor: analytic = 1.01 * numeric"});
    CHECK(report.failures[0].ratio == doctest::Approx(1.01));
    expect_failure(report_on(x, [](const Tensor& dy) { return dy * 2.0; }), GradcheckReason::factor,
                   {"= 2 * numeric (counted twice?)"});
    expect_failure(report_on(x, [](const Tensor& dy) { return dy * 5.0; }), GradcheckReason::factor,
                   {"(a division by 5 missing?)"});
    expect_failure(report_on(x, [](const Tensor& dy) { return dy / 15.0; }), GradcheckReason::factor,
                   {"(divided by 15 too often?)"});
    expect_failure(report_on(x, [](const Tensor& dy) { return dy * 5.0 / 4.0; }), GradcheckReason::factor,
                   {"(n and n - 1 exchanged, n = 5?)"});
    expect_failure(report_on(x, [](const Tensor& dy) { return dy * std::sqrt(5.0); }), GradcheckReason::factor,
                   {"(a factor sqrt(5)?)"});
    expect_failure(report_on(x, [](const Tensor& dy) { return abs(dy); }), GradcheckReason::factor,
                   {"a factor at these elements: analytic = -1 * numeric"});
  }
  SUBCASE("mask") {
    expect_failure(report_on(x, zeros_like), GradcheckReason::mask, {"backward gives zero"});
    const Tensor hidden = gt(x.detach(), zeros_like(x));
    expect_failure(report_on(x, [&](const Tensor& dy) { return masked_fill(dy, hidden, 0); }), GradcheckReason::mask,
                   {"a mask: at each wrong element either analytic or numeric is zero"});
    // Outputs of -1e9 that never move do not count as rounding.
    const auto half = [&](const Tensors& in) {
      return masked_fill(faulty(in[0], [&](const Tensor& dy) { return where(hidden, ones_like(dy), dy); }), hidden,
                         -1e9);
    };
    expect_failure(gradcheck(half, {x}), GradcheckReason::mask, {"a mask"});
  }
  SUBCASE("transposed") {
    const Tensor square = randn64({3, 3});
    expect_failure(report_on(square, [](const Tensor& dy) { return transpose(dy, 0, 1); }), GradcheckReason::transposed,
                   {"transposed: analytic is numeric with the last two dimensions swapped"});
    expect_failure(report_on(x,
                             [](const Tensor& dy) {
                               return reshape(transpose(dy, 0, 1), {3, 5});
                             }),
                   GradcheckReason::transposed, {"transposed"});
  }
  SUBCASE("a mean left out") {
    expect_failure(report_on(x, [](const Tensor& dy) { return dy - mean(dy, {-1}, true); }),
                   GradcheckReason::missing_in_row, {"the error is constant along dimension 1"});
    expect_failure(report_on(x, [](const Tensor& dy) { return dy + sum(dy, {0}, true); }),
                   GradcheckReason::missing_in_row, {"the error is constant along dimension 0"});
  }
  SUBCASE("the derivative of a spread left out") {
    const auto f = [](const Tensors& in) {
      const Tensor d = in[0] - mean(in[0], {-1}, true);
      return d / std(in[0], {-1}, 1, true).detach();
    };
    expect_failure(gradcheck(f, {x}), GradcheckReason::missing_along_x, {"a multiple of x - mean(x) in each row"});
  }
  SUBCASE("undefined") {
    const auto cut = [](const Tensors& in) { return in[0] * 2.0 + exp(in[1].detach()); };
    expect_failure(gradcheck(cut, NamedTensors{{"a", x}, {"b", randn64({5}, 1)}}), GradcheckReason::undefined,
                   {"b [5]", "5 of 5", "an undefined gradient: no path in the graph"});
    const auto all_cut = [](const Tensors& in) { return in[0].detach() * 2.0; };
    expect_failure(gradcheck(all_cut, {x}), GradcheckReason::undefined, {"input 0 [3, 5]"});
  }
  SUBCASE("not finite") {
    const auto nan = [](const Tensor& dy) { return dy * NAN; };
    expect_failure(report_on(x, nan), GradcheckReason::not_finite, {"not finite"});
    const auto outside = [](const Tensors& in) { return log(in[0]); };
    expect_failure(gradcheck(outside, {constant64({2}, -1)}), GradcheckReason::not_finite, {"not finite"});
  }
  SUBCASE("none") {
    expect_failure(report_on(x, [](const Tensor& dy) { return dy * sin(dy); }), GradcheckReason::unknown,
                   {"unknown: no pattern"});
  }
}

TEST_CASE("gradcheck: both backwards of an op are checked, each against differences") {
  const Tensor x = randn64({2, 3});
  const auto wrong = [](const Tensor& dy) { return dy * 1.5; };
  const auto only_plain = [&](const Tensors& in) { return exp(faulty(in[0], wrong, right)); };
  const auto only_graph = [&](const Tensors& in) { return exp(faulty(in[0], right, wrong)); };
  expect_failure(gradcheck(only_plain, {x}), GradcheckReason::factor, {"without create_graph only"});
  expect_failure(gradcheck(only_graph, {x}), GradcheckReason::factor, {"with create_graph only"});
  // A difference between them that is too small for differences.
  const auto slightly = [](const Tensor& dy) { return dy * (1 + 1e-7); };
  const auto other_graph = [&](const Tensors& in) { return exp(faulty(in[0], right, slightly)); };
  expect_failure(gradcheck(other_graph, {x}), GradcheckReason::disagreement,
                 {"backward gives other gradients with create_graph", "6 of 6 elements wrong"});
}

TEST_CASE("gradcheck: all ways to run backward agree") {
  const Tensor x = randn64({2, 3});
  SUBCASE("again") {
    Generator generator(1);
    const auto random = [&](const Tensor& dy) { return dy * (1 + 1e-9 * generator.uniform()); };
    expect_failure(report_on(x, random), GradcheckReason::disagreement, {"run twice, backward gives different bits"});
  }
  SUBCASE("strides") {
    const auto flat = [](const Tensor& dy) {  // reads the memory in order, whatever the strides
      return clone(dy.view(dy.shape(), contiguous_strides(dy.shape())));
    };
    const auto f = [&](const Tensors& in) { return faulty(in[0], flat); };
    expect_failure(gradcheck(f, {x}), GradcheckReason::disagreement, {"a cotangent that is not contiguous"});
  }
  SUBCASE("one input") {
    struct Product final : Node {
      const OpInfo& info() const override {
        static constexpr OpInfo info{.name = "product", .formula = "", .derivative = "", .reference = "", .file = ""};
        return info;
      }
      Tensors forward(const Tensors& in) const override { return {in[0] * in[1]}; }
      Saves saves() const override { return {.inputs = {0, 1}}; }
      void backward(const Tensors& dy, GradientSink& dx) const override {
        if (dx.needs(0)) dx.add(0, dy[0] * input(1));
        if (dx.needs(1)) dx.add(1, dx.needs(0) ? dy[0] * input(0) : dy[0]);
      }
    };
    const auto f = [](const Tensors& in) { return apply_op<Product>({in[0], in[1]})[0]; };
    expect_failure(gradcheck(f, {x, randn64({2, 3}, 1)}), GradcheckReason::disagreement,
                   {"input 1", "no other input requires grad"});
  }
  SUBCASE("two uses") {
    struct Twice final : Node {
      const OpInfo& info() const override {
        static constexpr OpInfo info{.name = "twice", .formula = "", .derivative = "", .reference = "", .file = ""};
        return info;
      }
      Tensors forward(const Tensors& in) const override { return {in[0] * 2.0}; }
      void backward(const Tensors& dy, GradientSink& dx) const override {
        if (GradMode::enabled()) return dx.add(0, dy[0] * 2.0);
        copy_(dx.accumulator(0).tensor, dy[0] * 2.0);  // forgets what is there
      }
    };
    const auto f = [](const Tensors& in) { return apply_op<Twice>({in[0]})[0]; };
    expect_failure(gradcheck(f, {x}), GradcheckReason::disagreement, {"two uses do not add up"});
  }
}

TEST_CASE("gradcheck: order 2 finds what order 1 cannot see") {
  const Tensor x = uniform64({4}, 1, 2);
  // The right gradient 3 x^2 dy, with x as a constant: x has no second derivative then.
  struct Cube final : Node {
    const OpInfo& info() const override {
      static constexpr OpInfo info{.name = "cube", .formula = "", .derivative = "", .reference = "", .file = ""};
      return info;
    }
    Tensors forward(const Tensors& in) const override { return {in[0] * in[0] * in[0]}; }
    Saves saves() const override { return {.inputs = {0}}; }
    void backward(const Tensors& dy, GradientSink& dx) const override {
      const Tensor x = input(0).detach();
      dx.add(0, dy[0] * (3.0 * (x * x)));
    }
  };
  const auto f = [](const Tensors& in) { return apply_op<Cube>({in[0]})[0]; };
  CHECK(gradcheck(f, {x}, {.order = 1}).passed);
  const GradcheckReport report = gradcheck(f, NamedTensors{{"x", x}});
  expect_failure(report, GradcheckReason::undefined, {"the second derivative with respect to x [4]", "at most 0.0001"});
  CHECK(report.failures[0].order == 2);
  // And the cotangent as a constant.
  const auto g = [](const Tensors& in) {
    return sin(faulty(in[0], [](const Tensor& dy) { return dy.detach() * 1.0; }));
  };
  expect_failure(gradcheck(g, {x}), GradcheckReason::undefined, {"with respect to cotangent 0 [4]"});
}

TEST_CASE("gradcheck: tells a kink from a wrong derivative") {
  const Tensor x = Tensor::of({-1, 0, 2}, {3}, {.dtype = float64, .requires_grad = true});
  const auto f = [](const Tensors& in) { return relu(in[0]); };
  const GradcheckReport report = gradcheck(f, NamedTensors{{"x", x}});
  expect_failure(
      report, GradcheckReason::kink,
      {"x [3] at [1]: analytic 0", "1 of 3 elements wrong", "a kink: the left derivative is 0, the right one"});
  CHECK(report.failures[0].left == 0);
  CHECK(report.failures[0].right != 0);
  expect_gradients(f, {x}, {.allow_kinks = true});
  // With kinks allowed a value outside of both sides is still wrong.
  const auto wrong = [](const Tensors& in) { return relu(faulty(in[0], [](const Tensor& dy) { return dy - 1.0; })); };
  CHECK_FALSE(gradcheck(wrong, {x}, {.allow_kinks = true}).passed);
  // A kink beside the point, nearer than the step, is none of its.
  const Tensor near = Tensor::of({1e-7, -3e-8}, {2}, {.dtype = float64, .requires_grad = true});
  expect_gradients(f, {near});
  expect_failure(gradcheck(f, {near}, {.adapt_step = false}), GradcheckReason::step_too_large, {"step too large"});
}

TEST_CASE("gradcheck: shrinks the step where derivatives are huge") {
  const Tensor gamma = randn64({8}, 1), beta = randn64({8}, 2);
  const auto f = [](const Tensors& in) { return layer_norm_std(in[0], in[1], in[2], 1e-6); };
  for (double value : {0.0, 7.1, 1000.1}) {
    const Tensor x = constant64({2, 8}, value);
    const NamedTensors inputs{{"x", x}, {"a_2", gamma}, {"b_2", beta}};
    const GradcheckReport report = gradcheck(f, inputs, {.order = 1});  // there is no second derivative
    CHECK_MESSAGE(report.passed, report.message);
    CHECK(report.smallest_step < 1e-8);
    CHECK(report.message.find("steps down to ") != std::string::npos);
    expect_failure(gradcheck(f, inputs, {.order = 1, .adapt_step = false}), GradcheckReason::step_too_large,
                   {"x [2, 8]", "step too large: a smaller one gives the analytic value"});
    // What is wrong stays wrong.
    const auto wrong = [&](const Tensors& in) {
      return f({faulty(in[0], [](const Tensor& dy) { return dy * 1.01; }), in[1], in[2]});
    };
    CHECK_FALSE(gradcheck(wrong, inputs, {.order = 1}).passed);
  }
  // Nearly constant rows, second derivatives included.
  for (double spread : {1e-2, 1e-3, 1e-4}) {
    expect_gradients(f, {randn64({2, 8}, 3, 5, spread), gamma, beta});
  }
}

TEST_CASE("gradcheck: grows the step where rounding hides the derivative") {
  double offset = 1e6;
  const auto f = [&](const Tensors& in) { return in[0] * in[0] + offset; };
  const Tensor x = uniform64({3}, 1, 2);
  expect_gradients(f, {x}, {.order = 1});
  expect_failure(gradcheck(f, {x}, {.order = 1, .adapt_step = false}), GradcheckReason::rounding, {"rounding"});
  // Where no step helps it is not called wrong.
  offset = 1e10;
  expect_failure(gradcheck(f, {x}, {.order = 1}), GradcheckReason::rounding, {"rounding: "});
}

TEST_CASE("gradcheck: says when it proves nothing") {
  const auto f = [](const Tensors& in) { return sum(layer_norm(in[0])); };
  const Tensor x = randn64({3, 6});
  expect_failure(gradcheck(f, {x}), GradcheckReason::vacuous, {"vacuous", "proves nothing"});
  expect_gradients(f, {x}, {.allow_vacuous = true});
  // One gradient that is not zero is enough; a true zero beside it is judged by its size.
  const auto with_offset = [](const Tensors& in) { return sum(layer_norm(in[0])) + in[1]; };
  expect_gradients(with_offset, {x, Tensor::scalar(2, {.dtype = float64, .requires_grad = true})});
  // Nothing to compare.
  const Tensor empty = zeros({0, 3}, float64).requires_grad_();
  const auto exponential = [](const Tensors& in) { return exp(in[0]); };
  expect_failure(gradcheck(exponential, {empty}), GradcheckReason::vacuous, {"vacuous"});
  expect_gradients(exponential, {empty}, {.allow_vacuous = true});
}

TEST_CASE("gradcheck: float32 on demand, coarsely") {
  const Tensor x = Tensor::of({0.3, -0.7, 1.1, 0.2}, {2, 2}, {.dtype = float32, .requires_grad = true});
  const auto f = [](const Tensors& in) { return tanh(in[0]); };
  expect_gradients(f, {x}, {.allow_float32 = true});
  const auto wrong = [](const Tensors& in) { return tanh(faulty(in[0], [](const Tensor& dy) { return dy * 1.1; })); };
  expect_failure(gradcheck(wrong, {x}, {.allow_float32 = true}), GradcheckReason::factor, {"at most 0.02"});
}

TEST_CASE("gradcheck: large inputs are compared along random directions") {
  const Tensor x = randn64({40, 50}), w = randn64({50}, 1), b = randn64({4}, 2);
  const auto f = [](const Tensors& in) { return layer_norm(in[0], in[1]) * sum(in[2]); };
  const GradcheckReport report = gradcheck(f, {x, w, b}, {.order = 1, .directions = 3, .samples = 5});
  CHECK_MESSAGE(report.passed, report.message);
  CHECK(report.elements == 8 + 8 + 4);
  CHECK(report.worst_first < 1e-7);

  SUBCASE("one wrong element of 2,000 is found by halving") {
    std::vector<double> factors(2000, 1.0);
    factors[1234] = 1.01;
    const Tensor mask = Tensor::of(factors, {40, 50}, {.dtype = float64});
    const GradcheckReport wrong = report_on(x, [&](const Tensor& dy) { return dy * mask; });
    expect_failure(wrong, GradcheckReason::few_elements, {"x [40, 50] at [24, 34]", "1 of "});
  }
  SUBCASE("a wrong factor") {
    const GradcheckReport wrong = report_on(x, [](const Tensor& dy) { return dy * 0.98; });
    expect_failure(wrong, GradcheckReason::factor, {"0.98 * numeric"});
    CHECK(wrong.failures[0].wrong == wrong.failures[0].total);
    CHECK(wrong.failures[0].total > 200);
  }
}

TEST_CASE("gradcheck: several wrong inputs are all named, the worst first") {
  const auto f = [](const Tensors& in) {
    const auto times = [](double factor) { return [factor](const Tensor& dy) { return dy * factor; }; };
    return tanh(faulty(in[0], times(1.01)) + faulty(in[1], times(-1)) + in[2]);
  };
  const NamedTensors inputs{{"a", randn64({3})}, {"b", randn64({3}, 1)}, {"c", randn64({3}, 2)}};
  const GradcheckReport report = gradcheck(f, inputs);
  REQUIRE(report.failures.size() == 2);
  CHECK(report.failures[0].input == "b");
  CHECK(report.failures[1].input == "a");
  CHECK(report.message.find("respect to b [3]") < report.message.find("respect to a [3]"));
}

TEST_CASE("gradcheck: reasons have names") {
  CHECK(name(GradcheckReason::unknown) == "unknown");
  CHECK(name(GradcheckReason::step_too_large) == "step too large");
  CHECK(name(GradcheckReason::vacuous) == "vacuous");
}

TEST_CASE("sweep: the error over the step size is a V") {
  const Tensor x = randn64({4, 8}, 1);
  const auto f = [](const Tensors& in) { return layer_norm(in[0]); };
  const std::vector<double> before = x.to_vector();
  const std::vector<SweepPoint> points = sweep(f, {x});
  REQUIRE(points.size() == 11);
  double least = 1;
  for (std::size_t i = 0; i < points.size(); ++i) {
    CHECK(points[i].step == doctest::Approx(std::pow(10, -1.0 - static_cast<double>(i))));
    if (points[i].step > 0.9e-5 && points[i].step < 1.1e-3) least = std::min(least, points[i].worst);
  }
  CHECK(least <= 1e-8);
  CHECK(points[1].worst > 1e-5);  // truncation: falls with the step's square
  CHECK(points[1].worst / points[2].worst == doctest::Approx(100).epsilon(0.2));
  CHECK(points[10].worst > 1e-6);  // rounding: grows as the step shrinks
  CHECK(x.to_vector() == before);
}

}  // namespace prenorm
