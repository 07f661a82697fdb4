// Causal self-attention over packed heads
#include <cmath>

#include "autograd/blas.h"
#include "autograd/node.h"
#include "autograd/ops/pointwise.h"
#include "autograd/vec_math.h"

namespace prenorm {
namespace {

struct CausalAttention final : Node {
  explicit CausalAttention(std::int64_t heads) : heads(heads) {}
  const std::int64_t heads;

  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "causal_attention_packed",
                                 .formula = "y = softmax(q k^T / sqrt(D), masked) v",
                                 .derivative = "",
                                 .reference = "",
                                 .file = "autograd/ops/causal_attention.cpp"};
    return info;
  }
  Tensors forward(const Tensors& in) const override { return {composed(in[0])}; }
  Saves saves() const override { return {.inputs = {0}}; }
  void backward(const Tensors& dy, GradientSink& dx) const override {
    const Tensor x = GradMode::enabled() ? input(0) : input(0).requires_grad_();
    const SetGrad on(true);
    dx.add(0, grad({composed(x)}, {x}, {dy[0]}, {.create_graph = false})[0]);
  }
  Tensor composed(const Tensor& qkv) const {
    const std::int64_t B = qkv.size(0), T = qkv.size(1), C = qkv.size(2) / 3;
    const auto part = [&](int i) {
      return transpose(reshape(slice(qkv, 2, i * C, (i + 1) * C), {B, T, heads, C / heads}), 1, 2);
    };
    return reshape(transpose(scaled_dot_product_attention(part(0), part(1), part(2), {}, {.causal = true}).y, 1, 2),
                   {B, T, C});
  }
};

}  // namespace

Tensor causal_attention_packed(const Tensor& qkv, std::int64_t heads) {
  check(qkv.defined() && qkv.dims() == 3 && heads >= 1 && qkv.size(2) % (3 * heads) == 0,
        "causal_attention_packed: expected qkv [B, T, 3 * H * D] with H = ", heads, ", got ",
        qkv.defined() ? qkv.shape() : Shape{});
  return apply_op<CausalAttention>({qkv}, heads)[0];
}

}  // namespace prenorm
