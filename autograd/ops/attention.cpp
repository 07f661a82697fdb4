// Scaled dot-product attention (Vaswani et al. 2017, "Attention Is All You Need", equation 1):
//
//   y = p v,  p = softmax(s),  s = scale * q k^T where a query may look, the masked score elsewhere
//
// q [..., Tq, D], k [..., Tk, D], v [..., Tk, Dv]; p [..., Tq, Tk], scale = 1 / sqrt(D).
//
// The masked score is -inf, or a large negative number such as -1e9. They differ only in a row with nothing to look at:
// with -1e9 all scores are equal and so are the weights; with -inf the softmax would be 0 / 0, and its weights are
// defined as 0, so that y = 0.
//
// Derivation: v and p meet in a product, p is the softmax of s (softmax.cpp), and s is a product again:
//     dv = p^T dy,  dp = dy v^T
//     ds = p * (dp - sum_j dp * p) where the query may look, 0 elsewhere: a masked score is a constant
//     dq = scale * ds k,  dk = scale * ds^T q

#include <cmath>
#include <limits>

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"
#include "autograd/vec_math.h"

namespace prenorm {
namespace {

// Scores to weights, in place. see [rows, n]: where a query may look, null where everywhere.
template <class T>
PRENORM_VECTORIZED void weigh_rows(std::int64_t rows, std::int64_t n, T scale, T masked, const bool* see, T* p) {
  constexpr T kInf = std::numeric_limits<T>::infinity();
  for (std::int64_t r = 0; r < rows; ++r, p += n, see += see != nullptr ? n : 0) {
    T largest = -kInf;
    bool any = false;
    if (see == nullptr) {
      any = true;
#pragma omp simd
      for (std::int64_t j = 0; j < n; ++j) p[j] *= scale;
    } else {
      for (std::int64_t j = 0; j < n; ++j) any = any || see[j];
      for (std::int64_t j = 0; j < n; ++j) p[j] = see[j] ? p[j] * scale : masked;
    }
    if (!any && masked == -kInf) {
      for (std::int64_t j = 0; j < n; ++j) p[j] = 0;
      continue;
    }
#pragma omp simd reduction(max : largest)
    for (std::int64_t j = 0; j < n; ++j) largest = p[j] > largest ? p[j] : largest;
    T total = 0;
#pragma omp simd reduction(+ : total)
    for (std::int64_t j = 0; j < n; ++j) {
      p[j] = vec::exp(p[j] - largest);
      total += p[j];
    }
    const T share = 1 / total;
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) p[j] *= share;
  }
}

// dp to scale * ds, in place.
template <class T>
PRENORM_VECTORIZED void weigh_backward_rows(std::int64_t rows, std::int64_t n, T scale, const bool* see, const T* p,
                                            T* dp) {
  for (std::int64_t r = 0; r < rows; ++r, p += n, dp += n) {
    T dot = 0;
#pragma omp simd reduction(+ : dot)
    for (std::int64_t j = 0; j < n; ++j) dot += dp[j] * p[j];
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) dp[j] = scale * p[j] * (dp[j] - dot);
    if (see == nullptr) continue;
    for (std::int64_t j = 0; j < n; ++j) dp[j] = see[j] ? dp[j] : T{0};
    see += n;
  }
}

// Calls f(first row, number of rows, row length) for blocks of the rows of x [..., n].
template <class F>
void for_rows(const Tensor& x, F f) {
  const std::int64_t n = x.size(-1), rows = n > 0 ? x.numel() / n : 0;
  parallel_rows(rows, n * 8, [&](std::int64_t begin, std::int64_t end) { f(begin, end - begin, n); });
}

// Where queries may look, dense of the shape of the scores [..., Tq, Tk]; undefined where everywhere.
Tensor visible(const Tensor& mask, bool causal, const Shape& scores) {
  if (!mask.defined() && !causal) return {};
  if (!causal) return dense(expand(mask, scores));
  Tensor see = Tensor::empty(scores, boolean);
  if (mask.defined()) {
    copy_(see, mask);
  } else {
    fill_(see, 1);
  }
  bool* row = see.mutable_data<bool>();
  const std::int64_t Tq = scores[scores.dims() - 2], Tk = scores.back();
  for (std::int64_t r = 0; Tk > 0 && r < see.numel() / Tk; ++r, row += Tk) {
    for (std::int64_t j = r % Tq + 1; j < Tk; ++j) row[j] = false;
  }
  return see;
}

Tensor transposed(const Tensor& x) { return transpose(x, -2, -1); }

