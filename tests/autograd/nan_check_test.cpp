#include "autograd/nan_check.h"

#include <limits>

#include "autograd/ops.h"
#include "autograd/scope.h"
#include "nn/tiny_lm.h"
#include "support.h"

namespace prenorm {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor leaf(std::initializer_list<double> values) {
  return Tensor::of(values, {.dtype = float64, .requires_grad = true});
}

TEST_CASE("nan_check: names the operation that made the first one, its scope and the place") {
  const NanCheck check;
  const Scope scope("loss");
  const Tensor x = reshape(leaf({1, 0, 2, 0}), {2, 2});
  expect_error([&] { log(x); },
               {"nan_check: log in loss gave infinity: output 0, float64 [2, 2], is -inf at [0, 1], the "
                "first of 2 such elements; its inputs were finite: [2, 2]"});
  REQUIRE(check.first().has_value());
  CHECK(check.first()->op == "log");
  CHECK(check.first()->scope == "loss");
  CHECK_FALSE(check.first()->backward);
}

TEST_CASE("nan_check: a NaN, in an operation of several inputs, in float32, of any strides") {
  const NanCheck check;
  const Tensor x = Tensor::of({0, 1, 2, 3, 4, 5}, {2, 3}, {.requires_grad = true});
  expect_error(
      [&] {
        div(transpose(x, 0, 1), zeros({3, 2}));
      },
      {"div gave NaN: output 0, float32 [3, 2], is nan at [0, 0], the first of 6", "[3, 2], [3, 2]"});
}

TEST_CASE("nan_check: what came in with the data is not blamed on the operation") {
  const NanCheck check;
  expect_error(
      [&] {
        leaf({1, 2}) * Tensor::of({1, kNan}, {.dtype = float64});
      },
      {"nan_check: mul was given NaN: input 1, float64 [2], is nan at [1]; it came in with the data"});
}

TEST_CASE("nan_check: operations that leave no node are looked at, too") {
  {
    const NanCheck check;
    const Scope scope("eval");
    const NoGrad no_grad;
    expect_error([&] { log(leaf({0})); }, {"log in eval gave infinity"});
  }
  const NanCheck check;
  expect_error([&] { sqrt(Tensor::of({-1}, {.dtype = float64})); }, {"sqrt gave NaN"});
}

TEST_CASE("nan_check: writes in place are looked at, too; statistics of no elements are not made up") {
  const NanCheck check;
  const Tensor x = ones({2});
  full({2}, -kInfinity);  // made on purpose
  layer_norm(zeros({3, 0}, float64).requires_grad_());
  layer_norm_std(zeros({3, 0}, float64).requires_grad_());
  expect_error([&] { mul_(x, kInfinity); }, {"mul_ gave infinity: output 0, float32 [2]"});
  const NanCheck other;
  expect_error([&] { fill_(x, kNan); }, {"fill_ gave NaN"});
}

TEST_CASE("nan_check: a gradient that is the first") {
  const NanCheck check;
  const Tensor x = leaf({1e-200, 1});
  const Tensor loss = [&] {
    const Scope scope("layer");
    return sum(pow(x, -1.5));  // x^-2.5 overflows where x^-1.5 does not
  }();
  expect_error([&] { loss.backward(); },
               {"nan_check: the backward of pow in layer gave infinity: the gradient of input 0, "
                "float64 [2], is -inf at [0]; the gradient that reached it was finite"});
  REQUIRE(check.first().has_value());
  CHECK(check.first()->op == "pow");
  CHECK(check.first()->scope == "layer");
  CHECK(check.first()->backward);
}

TEST_CASE("nan_check: a sum of finite gradients, a hook, a cotangent") {
  {
    const NanCheck check;
    const Tensor x = leaf({0.1});
    const Tensor y = sum(x * 1.5e308 + x * 1e308);
    expect_error([&] { y.backward(); }, {"the gradient that reached", "is inf", "their sum, a hook or the cotangent"});
  }
  {
    const NanCheck check;
    const Tensor x = leaf({1});
    const Tensor y = exp(x);
    y.register_hook([](const Tensor& gradient) { return gradient * kNan; });
    const Tensor loss = sum(y);
    expect_error([&] { loss.backward(); }, {"the gradient that reached output 0 of exp, float64 [1], is nan at [0]"});
  }
  const NanCheck check;
  const Tensor y = exp(leaf({1}));
  expect_error([&] { y.backward(Tensor::of({kInfinity}, {.dtype = float64})); },
               {"the gradient that reached output 0 of exp"});
}

TEST_CASE("nan_check: noting instead of stopping keeps the first and changes nothing") {
  NanCheck check({.stop = false});
  const Tensor x = leaf({0, 1});
  const Tensor loss = sum(log(x) * 0.0);  // -inf, then NaN
  loss.backward();
  REQUIRE(check.first().has_value());
  CHECK(check.first()->op == "log");
  expect_close(x.grad(), std::vector<double>{kNan, 0});
}

TEST_CASE("nan_check: infinities by design pass on request, NaN does not") {
  const NanCheck check({.infinity = false});
  const Tensor scores = masked_fill(leaf({1, 2}), Tensor::of({0, 1}, {.dtype = boolean}), -kInfinity);
  expect_close(softmax(scores), std::vector<double>{1, 0});
  CHECK_FALSE(check.first().has_value());
  const Tensor same = scores;
  expect_error([&] { scores - same; }, {"sub gave NaN: output 0, float64 [2], is nan at [1]", "without NaN"});
}

TEST_CASE("nan_check: after an error grad mode and graph are as they should be, and the next pass works") {
  const Tensor x = leaf({0, 1});
  {
    const NanCheck check;
    CHECK_THROWS_AS(log(x), Error);
  }
  CHECK(GradMode::enabled());
  sum(x * x).backward();
  expect_close(x.grad(), std::vector<double>{0, 2});
}

TEST_CASE("nan_check: a model that is well passes, forward and backward, in every norm, and its bits stay the same") {
  const Tensor ids = randint(0, 11, {2, 7});
  for (const nn::Norm norm : {nn::Norm::unbiased, nn::Norm::standard, nn::Norm::rms, nn::Norm::none}) {
    manual_seed(3);
    const nn::TinyLM model(11, {.d_model = 8, .n_heads = 2, .n_layers = 2, .max_len = 7, .norm = norm, .dropout = 0.1});
    const auto gradient = [&] {
      manual_seed(4);
      model.zero_grad();
      cross_entropy(model(ids), ids).backward();
      return model.parameters()[0].tensor.grad().to_vector();
    };
    const std::vector<double> alone = gradient();
    const NanCheck check;
    CHECK(gradient() == alone);
    CHECK_FALSE(check.first().has_value());
  }
}

TEST_CASE("nan_check: a broken weight of a model is named by the layer that it stands in") {
  const nn::TinyLM model(11, {.d_model = 8, .n_heads = 2, .n_layers = 2, .max_len = 7});
  {
    const NoGrad no_grad;
    fill_(model.at("blocks.1").parameters()[0].tensor, kNan);
  }
  const NanCheck check;
  expect_error([&] { model(randint(0, 11, {2, 7})); }, {"in blocks.1", "was given NaN", "a parameter"});
}

}  // namespace
}  // namespace prenorm
