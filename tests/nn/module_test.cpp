#include "nn/module.h"

#include <string>
#include <vector>

#include "autograd/node.h"
#include "autograd/random.h"
#include "nn/activation.h"
#include "nn/container.h"
#include "nn/dropout.h"
#include "nn/linear.h"
#include "support.h"

namespace prenorm::nn {
namespace {

using Doubles = std::vector<double>;
using Names = std::vector<std::string>;

Names paths(const NamedTensors& tensors) {
  Names paths;
  for (const NamedTensor& named : tensors) paths.push_back(named.path);
  return paths;
}
Tensor at(const NamedTensors& tensors, std::string_view path) {
  for (const NamedTensor& named : tensors) {
    if (named.path == path) return named.tensor;
  }
  return {};
}
std::vector<Doubles> values(const NamedTensors& tensors) {
  std::vector<Doubles> values;
  for (const NamedTensor& named : tensors) values.push_back(named.tensor.to_vector());
  return values;
}
bool same_generator(const Tensor& state) { return default_generator().state().to_vector() == state.to_vector(); }

// --- layers as a user writes them --------------------------------------------------------------------------------

struct ScaleOptions {
  double shift = 0;
};

class Scale : public Layer<Scale, ScaleOptions> {
 public:
  using Layer::Layer;
  explicit Scale(std::int64_t n, ScaleOptions options = {}) : Layer("Scale", options) {
    add_parameter("gain", ones({n}));
    add_buffer("calls", zeros({}));
    add_buffer("table", arange(3));
  }
  Tensor forward(const Tensor& x) const {
    set_buffer("calls", buffer("calls") + 1);
    return x * parameter("gain") + options().shift;
  }
  double calls() const { return buffer("calls").item(); }

