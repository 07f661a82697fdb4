#include "nn/norm.h"

#include <cmath>
#include <string>
#include <vector>

#include "autograd/random.h"
#include "nn/gradcheck.h"
#include "support.h"

namespace prenorm::nn {
namespace {

using Doubles = std::vector<double>;

Tensor one_hot() { return Tensor::of({1, 0, 0, 0}, {4}, {.dtype = float64}); }
template <class L>
L in_float64(const L& layer) {
  layer.to(float64);
  return layer;
}
std::string names(const Module& module) {
  std::string all;
  for (const auto& [path, parameter] : module.parameters()) all += path + " ";
  return all;
}

TEST_CASE("the two LayerNorms differ by n - 1 for n") {
  const LayerNorm unbiased = in_float64(LayerNorm(4)), standard = in_float64(LayerNorm(4, {.form = Norm::standard}));
  expect_close(unbiased(one_hot()), {1.5, -0.5, -0.5, -0.5}, 1e-5);
  const double s = std::sqrt(3.0);
  expect_close(standard(one_hot()), {s, -s / 3, -s / 3, -s / 3}, 1e-4);
  CHECK(names(unbiased) == "a_2 b_2 ");
  CHECK(names(standard) == "gamma beta ");
}

TEST_CASE("each form has its default eps: outside the root 1e-6, inside it 1e-5") {
  CHECK(LayerNorm(4).options().eps == 1e-6);
  CHECK(LayerNorm(4, {.form = Norm::standard}).options().eps == 1e-5);
  CHECK(LayerNorm(4, {.eps = 0.5}).options().eps == 0.5);
  CHECK(RMSNorm(4).options().eps == 1e-6);
  // With eps = 1 the formulas are told apart: std = 1/2 and var = 3/16 of the one-hot row, its mean square 1/4.
  expect_close(in_float64(LayerNorm(4, {.eps = 1}))(one_hot()), {0.75 / 1.5, -0.25 / 1.5, -0.25 / 1.5, -0.25 / 1.5});
  const double root = std::sqrt(3.0 / 16 + 1);
  expect_close(in_float64(LayerNorm(4, {.form = Norm::standard, .eps = 1}))(one_hot()),
               {0.75 / root, -0.25 / root, -0.25 / root, -0.25 / root});
  expect_close(in_float64(RMSNorm(4, {.eps = 1}))(one_hot()), {1 / std::sqrt(1.25), 0, 0, 0});
}

TEST_CASE("scale and shift are applied after normalising, and can be left out") {
  for (const Norm form : {Norm::unbiased, Norm::standard}) {
    const LayerNorm plain(4, {.form = form, .affine = false}), layer(4, {.form = form});
    CHECK(plain.parameters().empty());
    CHECK(layer.parameters()[0].tensor.to_vector() == Doubles{1, 1, 1, 1});
    CHECK(layer.parameters()[1].tensor.to_vector() == Doubles{0, 0, 0, 0});
    const Tensor x = randn({3, 4});
    CHECK(layer(x).to_vector() == plain(x).to_vector());
    const Tensor scale = Tensor::of({1, 2, 3, 4}), shift = Tensor::of({5, 6, 7, 8});
    copy_(layer.parameters()[0].tensor.detach(), scale);
    copy_(layer.parameters()[1].tensor.detach(), shift);
    expect_close(layer(x), plain(x) * scale + shift, 1e-6);
  }
}

TEST_CASE("a constant row gives the shift and finite gradients, in both forms and in float32") {
  for (const Norm form : {Norm::unbiased, Norm::standard}) {
    for (const double value : {0.0, 7.1, 1000.1}) {
      const LayerNorm layer(8, {.form = form});
      fill_(layer.parameters()[1].tensor.detach(), 0.25);
      Tensor x = full({2, 8}, value).requires_grad_();
      const Tensor y = layer(x);
      CHECK(y.to_vector() == Doubles(16, 0.25));
      y.backward(reshape(to(arange(16), float32), {2, 8}));
      const double slope = form == Norm::unbiased ? 1e6 : 1 / std::sqrt(1e-5);  // dx = (g - mean(g)) * slope
      for (int i = 0; i < 8; ++i) CHECK(x.grad().to_vector()[i] == doctest::Approx((i - 3.5) * slope).epsilon(1e-4));
      CHECK(layer.parameters()[0].tensor.grad().to_vector() == Doubles(8, 0.0));
    }
  }
}

TEST_CASE("the standard form normalises over the last dimensions it is given") {
  const LayerNorm layer(Shape{2, 3}, {.form = Norm::standard});
  CHECK(layer.parameters()[0].tensor.shape() == Shape{2, 3});
  const Tensor x = randn({4, 2, 3}), flat = layer_norm(reshape(x, {4, 6}));
  expect_close(layer(x), reshape(flat, {4, 2, 3}), 1e-6);
  expect_error([] { LayerNorm(Shape{2, 3}); }, {"LayerNorm", "unbiased form", "[2, 3]"});
  expect_error([] { LayerNorm(Shape{}, {.form = Norm::standard}); }, {"standard form", "[]"});
  expect_error([&] { layer(zeros({4, 3, 2})); }, {"LayerNorm", "[4, 3, 2]", "does not end in [2, 3]"});
  expect_error([&] { layer(zeros({3})); }, {"[3]", "does not end in [2, 3]"});
}

TEST_CASE("one feature has no unbiased std, and the error explains it") {
  expect_error([] { LayerNorm(1); }, {"unbiased form", "at least 2 features", "n - 1"});
  expect_error([] { LayerNorm(4, {.form = Norm::rms}); }, {"LayerNorm", "unbiased and standard"});
  CHECK(LayerNorm(1, {.form = Norm::standard})(ones({3, 1})).to_vector() == Doubles{0, 0, 0});
}

TEST_CASE("RMSNorm divides by the root of the mean square, eps within") {
  const RMSNorm layer = in_float64(RMSNorm(2, {.eps = 1e-5}));
  CHECK(names(layer) == "weight ");
  const double y = 1e-4 / std::sqrt(1e-8 + 1e-5);  // 0.0316; with eps outside it would be 0.909
  expect_close(layer(full({2}, 1e-4, float64)), {y, y});
  fill_(layer.parameters()[0].tensor.detach(), 3);
  expect_close(layer(full({2}, 1e-4, float64)), {3 * y, 3 * y});
  expect_error([&] { layer(zeros({2, 3}, float64)); }, {"rms_norm", "[2, 3]", "[2]"});
}

TEST_CASE("make_norm gives the layer of each form with its default eps") {
  CHECK(names(make_norm(Norm::unbiased, 3)) == "a_2 b_2 ");
  CHECK(names(make_norm(Norm::standard, 3)) == "gamma beta ");
  CHECK(make_norm(Norm::standard, 3).as<LayerNorm>().options().eps == 1e-5);
  CHECK(make_norm(Norm::rms, 3).type() == "RMSNorm");
  CHECK(make_norm(Norm::none, 3).type() == "Identity");
}

TEST_CASE("one step on a fresh norm moves all its parameters") {
  for (const Norm form : {Norm::unbiased, Norm::standard, Norm::rms}) {
    const Module layer = make_norm(form, 4);
    layer(randn({3, 4})).backward(randn({3, 4}));
    for (const auto& [path, parameter] : layer.parameters()) {
      REQUIRE(parameter.grad().defined());
      CHECK(norm(parameter.grad()).item() > 0);
    }
  }
}

TEST_CASE("differences agree for each form, with and without parameters, to order 2") {
  const Tensor x = randn64({2, 3, 5}, 4);
  for (const Norm form : {Norm::unbiased, Norm::standard}) {
    for (const bool affine : {true, false}) {
      const GradcheckReport report = gradcheck(LayerNorm(5, {.form = form, .affine = affine}), {x});
      CHECK_MESSAGE(report.passed, report.message);
    }
  }
  for (const GradcheckReport& report :
       {gradcheck(LayerNorm(Shape{3, 5}, {.form = Norm::standard}), {x}), gradcheck(RMSNorm(5), {x})}) {
    CHECK_MESSAGE(report.passed, report.message);
  }
}

}  // namespace
}  // namespace prenorm::nn
