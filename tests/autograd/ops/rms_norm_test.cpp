#include "autograd/ops/op_checks.h"
#include "autograd/parallel.h"

namespace prenorm {
namespace {

Tensor call(const Tensors& in) { return rms_norm(in[0], in.size() > 1 ? in[1] : Tensor()); }

TEST_CASE("rms_norm: gradients with and without weight") {
  for (const Shape& shape : {Shape{5}, Shape{1}, Shape{3, 1}, Shape{1, 3}, Shape{3, 4}, Shape{2, 3, 5}}) {
    const Tensor x = randn64(shape), weight = randn64({shape.back()}, 1);
    expect_gradients([](const Tensors& in) { return rms_norm(in[0], in[1], 0.1); },
                     NamedTensors{{"x", x}, {"weight", weight}});
    expect_gradients([](const Tensors& in) { return rms_norm(in[0], {}, 0.1); }, NamedTensors{{"x", x}});
    if (shape.back() == 1) continue;  // eps = 1e-6 alone keeps the sign of x from being all that is left
    expect_gradients(call, Tensors{x, weight});
    expect_gradients(call, Tensors{x});
    expect_gradients(call, Tensors{x.detach(), weight});
    expect_gradients(call, Tensors{x, weight.detach()});
    CHECK(call({x, weight}).shape() == shape);
  }
}

TEST_CASE("rms_norm: over several dimensions, strided, used twice") {
  const Tensor x = randn64({2, 3, 4}), weight = randn64({3, 4}, 1);
  expect_gradients(call, Tensors{x, weight});
  expect_gradients([](const Tensors& in) { return rms_norm(in[0], Shape{3, 4}, {}, 0.5); }, Tensors{x});
  expect_gradients(call, Tensors{strided(x), strided(weight)});
  expect_close(call({strided(x), strided(weight)}), call({x, weight}), 0);
  expect_close(reshape(call({x, weight}), {2, 12}), rms_norm(reshape(x, {2, 12}), reshape(weight, {12})), 0);
  expect_gradients([](const Tensors& in) { return rms_norm(rms_norm(in[0], in[1]), in[1]) + in[0]; },
                   Tensors{randn64({3, 4}), randn64({4}, 2)});
}

TEST_CASE("rms_norm: no rows, no elements") {
  for (const Shape& shape : {Shape{0, 3}, Shape{2, 0, 3}, Shape{3, 0}, Shape{0}}) {
    const Tensor x = randn64(shape), weight = randn64({shape.back()});
    CHECK(call({x, weight}).shape() == shape);
    expect_gradients(call, Tensors{x, weight}, {.allow_vacuous = true});
  }
}

TEST_CASE("rms_norm: values; eps under the root; the composed twin") {
  expect_close(rms_norm(Tensor::of({3, 4, 0, 0}, {.dtype = float64}), {}, 0), {1.2, 1.6, 0, 0});
  const Tensor tiny = full({4}, 1e-4, float64);
  expect_close(rms_norm(tiny, {}, 1e-5), std::vector<double>(4, 1e-4 / std::sqrt(1e-8 + 1e-5)));
  const Tensor x = randn64({4, 6}), weight = randn64({6}, 1), dy = randn64({4, 6}, 2);
  const auto second = [&](const Tensor& y) {
    const Tensor dx = grad({y}, {x}, {dy}, {.create_graph = true})[0];
    return grad({sum(dx * dx)}, {x, weight, dy});
  };
  const Tensor twin = weight * (x / sqrt(mean(x * x, {-1}, true) + 1e-6));
  expect_close(call({x, weight}), twin);
  const Tensors fused = second(call({x, weight})), composed = second(twin);
  for (std::size_t i = 0; i < 3; ++i) expect_close(fused[i], composed[i], 1e-10);
}

TEST_CASE("rms_norm: a row of zeros gives 0; the gradients are the same bits each time") {
  for (DType dtype : {float32, float64}) {
    const Tensor x = zeros({2, 4}, dtype).requires_grad_(), weight = ones({4}, dtype).requires_grad_();
    const Tensor dy = to(randn64({2, 4}).detach(), dtype), y = call({x, weight});
    expect_close(y, std::vector<double>(8, 0), 0);
    for (int run = 0; run < 10; ++run) {
      const Tensors d = grad({y}, {x, weight}, {dy}, {.keep_graph = true});
      expect_close(d[0] * 1e-3, dy, dtype == float32 ? 1e-6 : 1e-12);  // rstd = 1 / sqrt(1e-6)
      expect_close(d[1], std::vector<double>(4, 0), 0);
    }
  }
}

TEST_CASE("rms_norm: float32 is close to float64; the same bits with any number of threads") {
  const std::int64_t R = 700, n = 65;
  const Tensor x = to(randn64({R, n}).detach(), float32).requires_grad_();
  const Tensor weight = to(randn64({n}, 1).detach(), float32).requires_grad_();
  const Tensor dy = to(randn64({R, n}, 3).detach(), float32);
  const auto double_of = [](const Tensor& t) { return to(t.detach(), float64).requires_grad_(); };
  const Tensors inputs{x, weight}, inputs64{double_of(x), double_of(weight)};
  expect_close(call(inputs), call(inputs64), 2e-6);
  const Tensors d = grad({call(inputs)}, inputs, {dy}), d64 = grad({call(inputs64)}, inputs64, {to(dy, float64)});
  for (std::size_t i = 0; i < 2; ++i) expect_close(d[i], d64[i], 1e-5);
  const int before = num_threads();
  for (int threads : {1, 2, 3, 5}) {
    set_num_threads(threads);
    const Tensors again = grad({call(inputs)}, inputs, {dy});
    for (std::size_t i = 0; i < 2; ++i) expect_close(again[i], d[i], 0);
  }
  set_num_threads(before);
}

TEST_CASE("rms_norm: refusals") {
  const Tensor x = ones({2, 3});
  expect_error([&] { rms_norm(x, ones({4})); }, {"rms_norm", "[2, 3]", "[4]"});
  expect_error([&] { rms_norm(x, Shape{3}, ones({2}), 0); }, {"rms_norm", "[3]", "[2]"});
  expect_error([&] { rms_norm(x, ones({3}, float64)); }, {"rms_norm", "float32", "float64"});
  expect_error([&] { rms_norm(x, {}, -1); }, {"rms_norm", "eps", "-1"});
  expect_error([&] { rms_norm(Tensor::scalar(1)); }, {"rms_norm", "[..., n]"});
  expect_error([&] { rms_norm(Tensor()); }, "rms_norm");
  expect_error([&] { rms_norm(ones({2, 3}, int64)); }, {"rms_norm", "int64"});
}

}  // namespace
}  // namespace prenorm
