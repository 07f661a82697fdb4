#include "optim/clip.h"

#include <cmath>
#include <limits>
#include <vector>

#include "autograd/ops.h"
#include "support.h"

namespace prenorm::optim {
namespace {

using Doubles = std::vector<double>;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

NamedTensor with_gradient(const std::string& path, std::initializer_list<double> gradient, DType dtype = float64) {
  const Tensor g = Tensor::of(gradient, {.dtype = dtype});
  Tensor parameter = zeros_like(g).requires_grad_();
  parameter.set_grad(g);
  return {path, parameter};
}

TEST_CASE("the norm is that of all gradients together, absent ones as 0") {
  const NamedTensor absent{"absent", zeros({3}).requires_grad_()};
  const NamedTensors parameters{with_gradient("a", {1, 2}), absent, with_gradient("b", {2, 4, 0}, float32)};
  CHECK(grad_norm(parameters) == 5);
  CHECK(grad_norm({absent}) == 0);
  CHECK(grad_norm({}) == 0);
  CHECK(std::isnan(grad_norm({with_gradient("a", {1, kNaN})})));
  CHECK(grad_norm({with_gradient("a", {-kInf})}) == kInf);
  CHECK(grad_norm({with_gradient("a", {3e38, 4e38 / 2}, float32)}) == doctest::Approx(std::sqrt(13.0) * 1e38));
}

TEST_CASE("gradients above the norm are scaled down to it, all by one factor") {
  const NamedTensors parameters{
      with_gradient("a", {3, 0}), with_gradient("b", {4}), {"c", zeros({1}).requires_grad_()}};
  CHECK(clip_grad_norm_(parameters, 1) == 5);
  const double factor = 1 / (5 + 1e-6);
  CHECK(parameters[0].tensor.grad().to_vector() == Doubles{3 * factor, 0});
  CHECK(parameters[1].tensor.grad().to_vector() == Doubles{4 * factor});
  CHECK_FALSE(parameters[2].tensor.grad().defined());
  CHECK(grad_norm(parameters) == doctest::Approx(1).epsilon(1e-6));
}

TEST_CASE("gradients below the norm stay as they are, bit for bit") {
  const NamedTensors parameters{with_gradient("a", {0.3, 0.1}, float32)};
  const std::uint64_t version = parameters[0].tensor.grad().version();
  CHECK(clip_grad_norm_(parameters, 1) == doctest::Approx(std::sqrt(0.1)));
  CHECK(parameters[0].tensor.grad().version() == version);
}

TEST_CASE("a norm of 0 survives, and a largest norm of 0 clears") {
  const NamedTensors zero{with_gradient("a", {0, 0})}, some{with_gradient("a", {3, 4})};
  CHECK(clip_grad_norm_(zero, 1) == 0);
  CHECK(clip_grad_norm_(zero, 0) == 0);
  CHECK(zero[0].tensor.grad().to_vector() == Doubles{0, 0});
  CHECK(clip_grad_norm_(some, 0) == 5);
  CHECK(some[0].tensor.grad().to_vector() == Doubles{0, 0});
  CHECK(clip_grad_norm_({}, 1) == 0);
}

TEST_CASE("a norm that is not finite names the first parameter to blame and changes nothing") {
  for (const double bad : {kNaN, kInf, -kInf}) {
    const NamedTensors parameters{with_gradient("fine", {30, 40}), with_gradient("blocks.0.ln1.gamma", {1, bad}),
                                  with_gradient("also", {bad})};
    expect_error([&] { clip_grad_norm_(parameters, 1); },
                 {"clip_grad_norm_", "gradient of 'blocks.0.ln1.gamma' is not finite"});
    CHECK(parameters[0].tensor.grad().to_vector() == Doubles{30, 40});
  }
  const NamedTensors huge{with_gradient("a", {1.3e154}), with_gradient("b", {1.3e154})};  // squares add up to infinity
  expect_error([&] { clip_grad_norm_(huge, 1); }, {"clip_grad_norm_", "too large"});
  CHECK(huge[0].tensor.grad().item() == 1.3e154);
}

TEST_CASE("the largest norm is a number that is not negative") {
  const NamedTensors parameters{with_gradient("a", {3, 4})};
  expect_error([&] { clip_grad_norm_(parameters, -1); }, {"max_norm is not negative", "-1"});
  expect_error([&] { clip_grad_norm_(parameters, kNaN); }, "nan");
  CHECK(clip_grad_norm_(parameters, kInf) == 5);
  CHECK(parameters[0].tensor.grad().to_vector() == Doubles{3, 4});
}

TEST_CASE("gradients may be of any strides") {
  const Tensor w = zeros({2, 2}, float64).requires_grad_();
  w.set_grad(transpose(Tensor::of({1, 2, 2, 4}, {2, 2}, {.dtype = float64}), 0, 1));
  CHECK(clip_grad_norm_({{"w", w}}, 2.5) == 5);
  expect_close(w.grad(), {0.5, 1, 1, 2}, 1e-6);
}

}  // namespace
}  // namespace prenorm::optim
