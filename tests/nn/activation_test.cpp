#include "nn/activation.h"

#include <cmath>
#include <vector>

#include "support.h"

namespace prenorm::nn {
namespace {

using Doubles = std::vector<double>;

TEST_CASE("activations have no parameters and compute their function") {
  const Tensor x = Tensor::of({-2, 0, 0.5, std::nan("")}, {4}, {.dtype = float64});
  CHECK(Identity()(x).is(x));
  expect_close(ReLU()(x), {0, 0, 0.5, std::nan("")});  // NaN stays visible
  const auto exact = [](double v) { return v * 0.5 * (1 + std::erf(v / std::sqrt(2.0))); };
  expect_close(GELU()(x), {exact(-2), 0, exact(0.5), std::nan("")}, 1e-12);
  const auto by_tanh = [](double v) {
    return 0.5 * v * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v)));
  };
  expect_close(GELU({.form = Gelu::tanh})(x), {by_tanh(-2), 0, by_tanh(0.5), std::nan("")}, 1e-12);
  CHECK(GELU({.form = Gelu::tanh}).options().form == Gelu::tanh);
  CHECK(GELU().options().form == Gelu::exact);
  for (const Module& layer : {Module(Identity()), Module(ReLU()), Module(GELU())}) CHECK(layer.state_dict().empty());
}

TEST_CASE("activations pass gradients on") {
  const Tensor x = randn64({3, 4});
  for (const Module& layer : {Module(Identity()), Module(ReLU()), Module(GELU()), Module(GELU({.form = Gelu::tanh}))}) {
    expect_gradients([&](const Tensors& in) { return layer(in[0]); }, Tensors{x});
  }
}

}  // namespace
}  // namespace prenorm::nn