  using Module::add_buffer;
  using Module::add_child;
  using Module::add_parameter;
  using Module::buffer;
  using Module::has_parameter;
  using Module::parameter;
  using Module::tie_parameter;
};

// Parameters before and after its children, and a child within a child.
class Model : public Layer<Model> {
 public:
  using Layer::Layer;
  Model() : Layer("Model") {
    add_parameter("first", zeros({2}));
    add_child("body", Sequential({Linear(2, 3), ReLU(), Linear(3, 2, {.bias = false})}));
    add_child("scale", Scale(2));
    add_parameter("last", ones({1}));
  }
  Tensor forward(const Tensor& x) const {
    return child("scale")(child("body")(x + parameter("first"))) * parameter("last");
  }
};

class Pair : public Layer<Pair> {
 public:
  using Layer::Layer;
  Pair() : Layer("Pair") {}
  Tensor forward(const Tensor& a, const Tensor& b) const { return a * b; }
};

const Names kModelParameters = {"first", "last", "body.0.weight", "body.0.bias", "body.2.weight", "scale.gain"};

// --- registry ----------------------------------------------------------------------------------------------------

TEST_CASE("parameters and buffers are listed by dotted path in order of registration, a module's own first") {
  const Model model;
  CHECK(paths(model.parameters()) == kModelParameters);
  CHECK(paths(model.buffers()) == Names{"scale.calls", "scale.table"});
  CHECK(model.parameter_count() == 2 + 1 + 6 + 3 + 6 + 2);
  CHECK(model.state_dict().size() == 8);
  for (const auto& [path, parameter] : model.parameters()) {
    CHECK(parameter.requires_grad());
    CHECK(parameter.is_leaf());
  }
  CHECK(model.type() == "Model");
  CHECK(model.name().empty());
  CHECK(Identity().parameters().empty());
}

TEST_CASE("names are unique within a module, not empty and without dots") {
  Scale scale(2);
  for (const std::string name : {"", "a.b"}) {
    expect_error([&] { scale.add_parameter(name, zeros({1})); }, {"Scale: '" + name + "' is no name for a parameter"});
    expect_error([&] { scale.add_buffer(name, zeros({1})); }, {"is no name for a buffer"});
    expect_error([&] { scale.add_child(name, ReLU()); }, {"is no name for a child"});
  }
  expect_error([&] { scale.add_parameter("gain", zeros({1})); }, "Scale: there is a parameter 'gain' already");
  expect_error([&] { scale.add_buffer("calls", zeros({1})); }, "there is a buffer 'calls' already");
  scale.add_child("child", ReLU());
  expect_error([&] { scale.add_child("child", ReLU()); }, "there is a child 'child' already");
  expect_error([&] { scale.parameter("none"); }, "Scale: there is no parameter 'none'");
  expect_error([&] { scale.buffer("none"); }, "there is no buffer 'none'");
  expect_error([&] { scale.add_parameter("ids", arange(3)); }, "only float32 and float64");
  CHECK(scale.has_parameter("gain"));
  CHECK_FALSE(scale.has_parameter("ids"));
}

TEST_CASE("a module is found by its dotted path") {
  const Model model;
  CHECK(model.at("body.0").type() == "Linear");
  CHECK(model.at("body").at("2").is(model.at("body.2")));
  CHECK(model.at("").is(model));
  CHECK(model.at("body.0").as<Linear>().weight().is(at(model.parameters(), "body.0.weight")));
  expect_error([&] { static_cast<void>(model.at("body.7")); }, "Sequential: there is no child '7'");
  expect_error([&] { static_cast<void>(model.at("bod")); }, "Model: there is no child 'bod'");
}

TEST_CASE("a handle as another layer than it is on is an error that tells its type") {
  const Model model;
  expect_error([&] { static_cast<void>(model.at("body.0").as<ReLU>()); }, {"'0'", "Linear"});
  CHECK(model.at("body.1").as<ReLU>().is(model.at("body.1")));
}

// --- calls -------------------------------------------------------------------------------------------------------

TEST_CASE("a layer is called by its own handle or by a plain one, and opens its scope") {
  const Model model;
  const Tensor x = ones({4, 2});
  const Module plain = model;
  CHECK(plain(x).to_vector() == model(x).to_vector());
  const Tensor y = plain(x);
  CHECK(y.node()->scope().empty());
  CHECK(y.node()->edges()[0].node->scope() == "scale");
  CHECK(model.at("body")(x).node()->scope() == "body.2");
  CHECK(Pair()(x, x).to_vector() == Doubles(8, 1.0));
  const Module pair = Pair();
  expect_error([&] { pair(x); }, {"Pair", "not a function of one tensor"});
}

TEST_CASE("a copied handle is the same layer") {
  const Scale scale(2);
  const Scale handle = scale;
  CHECK(handle.is(scale));
  handle(ones({2}));
  CHECK(scale.calls() == 1);
  fill_(handle.parameter("gain").detach(), 5);
  CHECK(scale(ones({2})).to_vector() == Doubles{5, 5});
}

TEST_CASE("a child that stands at two places is one layer, its parameters listed once") {
  const Linear shared(2, 2);
  const Sequential twice{shared, ReLU(), shared};
  CHECK(paths(twice.parameters()) == Names{"0.weight", "0.bias"});
  sum(twice(ones({1, 2}))).backward();
  CHECK(shared.weight().grad().defined());
  const Sequential copy = twice.clone();
  CHECK(copy.parameters().size() == 2);
  CHECK(copy(ones({1, 2})).to_vector() == twice(ones({1, 2})).to_vector());
}

TEST_CASE("gradients go to the parameters, and zero_grad takes them away") {
  const Model model;
  sum(model(randn({4, 2}))).backward();
  for (const auto& [path, parameter] : model.parameters()) CHECK(parameter.grad().defined());
  model.zero_grad();
  for (const auto& [path, parameter] : model.parameters()) CHECK_FALSE(parameter.grad().defined());
}

// --- tied parameters ---------------------------------------------------------------------------------------------

TEST_CASE("a tied parameter stands at two places and appears once, under its first path") {
  const Linear a(3, 2), b(3, 2, {.bias = false});
  Linear tied = b;
  tied.tie_weight(a.weight());
  const Sequential model{a, b};
  CHECK(paths(model.parameters()) == Names{"0.weight", "0.bias"});
  CHECK(model.parameter_count() == 8);
  CHECK(b.weight().is(a.weight()));

  sum(a(ones({1, 3})) + 2 * b(ones({1, 3}))).backward();
  CHECK(a.weight().grad().to_vector() == Doubles(6, 3.0));

  expect_error([&] { tied.tie_weight(zeros({3, 2})); }, {"Linear: 'weight' is [2, 3]", "parameter of [3, 2]"});
  Scale scale(2);
  expect_error([&] { scale.tie_parameter("none", zeros({2})); }, "no parameter 'none'");
}

// --- clone -------------------------------------------------------------------------------------------------------

TEST_CASE("a clone has the same values in memory of its own, and draws nothing") {
  const Model model;
  model.requires_grad_(false, "body.0");
  model.at("body.1").eval();
  model(ones({1, 2})).backward(ones({1, 2}));
  const Tensor state = default_generator().state();
  const Model copy = model.clone();
  CHECK(same_generator(state));

  CHECK(paths(copy.state_dict()) == paths(model.state_dict()));
  CHECK(values(copy.state_dict()) == values(model.state_dict()));
  const NamedTensors original = model.state_dict();
  for (std::size_t i = 0; i < original.size(); ++i) {
    const Tensor renewed = copy.state_dict()[i].tensor;
    CHECK(renewed.storage() != original[i].tensor.storage());
    CHECK(renewed.requires_grad() == original[i].tensor.requires_grad());
    CHECK_FALSE(renewed.grad().defined());
  }
  CHECK_FALSE(copy.at("body.1").is_training());
  CHECK(copy.at("body.0").is_training());
  CHECK_FALSE(copy.at("scale").is(model.at("scale")));

  fill_(at(copy.parameters(), "scale.gain").detach(), 0);
  copy.train(false);
  CHECK(at(model.parameters(), "scale.gain").to_vector() == Doubles{1, 1});
  CHECK(model.is_training());
}

TEST_CASE("a clone keeps options, and is a root whatever the original's name") {
  const Sequential model{Scale(2, {.shift = 3}), ReLU()};
  const Module copy = model.at("0").clone();
  CHECK(copy.name().empty());
  CHECK(model.at("0").name() == "0");
  CHECK(copy.as<Scale>().options().shift == 3);
  CHECK(copy(zeros({2})).to_vector() == Doubles{3, 3});
  const Sequential other{Identity(), copy};
  CHECK(copy.name() == "1");
}

TEST_CASE("what was tied stays tied within the clone, and only there") {
  const Linear a(2, 2), b(2, 2);
  Linear(b).tie_weight(a.weight());
  const Sequential model{a, b}, copy = model.clone();
  const Tensor first = copy.at("0").as<Linear>().weight(), second = copy.at("1").as<Linear>().weight();
  CHECK(first.is(second));
  CHECK_FALSE(first.is(a.weight()));
  CHECK(first.storage() != a.weight().storage());
  CHECK(copy.parameters().size() == model.parameters().size());
}

// --- state -------------------------------------------------------------------------------------------------------

TEST_CASE("a state is loaded by name, parameters and buffers") {
  const Model from, to_;
  from(ones({1, 2}));
  NamedTensors state = from.state_dict();
  std::swap(state[0], state[5]);
  const LoadResult result = to_.load_state_dict(state);
  CHECK(result.missing.empty());
  CHECK(values(to_.state_dict()) == values(from.state_dict()));
  CHECK(at(to_.buffers(), "scale.calls").item() == 1);
  CHECK(at(to_.parameters(), "first").storage() != at(from.parameters(), "first").storage());
  CHECK(to_(ones({1, 2})).to_vector() == from(ones({1, 2})).to_vector());
}

TEST_CASE("a state that does not fit is refused whole, with lists of names") {
  const Model from, model;
  const std::vector<Doubles> before = values(model.state_dict());
  NamedTensors state = from.state_dict();
  state[2].path = "body.0.w";
  state.push_back({"head.weight", zeros({1})});
  expect_error([&] { model.load_state_dict(state); },
               {"Model: ", "missing: body.0.weight", "unexpected: body.0.w, head.weight"});
  CHECK(values(model.state_dict()) == before);

  state = from.state_dict();
  state.back().tensor = zeros({1}, int64);  // the last one: "[3]", which [1] would broadcast to
  expect_error([&] { model.load_state_dict(state); }, {"'scale.table' is [3] int64 here", "load is [1] int64"});
  expect_error([&] { model.load_state_dict(state, /*strict=*/false); }, "'scale.table'");
  CHECK(values(model.state_dict()) == before);
}

TEST_CASE("a lenient load takes what fits by name and says what does not") {
  const Model model;
  const LoadResult result = model.load_state_dict({{"last", full({1}, 9)}, {"extra", zeros({2})}}, /*strict=*/false);
  CHECK(at(model.parameters(), "last").item() == 9);
  CHECK(result.unexpected == Names{"extra"});
  CHECK(result.missing ==
        Names{"first", "body.0.weight", "body.0.bias", "body.2.weight", "scale.gain", "scale.calls", "scale.table"});
}

TEST_CASE("loading counts as a write and does not replace the parameters") {
  const Linear linear(2, 2);
  const Tensor weight = linear.weight();
  const std::uint64_t version = weight.version();
  linear.load_state_dict(Linear(2, 2).state_dict());
  CHECK(linear.weight().is(weight));
  CHECK(weight.version() > version);
  CHECK(weight.requires_grad());
}

// --- freezing, mode, dtype -----------------------------------------------------------------------------------------

TEST_CASE("parameters are frozen by a whole part of their path") {
  ModuleList blocks;
  for (int i = 0; i < 12; ++i) blocks.push_back(Linear(1, 1));
  const auto trainable = [&] {
    Names names;
    for (const auto& [path, parameter] : blocks.parameters()) {
      if (parameter.requires_grad()) names.push_back(path);
    }
    return names;
  };
  CHECK(trainable().size() == 24);
  blocks.requires_grad_(false, "1");  // not 10 and 11
  CHECK(trainable().size() == 22);
  CHECK(trainable()[2] == "2.weight");
  blocks.requires_grad_(false);
  CHECK(trainable().empty());
  blocks.requires_grad_(true, "10.bias");
  blocks.requires_grad_(true, "3");
  CHECK(trainable() == Names{"3.weight", "3.bias", "10.bias"});
  expect_error([&] { blocks.requires_grad_(false, "12"); }, {"ModuleList has no parameter below '12'"});
  expect_error([&] { blocks.requires_grad_(false, "3.w"); }, "'3.w'");
  expect_error([&] { blocks.requires_grad_(false, "3."); }, "'3.'");
  Identity().requires_grad_(false);  // all of none
}

TEST_CASE("a frozen parameter gets no gradient, the others do") {
  const Model model;
  model.requires_grad_(false, "body");
  sum(model(ones({1, 2}))).backward();
  CHECK_FALSE(at(model.parameters(), "body.0.weight").grad().defined());
  CHECK(at(model.parameters(), "scale.gain").grad().defined());
  CHECK(at(model.parameters(), "first").grad().defined());
}

TEST_CASE("train and eval reach all that is below") {
  const Sequential model{Dropout(0.5), Sequential{Dropout(0.5)}};
  CHECK(model.is_training());
  CHECK_FALSE(model.eval().is_training());
  CHECK_FALSE(model.at("1.0").is_training());
  model.at("1").train();
  CHECK(model.at("1.0").is_training());
  CHECK_FALSE(model.at("0").is_training());
  model.train();
  CHECK(model.at("0").is_training());
}

TEST_CASE("a module becomes float64 with its float buffers, and computes there") {
  const Model model;
  model.requires_grad_(false, "last");
  const NamedTensors before = model.state_dict();
  const Tensor x = randn({4, 2}), y = model(x).detach();
  model.to(float64);
  const NamedTensors after = model.state_dict();
  for (std::size_t i = 0; i < after.size(); ++i) {
    CHECK(after[i].tensor.dtype() == (after[i].path == "scale.table" ? int64 : float64));
    CHECK(after[i].tensor.requires_grad() == before[i].tensor.requires_grad());
    CHECK(after[i].tensor.is_leaf());
    if (after[i].path != "scale.calls") CHECK(after[i].tensor.to_vector() == before[i].tensor.to_vector());
  }
  expect_error([&] { model(x); }, {"float32", "float64"});
  const Tensor precise = model(to(x, float64));
  CHECK(precise.dtype() == float64);
  CHECK(allclose(precise.detach(), to(y, float64), 1e-5, 1e-6));
  sum(precise).backward();
  CHECK(at(model.parameters(), "first").grad().dtype() == float64);
  model.to(float32);
  CHECK(values(model.parameters()) == values({before.begin(), before.begin() + 6}));
  expect_error([&] { model.to(int64); }, {"float32 or float64", "int64"});
}

TEST_CASE("converted parameters that were tied stay tied, and what has the dtype already stays itself") {
  const Linear a(2, 2), b(2, 2);
  Linear(b).tie_weight(a.weight());
  const Sequential model{a, b};
  const Tensor weight = a.weight();
  model.to(float32);
  CHECK(a.weight().is(weight));
  model.to(float64);
  CHECK(a.weight().is(b.weight()));
  CHECK(model.parameters().size() == 3);
}

}  // namespace
}  // namespace prenorm::nn
