#include "autograd/ops/op_checks.h"
#include "autograd/parallel.h"

namespace prenorm {
namespace {

Tensor call(const Tensors& in) {
  return layer_norm(in[0], in.size() > 1 ? in[1] : Tensor(), in.size() > 2 ? in[2] : Tensor());
}

// The same from pointwise ops and means.
Tensor composed(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps = 1e-5) {
  const Tensor d = x - mean(x, {-1}, true);
  return gamma * (d / sqrt(mean(d * d, {-1}, true) + eps)) + beta;
}

TEST_CASE("layer_norm: gradients with and without gamma and beta") {
  for (const Shape& shape : {Shape{5}, Shape{2}, Shape{1, 3}, Shape{3, 4}, Shape{2, 3, 5}}) {
    const Tensor x = randn64(shape), gamma = randn64({shape.back()}, 1), beta = randn64({shape.back()}, 2);
    expect_gradients(call, NamedTensors{{"x", x}, {"gamma", gamma}, {"beta", beta}});
    expect_gradients(call, NamedTensors{{"x", x}, {"gamma", gamma}});
    expect_gradients(call, NamedTensors{{"x", x}});
    expect_gradients([&](const Tensors& in) { return layer_norm(in[0], {}, in[1]); },
                     NamedTensors{{"x", x}, {"beta", beta}});
    expect_gradients(call, Tensors{x.detach(), gamma, beta});
    expect_gradients(call, Tensors{x, gamma.detach(), beta.detach()});
    CHECK(call({x, gamma, beta}).shape() == shape);
  }
}

TEST_CASE("layer_norm: over several dimensions, strided, used twice") {
  const Tensor x = randn64({2, 3, 4}), gamma = randn64({3, 4}, 1), beta = randn64({3, 4}, 2);
  expect_gradients(call, NamedTensors{{"x", x}, {"gamma", gamma}, {"beta", beta}});
  expect_gradients([](const Tensors& in) { return layer_norm(in[0], Shape{3, 4}, {}, {}, 0.5); }, Tensors{x});
  expect_gradients([](const Tensors& in) { return layer_norm(in[0], in[0].shape(), in[1], {}, 0.5); },
                   Tensors{gamma, beta});
  expect_close(reshape(call({x, gamma, beta}), {2, 12}),
               layer_norm(reshape(x, {2, 12}), reshape(gamma, {12}), reshape(beta, {12})), 0);
  expect_gradients(call, Tensors{strided(x), strided(gamma), strided(beta)});
  expect_close(call({strided(x), strided(gamma), strided(beta)}), call({x, gamma, beta}), 0);
  expect_gradients([](const Tensors& in) { return layer_norm(layer_norm(in[0], in[1]), in[1]) + in[0]; },
                   Tensors{randn64({3, 4}), randn64({4})});
  // 3-D rows are the rows of the flattened tensor.
  const Tensor flat = reshape(x, {6, 4}), weight = randn64({4}, 3);
  expect_close(layer_norm(x, weight), reshape(layer_norm(flat, weight), {2, 3, 4}), 0);
}

TEST_CASE("layer_norm: no rows, no elements, one element") {
  for (const Shape& shape : {Shape{0, 3}, Shape{2, 0, 3}, Shape{3, 0}, Shape{0}}) {
    const Tensor x = randn64(shape), gamma = randn64({shape.back()}), beta = randn64({shape.back()});
    CHECK(call({x, gamma, beta}).shape() == shape);
    expect_gradients(call, Tensors{x, gamma, beta}, {.allow_vacuous = true});
    expect_gradients(call, Tensors{x}, {.allow_vacuous = true});
  }
  const Tensor x = randn64({3, 1}), gamma = randn64({1}), beta = randn64({1}, 1);
  expect_close(call({x, gamma, beta}), std::vector<double>(3, beta.item()), 0);
  expect_gradients(call, Tensors{x, gamma, beta}, {.allow_vacuous = true});
}

TEST_CASE("layer_norm: values") {
  // mean 1/4, var 3/16: x_hat = (3/4, -1/4, -1/4, -1/4) / sqrt(3/16) = (sqrt 3, -1/sqrt 3, …)
  const Tensor x = Tensor::of({1, 0, 0, 0}, {.dtype = float64});
  const double s = std::sqrt(3);
  expect_close(layer_norm(x, {}, {}, 0), {s, -1 / s, -1 / s, -1 / s});
  const Tensor gamma = Tensor::of({1, 2, 3, 4}, {.dtype = float64}),
               beta = Tensor::of({10, 20, 30, 40}, {.dtype = float64});
  expect_close(layer_norm(x, gamma, beta, 0), {10 + s, 20 - 2 / s, 30 - 3 / s, 40 - 4 / s});
  expect_close(layer_norm(x, {}, {}, 1),
               Tensor::of({0.75, -0.25, -0.25, -0.25}, {.dtype = float64}) / std::sqrt(19.0 / 16));
}

TEST_CASE("layer_norm: the parts of dy that never reach x, and scaling") {
  const Tensor x = randn64({5, 8}), dy = randn64({5, 8}, 1).detach();
  const auto dx_of = [&](const Tensor& at) { return grad({layer_norm(at, {}, {}, 0)}, {at}, {dy})[0]; };
  const Tensor dx = dx_of(x), x_hat = layer_norm(x, {}, {}, 0).detach();
  expect_close(sum(dx, {1}), std::vector<double>(5, 0), 1e-12);
  expect_close(sum(dx * x_hat, {1}), std::vector<double>(5, 0), 1e-12);
  const Tensor doubled = (x * 2).detach().requires_grad_();
  expect_close(dx_of(doubled) * 2, dx, 1e-12);
}

TEST_CASE("layer_norm: the composed twin, values and both orders") {
  const Tensor x = randn64({4, 6}, 1, 3, 2), gamma = randn64({6}, 2), beta = randn64({6}, 3), dy = randn64({4, 6}, 4);
  const Tensors inputs{x, gamma, beta};
  const auto derivatives = [&](const Tensor& y, bool create_graph) {
    const Tensors first = grad({y}, inputs, {dy}, {.create_graph = true});
    return create_graph
               ? grad({first[0] * first[0] + sum(first[1] * first[1])}, {x, gamma, dy}, {ones({4, 6}, float64)})
               : first;
  };
  expect_close(call(inputs), composed(x, gamma, beta), 1e-12);
  for (bool second : {false, true}) {
    const Tensors fused = derivatives(call(inputs), second), twin = derivatives(composed(x, gamma, beta), second);
    for (std::size_t i = 0; i < fused.size(); ++i) expect_close(fused[i], twin[i], 1e-10);
  }
}

TEST_CASE("layer_norm: constant rows give beta exactly, and finite gradients") {
  for (const auto& [n, value] : {std::pair{8, 7.1}, std::pair{8, 1000.1}, std::pair{768, 0.1}, std::pair{5, 0.0}}) {
    for (DType dtype : {float32, float64}) {
      const Tensor x = full({3, n}, value, dtype).requires_grad_();
      const Tensor gamma = to(randn64({n}, 1).detach(), dtype), beta = to(randn64({n}, 2).detach(), dtype);
      const Tensor dy = to(randn64({3, n}, 3).detach(), dtype);
      expect_close(layer_norm(x, gamma, beta), expand(beta, {3, n}), 0);
      const Tensor dx = grad({layer_norm(x, gamma, beta)}, {x}, {dy})[0];
      const Tensor g = to(gamma, float64) * to(dy, float64);
      const double largest_slope = 1 / std::sqrt(1e-5);
      expect_close(dx / largest_slope, g - mean(g, {1}, true), dtype == float32 ? 5e-6 : 1e-12);
    }
  }
}

TEST_CASE("layer_norm: on constant rows the composed twin has the same gradients") {
  for (const double value : {0.0, 7.0}) {
    const Tensor x = full({3, 6}, value, float64).requires_grad_(), gamma = randn64({6}, 1), beta = randn64({6}, 2);
    const Tensor dy = randn64({3, 6}, 3);
    const Tensors fused = grad({call({x, gamma, beta})}, {x, gamma, beta}, {dy});
    const Tensors twin = grad({composed(x, gamma, beta)}, {x, gamma, beta}, {dy});
    for (std::size_t i = 0; i < fused.size(); ++i) expect_close(fused[i], twin[i], 1e-9);
  }
}

TEST_CASE("layer_norm: the gradients of 3-D rows are those of the rows of the flattened tensor") {
  const Tensor x = randn64({2, 3, 5}), gamma = randn64({5}, 1), beta = randn64({5}, 2), dy = randn64({2, 3, 5}, 3);
  const Tensor flat = reshape(x, {6, 5}).detach().requires_grad_();
  const Tensors deep = grad({call({x, gamma, beta})}, {x, gamma, beta}, {dy});
  const Tensors wide = grad({call({flat, gamma, beta})}, {flat, gamma, beta}, {reshape(dy, {6, 5}).detach()});
  expect_close(reshape(deep[0], {6, 5}), wide[0], 0);
  expect_close(deep[1], wide[1], 0);
  expect_close(deep[2], wide[2], 0);
}

TEST_CASE("layer_norm: rows far from zero keep their digits in float32") {
  for (const auto& [n, offset] : {std::pair{4, 2000.0}, std::pair{64, 2000.0}, std::pair{768, 1e5}}) {
    const Tensor x = to(randn64({5, n}, 1).detach() + offset, float32).requires_grad_();
    const Tensor x64 = to(x.detach(), float64).requires_grad_();
    const Tensor dy = to(randn64({5, n}, 2).detach(), float32);
    expect_close(layer_norm(x), layer_norm(x64), 5e-6);
    expect_close(grad({layer_norm(x)}, {x}, {dy})[0], grad({layer_norm(x64)}, {x64}, {to(dy, float64)})[0], 5e-6);
  }
}

TEST_CASE("layer_norm: float32 is close to float64; the same bits each time and with any number of threads") {
  const std::int64_t R = 700, n = 65;
  const Tensor x = to(randn64({R, n}).detach(), float32).requires_grad_();
  const Tensor gamma = to(randn64({n}, 1).detach(), float32).requires_grad_();
  const Tensor beta = to(randn64({n}, 2).detach(), float32).requires_grad_();
  const Tensor dy = to(randn64({R, n}, 3).detach(), float32);
  const auto double_of = [](const Tensor& t) { return to(t.detach(), float64).requires_grad_(); };
  const Tensors inputs{x, gamma, beta}, inputs64{double_of(x), double_of(gamma), double_of(beta)};
  expect_close(call(inputs), call(inputs64), 2e-6);
  const Tensors d = grad({call(inputs)}, inputs, {dy}), d64 = grad({call(inputs64)}, inputs64, {to(dy, float64)});
  for (std::size_t i = 0; i < 3; ++i) expect_close(d[i], d64[i], 1e-5);
  const int before = num_threads();
  for (int threads : {1, 2, 3, 5}) {
    set_num_threads(threads);
    const Tensors again = grad({call(inputs)}, inputs, {dy});
    for (std::size_t i = 0; i < 3; ++i) expect_close(again[i], d[i], 0);
  }
  set_num_threads(before);
}

TEST_CASE("layer_norm: refusals") {
  const Tensor x = ones({2, 3});
  expect_error([&] { layer_norm(x, ones({4})); }, {"layer_norm", "[2, 3]", "[4]"});
  expect_error([&] { layer_norm(x, ones({3}), ones({2})); }, {"layer_norm", "[3]", "[2]"});
  expect_error([&] { layer_norm(x, ones({3}, float64)); }, {"layer_norm", "float32", "float64"});
  expect_error([&] { layer_norm(x, {}, {}, -1); }, {"layer_norm", "eps", "-1"});
  expect_error([&] { layer_norm(x, {}, {}, NAN); }, {"layer_norm", "eps"});
  expect_error([&] { layer_norm(x, Shape{2, 2, 3}, {}, {}, 1); }, {"layer_norm", "[2, 3]", "[2, 2, 3]"});
  expect_error([&] { layer_norm(x, Shape{}, {}, {}, 1); }, {"layer_norm", "[]"});
  expect_error([&] { layer_norm(Tensor::scalar(1)); }, {"layer_norm", "[..., n]"});
  expect_error([&] { layer_norm(Tensor()); }, "layer_norm");
  expect_error([&] { layer_norm(ones({2, 3}, int64)); }, {"layer_norm", "int64"});
}

TEST_CASE("layer_norm: scale and shift may be one tensor") {
  expect_gradients([](const Tensors& in) { return layer_norm(in[0], in[1], in[1]); },
                   {randn64({3, 4}, 1), randn64({4}, 2)});
}

}  // namespace
}  // namespace prenorm
