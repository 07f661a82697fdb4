// gelu: y = x Phi(x), Phi the standard normal distribution function (Hendrycks, Gimpel 2016, "Gaussian Error Linear
// Units", section 2), in two forms:
//
//   exact   Phi(x) = (1 + erf(x / sqrt 2)) / 2
//   tanh    Phi(x) ~ (1 + t) / 2,  t = tanh u,  u = k (x + c x^3),  k = sqrt(2 / pi), c = 0.044715
//
// Derivation: by the product rule dy/dx = Phi(x) + x Phi'(x), where
//   exact   Phi'(x) = phi(x) = e^(-x^2 / 2) / sqrt(2 pi)
//   tanh    Phi'(x) = (1 - t^2) / 2 * du/dx,  du/dx = k (1 + 3 c x^2)
// and dx = dy * dy/dx.

#include <cmath>

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"
#include "autograd/vec_math.h"

namespace prenorm {
namespace {

constexpr double kSqrtHalf = 0.70710678118654752440;    // 1 / sqrt(2)
constexpr double kInvSqrt2Pi = 0.39894228040143267794;  // 1 / sqrt(2 pi)
constexpr double kK = 0.79788456080286535588;           // sqrt(2 / pi)
constexpr double kC = 0.044715;

template <class T>
[[gnu::always_inline]] inline T phi_exact(T x) {
  return T(0.5) * (1 + vec::erf(x * T(kSqrtHalf)));
}

template <class T>
[[gnu::always_inline]] inline T tanh_u(T x) {
  return vec::tanh(T(kK) * x * (1 + T(kC) * x * x));
}

template <class T>
[[gnu::always_inline]] inline T slope_exact(T x) {
  return phi_exact(x) + x * T(kInvSqrt2Pi) * vec::exp(T(-0.5) * x * x);
}

template <class T>
[[gnu::always_inline]] inline T slope_tanh(T x) {
  const T t = tanh_u(x);
  return T(0.5) * (1 + t + x * (1 - t * t) * T(kK) * (1 + T(3 * kC) * x * x));
}

// Phi as an op, for second derivatives of the exact form.
struct NormalCdf final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "normal_cdf",
                                 .formula = "y = (1 + erf(x / sqrt 2)) / 2",
                                 .derivative = "dx = dy * e^(-x^2 / 2) / sqrt(2 pi)",
                                 .reference = "",
                                 .file = "autograd/ops/gelu.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    return {map("normal_cdf", in[0], [](auto x) { return phi_exact(x); })};
  }

  Saves saves() const override { return {.inputs = {0}}; }

  static Tensor density(const Tensor& x) { return kInvSqrt2Pi * exp(-0.5 * (x * x)); }
  void backward(const Tensors& dy, GradientSink& dx) const override { dx.add(0, dy[0] * density(input(0))); }
};

struct GeluNode final : Node {
  explicit GeluNode(Gelu form) : form(form) {}
  const Gelu form;

  const OpInfo& info() const override {
    static constexpr OpInfo exact{.name = "gelu",
                                  .formula = "y = x * Phi(x), Phi(x) = (1 + erf(x / sqrt 2)) / 2",
                                  .derivative = "dx = dy * (Phi(x) + x * e^(-x^2 / 2) / sqrt(2 pi))",
                                  .reference = "Hendrycks, Gimpel 2016, Gaussian Error Linear Units, section 2",
                                  .file = "autograd/ops/gelu.cpp"};
    static constexpr OpInfo tanh{
        .name = "gelu",
        .formula = "y = x * (1 + t) / 2, t = tanh(k * (x + c * x^3)), k = sqrt(2 / pi), c = 0.044715",
        .derivative = "dx = dy * ((1 + t) / 2 + x * (1 - t^2) / 2 * k * (1 + 3 * c * x^2))",
        .reference = "Hendrycks, Gimpel 2016, Gaussian Error Linear Units, section 2",
        .file = "autograd/ops/gelu.cpp"};
    return form == Gelu::exact ? exact : tanh;
  }

  Tensors forward(const Tensors& in) const override {
    if (form == Gelu::exact) return {map("gelu", in[0], [](auto x) { return x * phi_exact(x); })};
    return {map("gelu", in[0], [](auto x) { return decltype(x)(0.5) * x * (1 + tanh_u(x)); })};
  }

  Saves saves() const override { return {.inputs = {0}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    const Tensor& x = input(0);
    if (GradMode::enabled()) return dx.add(0, dy[0] * slope(x));
    dx.add(0, form == Gelu::exact ? zip_float("gelu", dy[0], x, [](auto d, auto v) { return d * slope_exact(v); })
                                  : zip_float("gelu", dy[0], x, [](auto d, auto v) { return d * slope_tanh(v); }));
  }

  // dy/dx in ops, to be differentiated again.
  Tensor slope(const Tensor& x) const {
    if (form == Gelu::exact) return apply_op<NormalCdf>({x})[0] + x * NormalCdf::density(x);
    const Tensor squares = x * x, t = tanh(kK * (x * (1 + kC * squares)));
    return 0.5 * (1 + t + x * (1 - t * t) * (kK * (1 + 3 * kC * squares)));
  }
};

}  // namespace

Tensor gelu(const Tensor& x, Gelu form) { return apply_op<GeluNode>({x}, form)[0]; }

}  // namespace prenorm
