#include "optim/optimizer.h"

#include <string>
#include <vector>

#include "autograd/node.h"
#include "autograd/ops.h"
#include "nn/tiny_lm.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "support.h"

namespace prenorm::optim {
namespace {

using Doubles = std::vector<double>;

Tensor parameter(std::initializer_list<double> values) {
  return Tensor::of(values, {.dtype = float64, .requires_grad = true});
}
Tensor values(std::initializer_list<double> values) { return Tensor::of(values, {.dtype = float64}); }
std::string paths(const NamedTensors& tensors) {
  std::string all;
  for (const NamedTensor& named : tensors) all += named.path + " ";
  return all;
}

TEST_CASE("a step follows the gradients that backward left, and zero_grad makes them absent") {
  const Tensor w = parameter({1, 2});
  SGD sgd({{"w", w}}, {.lr = 0.5});
  sum(w * w).backward();
  sgd.step();
  CHECK(w.to_vector() == Doubles{0, 0});
  CHECK(w.grad().to_vector() == Doubles{2, 4});
  CHECK(w.requires_grad());
  CHECK(w.is_leaf());
  sgd.zero_grad();
  CHECK_FALSE(w.grad().defined());
}

TEST_CASE("a parameter without a gradient, or frozen, stays as it is; a gradient of zeros is a gradient") {
  Tensor absent = parameter({1}), frozen = parameter({1}), zero = parameter({1});
  const NamedTensors all{{"absent", absent}, {"frozen", frozen}, {"zero", zero}};
  AdamW adamw(all, {.lr = 0.5, .weight_decay = 0.5});
  SGD sgd(all, {.lr = 0.5, .weight_decay = 0.5});
  frozen.set_grad(values({3}));
  frozen.requires_grad_(false);
  zero.set_grad(values({0}));
  adamw.step();
  CHECK(zero.item() == 0.75);  // decay alone
  sgd.step();
  CHECK(zero.item() == 0.75 * 0.75);
  CHECK(absent.item() == 1);
  CHECK(frozen.item() == 1);
  const NamedTensors state = adamw.state_dict();
  CHECK(state[0].tensor.item<std::int64_t>() == 0);  // absent/step
  CHECK(state[6].tensor.item<std::int64_t>() == 1);  // zero/step
}

TEST_CASE("a tied weight is stepped once, by the sum of its gradients") {
  manual_seed(1);
  const nn::TinyLM model(7, {.d_model = 8, .n_heads = 2, .n_layers = 1, .max_len = 5, .tie_head = true});
  const Tensor ids = randint(0, 7, {2, 5}), weight = model.parameters()[0].tensor, before = clone(weight.detach());
  SGD sgd(model.parameters(), {.lr = 0.5});
  cross_entropy(model(ids), ids).backward();
  sgd.step();
  expect_close(weight, before - weight.grad() * 0.5, 1e-7);
}

TEST_CASE("groups have their own learning rate and weight decay, which may be changed") {
  const Tensor a = parameter({1}), b = parameter({1});
  SGD sgd({{.parameters = {{"a", a}}, .lr = 0.1}, {.parameters = {{"b", b}}, .lr = 0.2, .weight_decay = 1}});
  CHECK(paths(sgd.parameters()) == "a b ");
  const auto step = [&] {
    a.set_grad(values({1}));
    b.set_grad(values({1}));
    sgd.step();
  };
  step();
  CHECK(a.item() == doctest::Approx(0.9));
  CHECK(b.item() == doctest::Approx(1 - 0.2 * (1 + 1)));
  sgd.groups()[0].lr = 0;
  sgd.groups()[1].weight_decay = 0;
  step();
  CHECK(a.item() == doctest::Approx(0.9));
  CHECK(b.item() == doctest::Approx(0.4));
}

TEST_CASE("the factor of a schedule scales the learning rate of every group") {
  const Tensor a = parameter({1}), b = parameter({1});
  SGD sgd({{.parameters = {{"a", a}}, .lr = 0.1}, {.parameters = {{"b", b}}, .lr = 0.2}});
  CHECK(sgd.lr_factor() == 1);
  a.set_grad(values({1}));
  b.set_grad(values({1}));
  sgd.set_lr_factor(0.5);
  sgd.step();
  CHECK(a.item() == doctest::Approx(0.95));
  CHECK(b.item() == doctest::Approx(0.9));
  CHECK(sgd.groups()[0].lr == 0.1);
  sgd.set_lr_factor(0);
  sgd.step();
  CHECK(a.item() == doctest::Approx(0.95));
  expect_error([&] { sgd.set_lr_factor(-1); }, {"SGD", "not negative", "-1"});
  expect_error([&] { sgd.set_lr_factor(std::nan("")); }, "nan");
  CHECK(sgd.lr_factor() == 0);
}

TEST_CASE("what would be stepped twice, or not at all, is refused") {
  const Tensor w = parameter({1}), v = parameter({1});
  expect_error([&] { SGD({{"w", w}, {"tied", w}}); }, {"SGD", "'tied' and 'w'", "stepped twice"});
  expect_error([&] { SGD({{"w", w}, {"w", v}}); }, {"'w' and 'w'", "stepped twice"});
  expect_error([&] { SGD({{{{"w", w}}, 0.1}, {{{"w2", w}}, 0.1}}); }, "stepped twice");
  expect_error([] { SGD(NamedTensors{}); }, {"SGD", "no parameters"});
  expect_error([&] { SGD({{"w", w * 2}}); }, {"'w' is no parameter", "contiguous leaf of a float type"});
  expect_error([] { SGD({{"w", zeros({2}, int64)}}); }, "no parameter");
  expect_error([] { SGD({{"w", transpose(zeros({2, 3}), 0, 1)}}); }, "no parameter");
  expect_error([] { SGD({{"w", Tensor()}}); }, "'w' is no parameter");
  expect_error([&] { SGD({{"w", w}}, {.lr = -1}); }, {"lr is not negative", "-1"});
  expect_error([&] { SGD({{"w", w}}, {.lr = std::nan("")}); }, "nan");
  expect_error([&] { SGD({{"w", w}}, {.weight_decay = -1}); }, {"weight_decay is not negative"});
}

TEST_CASE("a step counts as a write, so a graph that saved the weight cannot run backward after it") {
  const Tensor w = parameter({1});
  SGD sgd({{"w", w}});
  const Tensor y = w * w;
  w.set_grad(values({1}));
  sgd.step();
  expect_error([&] { y.backward(); }, {"mul", "written to since"});
}

TEST_CASE("gradients may be of any strides") {
  const Tensor w = reshape(parameter({0, 0, 0, 0, 0, 0}), {2, 3}).detach().requires_grad_();
  w.set_grad(transpose(reshape(values({0, 1, 2, 3, 4, 5}), {3, 2}), 0, 1));
  SGD sgd({{"w", w}}, {.lr = 1});
  sgd.step();
  CHECK(w.to_vector() == Doubles{0, -2, -4, -1, -3, -5});
}

TEST_CASE("a step records nothing and leaves grad mode on") {
  const std::int64_t before = Node::live_count();
  const Tensor w = parameter({1});
  Adam adam({{"w", w}});
  w.set_grad(values({1}));
  adam.step();
  CHECK(Node::live_count() == before);
  CHECK(GradMode::enabled());
}

TEST_CASE("the state is there from the start, by the parameters' names") {
  const Tensor w = parameter({1, 2}), v = parameter({3});
  const NamedTensors both{{"a.w", w}, {"v", v}};
  CHECK(paths(SGD(both).state_dict()) == "a.w/step v/step ");
  CHECK(paths(SGD(both, {.momentum = 0.9}).state_dict()) == "a.w/step a.w/momentum_buffer v/step v/momentum_buffer ");
  const Adam adam(both, {.amsgrad = true});
  CHECK(paths(adam.state_dict()) ==
        "a.w/step a.w/exp_avg a.w/exp_avg_sq a.w/max_exp_avg_sq v/step v/exp_avg v/exp_avg_sq v/max_exp_avg_sq ");
  for (const auto& [path, tensor] : adam.state_dict()) CHECK(norm(to(tensor, float64)).item() == 0);
  CHECK(adam.state_dict()[1].tensor.shape() == Shape{2});
  CHECK(adam.state_dict()[0].tensor.dtype() == int64);
}

TEST_CASE("the state is loaded by name, whatever the order, and training goes on as it would have") {
  const auto train = [](Optimizer& optimizer, const Tensor& a, const Tensor& b, int steps) {
    for (int i = 0; i < steps; ++i) {
      optimizer.zero_grad();
      (sum(a * a * a) + sum(a) * sum(b * b)).backward();
      optimizer.step();
    }
  };
  const auto start = [](const NamedTensors& parameters) {
    return Adam(parameters, {.lr = 0.1, .weight_decay = 0.01, .amsgrad = true});
  };
  const Tensor a = parameter({1, 2}), b = parameter({3});
  Adam whole = start({{"a", a}, {"b", b}});
  train(whole, a, b, 10);

  const Tensor a1 = parameter({1, 2}), b1 = parameter({3});
  Adam first = start({{"a", a1}, {"b", b1}});
  train(first, a1, b1, 5);
  NamedTensors saved;
  for (const auto& [path, tensor] : first.state_dict()) saved.push_back({path, clone(tensor)});

  const Tensor a2 = clone(a1.detach()).requires_grad_(), b2 = clone(b1.detach()).requires_grad_();
  Adam second = start({{"b", b2}, {"a", a2}});
  second.load_state_dict(saved);
  train(second, a2, b2, 5);
  CHECK(a2.to_vector() == a.to_vector());
  CHECK(b2.to_vector() == b.to_vector());
}

TEST_CASE("a state that does not fit changes nothing") {
  const Tensor w = parameter({1, 2});
  Adam adam({{"w", w}});
  w.set_grad(values({1, 1}));
  adam.step();
  const auto now = [&] {
    std::vector<Doubles> all;
    for (const auto& [path, tensor] : adam.state_dict()) all.push_back(tensor.to_vector());
    return all;
  };
  const std::vector<Doubles> before = now();
  const auto with = [&](std::size_t place, NamedTensor changed) {
    NamedTensors state;
    for (const auto& [path, tensor] : adam.state_dict()) state.push_back({path, zeros_like(tensor)});
    state[place] = std::move(changed);
    return state;
  };
  expect_error(
      [&] {
        adam.load_state_dict(with(2, {"v/exp_avg_sq", zeros({2}, float64)}));
      },
      {"Adam", "missing: w/exp_avg_sq", "unexpected: v/exp_avg_sq"});
  expect_error(
      [&] {
        adam.load_state_dict(with(2, {"w/exp_avg_sq", zeros({1}, float64)}));
      },
      {"'w/exp_avg_sq' is [2] float64 here", "[1] float64"});
  expect_error([&] { adam.load_state_dict(with(0, {"w/step", zeros({})})); }, {"'w/step'", "float32"});
  const SGD sgd({{"w", w}}, {.momentum = 0.9});
  expect_error([&] { adam.load_state_dict(sgd.state_dict()); },
               {"missing: w/exp_avg", "unexpected: w/momentum_buffer"});
  CHECK(now() == before);
}

}  // namespace
}  // namespace prenorm::optim
