#include "autograd/ops/op_checks.h"
#include "autograd/parallel.h"

namespace prenorm {
namespace {

Tensor call(const Tensors& in) {
  return layer_norm_std(in[0], in.size() > 1 ? in[1] : Tensor(), in.size() > 2 ? in[2] : Tensor());
}

// The same as the Annotated Transformer writes it.
Tensor composed(const Tensor& x, const Tensor& a_2, const Tensor& b_2, double eps = 1e-6) {
  return a_2 * (x - mean(x, {-1}, true)) / (std(x, {-1}, 1, true) + eps) + b_2;
}

TEST_CASE("layer_norm_std: gradients with and without a_2 and b_2") {
  for (const Shape& shape : {Shape{5}, Shape{1, 3}, Shape{3, 4}, Shape{2, 3, 5}}) {
    const Tensor x = randn64(shape), a_2 = randn64({shape.back()}, 1), b_2 = randn64({shape.back()}, 2);
    expect_gradients(call, NamedTensors{{"x", x}, {"a_2", a_2}, {"b_2", b_2}});
    expect_gradients(call, NamedTensors{{"x", x}, {"a_2", a_2}});
    expect_gradients(call, NamedTensors{{"x", x}});
    expect_gradients([&](const Tensors& in) { return layer_norm_std(in[0], {}, in[1]); },
                     NamedTensors{{"x", x}, {"b_2", b_2}});
    expect_gradients(call, Tensors{x.detach(), a_2, b_2});
    expect_gradients(call, Tensors{x, a_2.detach(), b_2.detach()});
    CHECK(call({x, a_2, b_2}).shape() == shape);
  }
  // Two elements stand at +-1 / sqrt(2), wherever they are, but for eps.
  expect_gradients([](const Tensors& in) { return layer_norm_std(in[0], in[1], {}, 0.5); },
                   Tensors{randn64({3, 2}), randn64({2}, 1)});
}

TEST_CASE("layer_norm_std: strided, used twice, flattened") {
  const Tensor x = randn64({2, 3, 4}), a_2 = randn64({4}, 1), b_2 = randn64({4}, 2);
  expect_gradients(call, Tensors{strided(x), strided(a_2), strided(b_2)});
  expect_close(call({strided(x), strided(a_2), strided(b_2)}), call({x, a_2, b_2}), 0);
  expect_gradients([](const Tensors& in) { return layer_norm_std(layer_norm_std(in[0], in[1]), in[1]) + in[0]; },
                   Tensors{randn64({3, 4}), a_2});
  expect_close(call({x, a_2, b_2}), reshape(call({reshape(x, {6, 4}), a_2, b_2}), {2, 3, 4}), 0);
  expect_gradients([](const Tensors& in) { return layer_norm_std(in[0], in[1], {}, 0.5); }, Tensors{x, a_2});
}

TEST_CASE("layer_norm_std: no rows, no elements") {
  for (const Shape& shape : {Shape{0, 3}, Shape{2, 0, 3}, Shape{3, 0}, Shape{0}}) {
    const Tensor x = randn64(shape), a_2 = randn64({shape.back()}), b_2 = randn64({shape.back()});
    CHECK(call({x, a_2, b_2}).shape() == shape);
    expect_gradients(call, Tensors{x, a_2, b_2}, {.allow_vacuous = true});
    expect_gradients(call, Tensors{x}, {.allow_vacuous = true});
  }
}

TEST_CASE("layer_norm_std: values") {
  // mean 1/4, std = sqrt((9 + 3) / 16 / 3) = 1/2
  const Tensor x = Tensor::of({1, 0, 0, 0}, {.dtype = float64});
  expect_close(layer_norm_std(x, {}, {}, 0), {1.5, -0.5, -0.5, -0.5});
  expect_close(layer_norm_std(x, {}, {}, 0.5), {0.75, -0.25, -0.25, -0.25});  // eps outside of the root
  const Tensor a_2 = Tensor::of({1, 2, 3, 4}, {.dtype = float64}),
               b_2 = Tensor::of({10, 20, 30, 40}, {.dtype = float64});
  expect_close(layer_norm_std(x, a_2, b_2, 0), {11.5, 19, 28.5, 38});
}

TEST_CASE("layer_norm_std: the composed twin, values and both orders") {
  const Tensor x = randn64({4, 6}, 1, 3, 2), a_2 = randn64({6}, 2), b_2 = randn64({6}, 3), dy = randn64({4, 6}, 4);
  const Tensors inputs{x, a_2, b_2};
  const auto derivatives = [&](const Tensor& y, bool second) {
    const Tensors first = grad({y}, inputs, {dy}, {.create_graph = true});
    return second ? grad({first[0] * first[0] + sum(first[1] * first[1])}, {x, a_2, dy}, {ones({4, 6}, float64)})
                  : first;
  };
  expect_close(call(inputs), composed(x, a_2, b_2), 1e-12);
  for (bool second : {false, true}) {
    const Tensors fused = derivatives(call(inputs), second), twin = derivatives(composed(x, a_2, b_2), second);
    for (std::size_t i = 0; i < fused.size(); ++i) expect_close(fused[i], twin[i], 1e-10);
  }
}

TEST_CASE("layer_norm_std: a constant row gives b_2 exactly and dx = (g - mean(g)) / eps") {
  for (const auto& [n, value] :
       {std::pair{8, 7.1}, std::pair{8, 1000.1}, std::pair{768, 0.1}, std::pair{5, 0.0}, std::pair{3, 7.0}}) {
    for (DType dtype : {float32, float64}) {
      const Tensor x = full({3, n}, value, dtype).requires_grad_();
      const Tensor a_2 = to(randn64({n}, 1).detach(), dtype).requires_grad_();
      const Tensor b_2 = to(randn64({n}, 2).detach(), dtype).requires_grad_();
      const Tensor dy = to(randn64({3, n}, 3).detach(), dtype);
      const Tensor y = layer_norm_std(x, a_2, b_2);
      expect_close(y, expand(b_2, {3, n}), 0);
      const Tensor g = to(a_2.detach(), float64) * to(dy, float64);
      for (bool create_graph : {false, true}) {
        const Tensors d = grad({y}, {x, a_2, b_2}, {dy}, {.create_graph = create_graph, .keep_graph = true});
        expect_close(d[0] * 1e-6, g - mean(g, {1}, true), dtype == float32 ? 2e-6 : 1e-12);
        expect_close(d[1], std::vector<double>(static_cast<std::size_t>(n), 0), 0);
        expect_close(d[2], sum(dy, {0}), 1e-5);
      }
    }
  }
}

TEST_CASE("layer_norm_std: on constant rows the composed twin has the same gradients") {
  for (const double value : {0.0, 7.0}) {
    const Tensor x = full({3, 6}, value, float64).requires_grad_(), a_2 = randn64({6}, 1), b_2 = randn64({6}, 2);
    const Tensor dy = randn64({3, 6}, 3);
    const Tensors fused = grad({call({x, a_2, b_2})}, {x, a_2, b_2}, {dy});
    const Tensors twin = grad({composed(x, a_2, b_2)}, {x, a_2, b_2}, {dy});
    for (std::size_t i = 0; i < fused.size(); ++i) expect_close(fused[i] * 1e-6, twin[i] * 1e-6, 1e-12);
  }
}

TEST_CASE("layer_norm_std: differences agree on a row of zeros, where the step is small against eps") {
  const Tensor x = zeros({2, 4}, float64).requires_grad_(), a_2 = randn64({4}, 1), b_2 = randn64({4}, 2);
  expect_gradients(call, Tensors{x, a_2, b_2}, {.order = 1, .step = 1e-12, .tolerance = 1e-5});
  // The second derivative does not exist there; what comes out is finite.
  const Tensor dx = grad({call({x, a_2, b_2})}, {x}, {randn64({2, 4}, 3)}, {.create_graph = true})[0];
  for (double value : grad({sum(dx * dx)}, {x})[0].to_vector()) CHECK(std::isfinite(value));
}

TEST_CASE("layer_norm_std: one constant row among others") {
  const Tensor x = Tensor::of({2, 2, 2, 1, 2, 4}, {2, 3}, {.dtype = float64, .requires_grad = true});
  const Tensor dy = randn64({2, 3}, 1).detach();
  const Tensor other = slice(x, 0, 1, 2).detach().requires_grad_();
  const Tensor dx = grad({call({x})}, {x}, {dy})[0];
  expect_close(slice(dx, 0, 1, 2), grad({call({other})}, {other}, {slice(dy, 0, 1, 2)})[0], 1e-12);
}

TEST_CASE("layer_norm_std: rows far from zero keep their digits in float32") {
  for (const auto& [n, offset] : {std::pair{4, 2000.0}, std::pair{64, 2000.0}, std::pair{768, 1e5}}) {
    const Tensor x = to(randn64({5, n}, 1).detach() + offset, float32).requires_grad_();
    const Tensor x64 = to(x.detach(), float64).requires_grad_();
    const Tensor dy = to(randn64({5, n}, 2).detach(), float32);
    expect_close(call({x}), call({x64}), 5e-6);
    expect_close(grad({call({x})}, {x}, {dy})[0], grad({call({x64})}, {x64}, {to(dy, float64)})[0], 5e-6);
  }
}

TEST_CASE("layer_norm_std: float32 is close to float64; the same bits each time and with any number of threads") {
  const std::int64_t R = 700, n = 65;
  const Tensor x = to(randn64({R, n}).detach(), float32).requires_grad_();
  const Tensor a_2 = to(randn64({n}, 1).detach(), float32).requires_grad_();
  const Tensor b_2 = to(randn64({n}, 2).detach(), float32).requires_grad_();
  const Tensor dy = to(randn64({R, n}, 3).detach(), float32);
  const auto double_of = [](const Tensor& t) { return to(t.detach(), float64).requires_grad_(); };
  const Tensors inputs{x, a_2, b_2}, inputs64{double_of(x), double_of(a_2), double_of(b_2)};
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

TEST_CASE("layer_norm_std: refusals") {
  const Tensor x = ones({2, 3});
  expect_error([&] { layer_norm_std(ones({2, 1})); }, {"layer_norm_std", "[2, 1]", "one element", "at least 2"});
  expect_error([&] { layer_norm_std(x, ones({4})); }, {"layer_norm_std", "[2, 3]", "[4]"});
  expect_error([&] { layer_norm_std(x, ones({3}), ones({2})); }, {"layer_norm_std", "[3]", "[2]"});
  expect_error([&] { layer_norm_std(x, ones({3}, float64)); }, {"layer_norm_std", "float32", "float64"});
  expect_error([&] { layer_norm_std(x, {}, {}, -1); }, {"layer_norm_std", "eps", "-1"});
  expect_error([&] { layer_norm_std(Tensor::scalar(1)); }, {"layer_norm_std", "[..., n]"});
  expect_error([&] { layer_norm_std(Tensor()); }, "layer_norm_std");
  expect_error([&] { layer_norm_std(ones({2, 3}, int64)); }, {"layer_norm_std", "int64"});
}

TEST_CASE("layer_norm_std: scale and shift may be one tensor") {
  expect_gradients([](const Tensors& in) { return layer_norm_std(in[0], in[1], in[1]); },
                   {randn64({3, 4}, 1), randn64({4}, 2)});
}

}  // namespace
}  // namespace prenorm
