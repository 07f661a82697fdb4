#include "autograd/ops/op_checks.h"
#include "autograd/parallel.h"

namespace prenorm {
namespace {

// The same from ops: heads cut out, attention, heads put back side by side.
Tensor composed(const Tensor& qkv, std::int64_t H) {
  const std::int64_t B = qkv.size(0), T = qkv.size(1), C = qkv.size(2) / 3;
  const auto heads = [&](std::int64_t part) {
    return transpose(reshape(slice(qkv, 2, part * C, (part + 1) * C), {B, T, H, C / H}), 1, 2);
  };
  const Tensor y = scaled_dot_product_attention(heads(0), heads(1), heads(2), {}, {.causal = true}).y;
  return reshape(transpose(y, 1, 2), {B, T, C});
}

TEST_CASE("causal_attention_packed: gradients") {
  for (const auto& [B, T, H, D] : std::initializer_list<std::array<std::int64_t, 4>>{
           {1, 1, 1, 1}, {2, 3, 2, 2}, {1, 5, 1, 3}, {2, 9, 1, 1}, {1, 4, 3, 2}}) {
    const auto f = [H = H](const Tensors& in) { return causal_attention_packed(in[0], H); };
    const Tensor qkv = randn64({B, T, 3 * H * D});
    expect_gradients(f, Tensors{qkv});
    expect_gradients(f, Tensors{strided(qkv)});
    CHECK(f({qkv}).shape() == Shape{B, T, H * D});
  }
  expect_gradients(
      [](const Tensors& in) {
        const Tensor y = causal_attention_packed(in[0], 2);
        return causal_attention_packed(concat({y, y * y, y}, 2), 1) + y;
      },
      Tensors{randn64({1, 3, 12})});
}

TEST_CASE("causal_attention_packed: no batch, no positions") {
  for (const Shape& shape : {Shape{0, 3, 6}, Shape{2, 0, 6}}) {
    const Tensor qkv = randn64(shape);
    CHECK(causal_attention_packed(qkv, 2).shape() == Shape{shape[0], shape[1], 2});
    expect_gradients([](const Tensors& in) { return causal_attention_packed(in[0], 2); }, Tensors{qkv},
                     {.allow_vacuous = true});
  }
}

TEST_CASE("causal_attention_packed: the composed twin, at lengths and widths around those of vectors") {
  for (DType dtype : {float64, float32}) {
    const double tolerance = dtype == float32 ? 2e-5 : 1e-11;
    for (std::int64_t T :
         {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 66, 128, 131, 530}) {  // the last in several blocks
      for (std::int64_t D : {1, 7, 8, 16, 17, 35}) {
        if ((T > 33 && D != 7 && D != 16) || (T > 131 && D != 7)) continue;
        const std::int64_t B = 2, H = 3;
        const Tensor qkv = to(randn64({B, T, 3 * H * D}).detach(), dtype).requires_grad_();
        const Tensor dy = to(randn64({B, T, H * D}, 1).detach(), dtype);
        const Tensor y = causal_attention_packed(qkv, H), twin = composed(qkv, H);
        expect_close(y, twin, tolerance);
        // Another call between forward and backward gets the same scratch memory: nothing may be left to find there.
        causal_attention_packed(qkv.detach() * 0.5, H);
        const Tensor dx = grad({y}, {qkv}, {dy})[0];
        expect_close(dx, grad({twin}, {qkv}, {dy})[0], tolerance);
      }
    }
  }
}

TEST_CASE("causal_attention_packed: the composed twin, second order") {
  const Tensor qkv = randn64({2, 6, 24}), dy = randn64({2, 6, 8}, 1);
  const auto second = [&](const Tensor& y) {
    const Tensor dx = grad({y}, {qkv}, {dy}, {.create_graph = true})[0];
    return grad({sum(dx * dx * dx)}, {qkv, dy});
  };
  const Tensors fused = second(causal_attention_packed(qkv, 2)), twin = second(composed(qkv, 2));
  for (std::size_t i = 0; i < 2; ++i) expect_close(fused[i], twin[i], 1e-10);
}

TEST_CASE("causal_attention_packed: gradients are added to what is there") {
  for (std::int64_t D : {5, 16}) {
    const Tensor qkv = to(randn64({2, 20, 3 * 2 * D}).detach(), float32).requires_grad_();
    const Tensor once = grad({sum(causal_attention_packed(qkv, 2))}, {qkv})[0];
    const Tensor y = sum(qkv) + sum(causal_attention_packed(qkv, 2)) + sum(causal_attention_packed(qkv, 2));
    expect_close(grad({y}, {qkv})[0], once + once + 1, 1e-6);
  }
}

TEST_CASE("causal_attention_packed: the future is not seen, bit for bit, and gets a gradient of exactly 0") {
  for (std::int64_t T : {6, 40}) {
    const Tensor qkv = to(randn64({1, T, 24}).detach(), float32).requires_grad_();
    const Tensor y = causal_attention_packed(qkv, 2);
    for (std::int64_t t : {std::int64_t{0}, std::int64_t{3}, T / 2, T - 1}) {
      const Tensor moved = clone(qkv.detach());
      fill_(slice(moved, 1, t, t + 1), 50);
      const Tensor changed = causal_attention_packed(moved, 2);
      expect_close(slice(changed, 1, 0, t), slice(y, 1, 0, t), 0);
      for (std::int64_t later = t; later < T; ++later) {
        CHECK_FALSE(allclose(slice(changed, 1, later, later + 1), slice(y, 1, later, later + 1)));
      }
      // From position t alone.
      const Tensor dy = zeros_like(y);
      fill_(slice(dy, 1, t, t + 1), 1);
      for (bool create_graph : {false, true}) {
        const Tensor dx = grad({y}, {qkv}, {dy}, {.create_graph = create_graph, .keep_graph = true})[0];
        expect_close(slice(dx, 1, t + 1, T), zeros_like(slice(dx, 1, t + 1, T)), 0);
      }
    }
  }
}

TEST_CASE("causal_attention_packed: values: scores of zero give the mean of the past; huge scores choose one") {
  const Tensor v = Tensor::of({1, 2, 6, 7}, {4, 1}, {.dtype = float64});
  const Tensor flat = reshape(concat({zeros({4, 2}, float64), v}, 1), {1, 4, 3});
  expect_close(causal_attention_packed(flat, 1), {1, 1.5, 3, 4});
  for (DType dtype : {float32, float64}) {
    // q 100 everywhere; k is largest at position 1.
    const Tensor qkv =
        Tensor::of({100, 0, 1, 100, 100, 2, 100, -100, 3}, {1, 3, 3}, {.dtype = dtype, .requires_grad = true});
    const Tensor y = causal_attention_packed(qkv, 1);
    expect_close(y, {1, 2, 2}, 1e-7);
    expect_gradient(y, qkv, {0, 0, 1, 0, 0, 2, 0, 0, 0}, 1e-7);
  }
}

TEST_CASE("causal_attention_packed: the same bits with any number of threads") {
  const Tensor qkv = to(randn64({9, 33, 96}).detach(), float32).requires_grad_();
  const Tensor dy = to(randn64({9, 33, 32}, 1).detach(), float32);
  const Tensor y = causal_attention_packed(qkv, 2), dx = grad({y}, {qkv}, {dy})[0];
  const int before = num_threads();
  for (int threads : {1, 2, 3}) {
    set_num_threads(threads);
    const Tensor again = causal_attention_packed(qkv, 2);
    expect_close(again, y, 0);
    expect_close(grad({again}, {qkv}, {dy})[0], dx, 0);
  }
  set_num_threads(before);
}

TEST_CASE("causal_attention_packed: refusals") {
  const std::string_view op = "causal_attention_packed";
  expect_error([&] { causal_attention_packed(ones({2, 3, 8}), 2); }, {op, "[2, 3, 8]", "H = 2"});
  expect_error([&] { causal_attention_packed(ones({2, 3, 0}), 2); }, {op, "[2, 3, 0]"});
  expect_error([&] { causal_attention_packed(ones({3, 6}), 2); }, {op, "[3, 6]"});
  expect_error([&] { causal_attention_packed(ones({2, 3, 6}), 0); }, {op, "H = 0"});
  expect_error([&] { causal_attention_packed(ones({2, 3, 6}), -1); }, {op, "H = -1"});
  expect_error([&] { causal_attention_packed(ones({2, 3, 6}, int64), 1); }, {op, "int64"});
  expect_error([&] { causal_attention_packed(Tensor(), 1); }, op);
}

}  // namespace
}  // namespace prenorm
