#include "nn/gradcheck.h"

#include <cstring>

#include "autograd/node.h"
#include "autograd/ops.h"
#include "nn/attention.h"
#include "nn/batch_norm.h"
#include "nn/dropout.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/tiny_lm.h"
#include "support.h"

namespace prenorm {
namespace {

void expect_right(const GradcheckReport& report) { CHECK_MESSAGE(report.passed, report.message); }

bool same_bits(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0;
}

nn::TinyLM small_model(bool tied = false) {
  return nn::TinyLM(5, {.d_model = 4, .n_heads = 2, .n_layers = 2, .max_len = 4, .expansion = 2, .tie_head = tied});
}

// y = x * gain, whose backward forgets the gain: right at a gain of ones.
struct ForgottenGain final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{
        .name = "forgotten_gain", .formula = "", .derivative = "", .reference = "", .file = ""};
    return info;
  }
  Tensors forward(const Tensors& in) const override { return {in[0] * in[1]}; }
  Saves saves() const override { return {.inputs = {0}}; }
  void backward(const Tensors& dy, GradientSink& dx) const override {
    if (dx.needs(0)) dx.add(0, dy[0]);
    if (dx.needs(1)) dx.add(1, sum_to(dy[0] * input(0), input_shape(1)));
  }
};

struct Gain : nn::Layer<Gain> {
  using Layer::Layer;
  Gain() : Layer("Gain") { add_parameter("gain", ones({3})); }
  Tensor forward(const Tensor& x) const { return apply_op<ForgottenGain>({x, parameter("gain")})[0]; }
};

struct Outer : nn::Layer<Outer> {
  using Layer::Layer;
  Outer() : Layer("Outer") {
    add_child("first", nn::Linear(3, 3));
    add_child("second", Gain());
  }
  Tensor forward(const Tensor& x) const { return child("second")(child("first")(x)); }
};

// Counts its calls in a buffer, and its output depends on the count.
struct Counter : nn::Layer<Counter> {
  using Layer::Layer;
  Counter() : Layer("Counter") { add_buffer("calls", zeros({})); }
  Tensor forward(const Tensor& x) const {
    add_(buffer("calls"), ones({}, x.dtype()));
    return x * prenorm::clone(buffer("calls"));
  }
};

TEST_CASE("a freshly built layer passes and is left alone") {
  const nn::LayerNorm layer(5);
  const Tensor x = randn({2, 3, 5}), before = clone(x);
  const Tensor gamma = layer.parameters()[0].tensor;
  expect_right(nn::gradcheck(layer, {x}));
  CHECK(same_bits(x, before));
  CHECK_FALSE(x.requires_grad());
  CHECK(layer.parameters()[0].tensor.is(gamma));
  CHECK(gamma.dtype() == float32);
  CHECK_FALSE(gamma.grad().defined());
  expect_close(gamma, std::vector<double>(5, 1.0));
}

TEST_CASE("every parameter and input is compared, by its path") {
  const nn::LayerFunction function = nn::layer_function(small_model(), {Tensor::of({1, 3}, {1, 2}, {.dtype = int64})});
  std::vector<std::string> paths;
  for (const NamedTensor& input : function.inputs) {
    paths.push_back(input.path);
    if (input.path == "input 0") continue;
    CHECK(input.tensor.dtype() == float64);
    CHECK(input.tensor.requires_grad());
  }
  CHECK(paths.front() == "tok.weight");
  CHECK(paths.back() == "input 0");
  CHECK(function.inputs.back().tensor.dtype() == int64);
  CHECK(std::count(paths.begin(), paths.end(), "blocks.1.attn.qkv.bias") == 1);
  CHECK(paths.size() == small_model().parameters().size() + 1);
}

TEST_CASE("noise brings out what a gain of ones would hide, and the message names the path") {
  const GradcheckReport report = nn::gradcheck(Outer(), {randn({4, 3})});
  CHECK_FALSE(report.passed);
  bool named = false;
  for (const GradcheckFailure& failure : report.failures) named = named || failure.input == "first.weight";
  CHECK(named);
  CHECK(report.message.find("input 0") != std::string::npos);
}