// Inputs q, k, v of equal leading dimensions and mask, maybe undefined; outputs y and p.
struct Attention final : Node {
  Attention(bool causal, double masked_score, double scale)
      : causal(causal), masked_score(masked_score), scale(scale) {}
  const bool causal;
  const double masked_score, scale;

  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "scaled_dot_product_attention",
                                 .formula = "y = p v, p = softmax(scale * q k^T, masked)",
                                 .derivative =
                                     "dv = p^T dy; dp = dy v^T; ds = p * (dp - sum(dp * p)), 0 where masked; "
                                     "dq = scale * ds k; dk = scale * ds^T q",
                                 .reference = "Vaswani et al. 2017, Attention Is All You Need, eq. 1",
                                 .file = "autograd/ops/attention.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    const Tensor p = matmul(in[0], transposed(in[1]));  // scores; the kernel makes weights of them
    const Tensor see = visible(in[3], causal, p.shape());
    dispatch_float(info().name, p.dtype(), [&](auto t) {
      using T = decltype(t);
      T* to = p.mutable_data<T>();
      const bool* may = see.defined() ? see.data<bool>() : nullptr;
      for_rows(p, [&](std::int64_t first, std::int64_t rows, std::int64_t n) {
        weigh_rows(rows, n, static_cast<T>(scale), static_cast<T>(masked_score),
                   may != nullptr ? may + first * n : nullptr, to + first * n);
      });
    });
    return {matmul(p, in[2]), p};
  }

  Saves saves() const override { return {.inputs = {0, 1, 2, 3}, .outputs = {1}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    const Tensor q = input(0), k = input(1), v = input(2);
    const Tensor see = visible(has_input(3) ? input(3) : Tensor(), causal, output_shape(1));
    const Tensor p = GradMode::enabled() ? weights_formula(q, k, see) : output(1);
    if (dx.needs(2)) dx.add(2, matmul(transposed(p), dy[0]));
    if (!dx.needs(0) && !dx.needs(1)) return;
    const Tensor dp = matmul(dy[0], transposed(v));
    const Tensor ds = GradMode::enabled() ? scores_formula(p, dp, see) : scores_kernel(p, dp, see);
    if (dx.needs(0)) dx.add(0, matmul(ds, k));
    if (dx.needs(1)) dx.add(1, matmul(transposed(ds), q));
  }

 private:
  // scale * ds, written over dp.
  Tensor scores_kernel(const Tensor& p, const Tensor& dp, const Tensor& see) const {
    dispatch_float(info().name, p.dtype(), [&](auto t) {
      using T = decltype(t);
      const T* from = p.data<T>();
      T* to = dp.mutable_data<T>();
      const bool* may = see.defined() ? see.data<bool>() : nullptr;
      for_rows(p, [&](std::int64_t first, std::int64_t rows, std::int64_t n) {
        weigh_backward_rows(rows, n, static_cast<T>(scale), may != nullptr ? may + first * n : nullptr,
                            from + first * n, to + first * n);
      });
    });
    return dp;
  }

  // p and scale * ds in ops, to be differentiated again.
  Tensor weights_formula(const Tensor& q, const Tensor& k, const Tensor& see) const {
    const Tensor scores = matmul(q, transposed(k)) * scale;
    if (!see.defined()) return softmax(scores);
    const Tensor hidden = logical_not(see);
    const Tensor masked = masked_fill(scores, hidden, masked_score);
    if (masked_score != -INFINITY) return softmax(masked);
    // A row that sees nothing goes through the softmax with a finite score, and its weights become 0 afterwards.
    const Tensor blind = eq(sum(to(see, int64), {-1}, true), zeros({}, int64));
    return masked_fill(softmax(masked_fill(masked, blind, 0)), hidden, 0);
  }
  Tensor scores_formula(const Tensor& p, const Tensor& dp, const Tensor& see) const {
    const Tensor ds = scale * p * (dp - sum(dp * p, {-1}, true));
    return see.defined() ? masked_fill(ds, logical_not(see), 0) : ds;
  }
};

Shape leading(const Tensor& x) { return Shape(x.shape().begin(), x.shape().end() - 2); }

Tensor with_leading(const Tensor& x, Shape shape) {
  shape.push_back(x.size(-2));
  shape.push_back(x.size(-1));
  return expand(x, shape);
}

}  // namespace

AttentionResult scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                                             const AttentionOptions& options) {
  constexpr std::string_view op = "scaled_dot_product_attention";
  check_same_dtype(op, q, k);
  check_same_dtype(op, q, v);
  check(q.dims() >= 2 && k.dims() >= 2 && v.dims() >= 2 && q.size(-1) == k.size(-1) && k.size(-2) == v.size(-2), op,
        ": expected q [..., Tq, D], k [..., Tk, D], v [..., Tk, Dv], got ", q.shape(), ", ", k.shape(), ", ",
        v.shape());
  const std::int64_t Tq = q.size(-2), Tk = k.size(-2), D = q.size(-1);
  const Shape lead = broadcast_shapes(op, broadcast_shapes(op, leading(q), leading(k)), leading(v));
  Shape scores = lead;
  scores.push_back(Tq);
  scores.push_back(Tk);
  static_cast<void>(numel(scores));  // an overflow is an error here, before operands are copied
  check(!mask.defined() || (mask.dtype() == boolean && broadcasts_to(mask.shape(), scores)), op,
        ": mask is bool (true: may look) and broadcasts to the scores ", scores, ", got ",
        mask.defined() ? mask.dtype() : boolean, " ", mask.defined() ? mask.shape() : Shape{});
  check(!options.causal || Tq == Tk, op, ": causal needs as many queries as keys, got ", Tq, " and ", Tk);
  check(options.masked_score < INFINITY, op, ": the masked score is -inf or a large negative number, got ",
        options.masked_score);
  const double scale = options.scale.value_or(D > 0 ? 1 / std::sqrt(static_cast<double>(D)) : 1);
  const Tensors outputs =
      apply_op<Attention>({with_leading(q, lead), with_leading(k, lead), with_leading(v, lead), mask}, options.causal,
                          options.masked_score, scale);
  return {outputs[0], outputs[1].detach()};
}

}  // namespace prenorm