TEST_CASE("models, their children, tied and frozen parameters") {
  const Tensor ids = Tensor::of({1, 3, 3, 0, 4, 2}, {2, 3}, {.dtype = int64});
  const nn::TinyLM model = small_model();
  model.requires_grad_(false, "blocks.0");
  expect_right(nn::gradcheck(model, {ids}));
  expect_right(gradcheck(model.blocks(0), {randn({2, 3, 4})}));
  for (const auto& [path, parameter] : model.parameters()) {
    CHECK(parameter.requires_grad() == !path.starts_with("blocks.0."));
  }

  const nn::TinyLM tied = small_model(true);
  expect_right(nn::gradcheck(tied, {ids}));
  CHECK(nn::layer_function(tied, {ids}).inputs.size() == tied.parameters().size() + 1);

  const nn::Module handle = nn::Linear(3, 2);
  expect_right(nn::gradcheck(handle, {randn({4, 3})}));
}

TEST_CASE("dropout draws the same mask each time, and the generator is left where it was") {
  manual_seed(5);
  const nn::MultiHeadedAttention layer(2, 4, 0.5);
  const Tensor x = randn({2, 3, 4});
  const Tensor state = default_generator().state();
  expect_right(nn::gradcheck(layer, {x, x, x}));
  expect_right(nn::gradcheck(nn::Dropout(0.4), {x}));
  CHECK(same_bits(default_generator().state(), state));
  CHECK_FALSE(layer.weights().defined());

  layer.eval();
  expect_right(nn::gradcheck(layer, {x, x, x}));

  const auto throwing = [](const nn::Dropout& dropout, const Tensors& in) -> Tensor {
    dropout(in[0]);
    throw std::runtime_error("no more");
  };
  CHECK_THROWS_WITH(nn::gradcheck(nn::Dropout(0.4), {x}, throwing), "no more");
  CHECK(same_bits(default_generator().state(), state));
}

TEST_CASE("other arguments, several outputs, absent inputs") {
  const nn::MultiHeadedAttention layer(2, 4, 0);
  const Tensor q = randn({2, 3, 4}), k = randn({2, 3, 4}), mask = nn::subsequent_mask(3);
  expect_right(nn::gradcheck(layer, {q, k, k, mask}));
  expect_right(nn::gradcheck(layer, {q, k, k, Tensor()}, {.order = 1}));
  expect_right(nn::gradcheck(layer, {q, k}, [mask](const auto& mha, const Tensors& in) {
    return Tensors{mha(in[0], in[1], in[1], mask), in[1] * in[1]};
  }));
  expect_error([&] { nn::gradcheck(layer, {q, k}); }, {"MultiHeadedAttention", "2 tensors"});
  expect_error([&] { nn::gradcheck(layer, Tensors(9, q)); }, {"MultiHeadedAttention", "9 tensors"});
}

TEST_CASE("inputs keep their layout") {
  const Tensor x = transpose(randn({3, 2, 4}), 0, 2), expanded = expand(randn({4}), {3, 4});
  const nn::LayerFunction function = nn::layer_function(nn::LayerNorm(3), {x, expanded});
  const Tensor copy = function.inputs[2].tensor;
  CHECK(copy.strides() == x.strides());
  CHECK(same_bits(copy, x));
  CHECK(function.inputs[3].tensor.is_contiguous());  // or one element would stand in several places
  expect_right(nn::gradcheck(nn::LayerNorm(3), {x}));
  expect_right(nn::gradcheck(nn::LayerNorm(4), {expanded}));
}

TEST_CASE("buffers start from the same values in each evaluation") {
  const nn::BatchNorm1d layer(3);
  expect_right(nn::gradcheck(layer, {randn({5, 3})}));
  expect_close(layer.buffers()[0].tensor, {0, 0, 0});
  layer(randn({5, 3}));
  layer.eval();
  expect_right(nn::gradcheck(layer, {randn({5, 3})}));
  expect_right(nn::gradcheck(Counter(), {randn({3})}));
}

}  // namespace
}  // namespace prenorm
