// Causal self-attention over packed heads (Vaswani et al. 2017, "Attention Is All You Need", equation 1):
//
//   y_i = sum_j p_ij v_j,  p_i = softmax over j <= i of s_ij,  s_ij = q_i . k_j / sqrt(D)
//
// for each batch entry and head. qkv [B, T, 3 * H * D] holds the q, k and v of all heads side by side, as a linear
// layer makes them; y [B, T, H * D]. attention.cpp has the general op; here nothing is permuted, copied or masked for
// it.
//
// Derivation: as in attention.cpp. A query looks at keys j <= i, so a key is seen by queries i >= j:
//     dv_j = sum_{i >= j} p_ij dy_i                  dp_ij = dy_i . v_j
//     ds_ij = p_ij (dp_ij - sum_j p_ij dp_ij)
//     dq_i = sum_{j <= i} ds_ij k_j / sqrt(D)        dk_j = sum_{i >= j} ds_ij q_i / sqrt(D)
//   What stands later than i has no part in y_i, and its gradient from y_i is exactly 0. (As elsewhere a weight of 0
//   times what is not finite is NaN: a NaN or infinity in v may be seen up to three positions earlier.)
//
// Kernels: a block of queries at a time against all keys that one of them looks at, so that p and ds stay in the second
// cache however long the sequence is. They are held key by key, p[j][i]: the softmax runs down columns, for a whole
// vector of queries at a time, and all products are of the form of multiply(), with sums that skip what no query may
// look at.

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/small_products.h"
#include "autograd/vec_math.h"

namespace prenorm {
namespace {

// One head of one batch entry, and scratch. Rows that are read often are packed first: heads that lie a power of two
// apart are slow to read.
template <class Real>
struct Head {
  std::int64_t T, D;
  std::int64_t block;  // queries of a block: a multiple of kLanes
  bool many_registers;
  Real scale;
  Rows<const Real> q, k, v;
  Rows<Real> keys;     // [T, padded D]: v or k
  Rows<Real> queries;  // [block, padded D]: q or dy of a block
  Rows<Real> lanes;    // [D, block]: q or dy of a block transposed, one query a lane
  Rows<Real> product;  // [4, padded D]
  Rows<Real> p, ds;    // [T, block], key by key
};

// Queries [begin, end) of a head.
struct Queries {
  std::int64_t begin, end;

  std::int64_t size() const { return end - begin; }
};

template <class Real, class F>
void for_blocks(const Head<Real>& head, F f) {
  for (std::int64_t begin = 0; begin < head.T; begin += head.block) {
    f(Queries{begin, std::min(head.T, begin + head.block)});
  }
}

// Fewer queries the more keys there are: p and ds of a block take at most 512 KiB, or a vector's width.
template <class Real>
std::int64_t queries_at_once(std::int64_t T) {
  constexpr std::int64_t kMost = 512 * 1024 / (2 * sizeof(Real)), W = kLanes<Real>;
  return std::clamp(kMost / T / W * W, W, padded<Real>(T));
}

template <class Real>
PRENORM_VECTORIZED void pack(const Head<Real>& head, std::int64_t rows, Rows<const Real> x, Rows<Real> to) {
  copy_rows<false, Real>(rows, head.D, x, to);
}

template <class Real>
PRENORM_VECTORIZED void transpose_to_lanes(const Head<Real>& head, Queries block, Rows<const Real> x) {
  constexpr int W = kLanes<Real>;
  for (std::int64_t i = 0; i < block.size(); i += W) {
    const int n = static_cast<int>(std::min<std::int64_t>(W, block.size() - i));
    for (std::int64_t d = 0; d < head.D; ++d) {
      const Real* column = x[block.begin + i] + d;
      Real* to = head.lanes[d] + i;
      if (n == W) {
#pragma omp simd
        for (int l = 0; l < W; ++l) to[l] = column[l * x.stride];
      } else {
        for (int l = 0; l < W; ++l) to[l] = l < n ? column[l * x.stride] : Real{0};
      }
    }
  }
}

// to[j][i] = x_j . (query i in lanes), for all i from the vector of queries on that j stands in.
template <class Real>
PRENORM_VECTORIZED void dot_products(const Head<Real>& head, Queries block, Rows<const Real> x, Rows<Real> to) {
  for (std::int64_t j = 0; j < block.end; j += 4) {
    const std::int64_t i = std::max<std::int64_t>(j - block.begin, 0) / kLanes<Real> * kLanes<Real>;
    multiply<false, Real>(head.many_registers, std::min<std::int64_t>(4, block.end - j), padded<Real>(block.size()) - i,
                          head.D, x.from(j, 0), head.lanes.from(0, i), to.from(j, i));
  }
}

template <class Real>
[[gnu::always_inline]] inline void take_product(const Head<Real>& head, std::int64_t rows, Rows<Real> to, bool add) {
  if (add) {
    copy_rows<true, Real>(rows, head.D, head.product, to);
  } else {
    copy_rows<false, Real>(rows, head.D, head.product, to);
  }
}

// to_i (+)= sum over j <= i of a[j][i] (key j), for the queries i of a block.
template <class Real>
PRENORM_VECTORIZED void sum_over_keys(const Head<Real>& head, Queries block, Rows<const Real> a, Rows<Real> to,
                                      bool add) {
  for (std::int64_t i = 0; i < block.size(); i += 4) {
    const std::int64_t rows = std::min<std::int64_t>(4, block.size() - i);
    multiply<true, Real>(head.many_registers, rows, padded<Real>(head.D), block.begin + i + rows, a.from(0, i),
                         head.keys, head.product);
    take_product(head, rows, to.from(block.begin + i, 0), add);
  }
}

// to_j (+)= sum over the i >= j of a block of a[j][i] (query i); those of earlier blocks are there already.
template <class Real>
PRENORM_VECTORIZED void sum_over_queries(const Head<Real>& head, Queries block, Rows<const Real> a, Rows<Real> to,
                                         bool add) {
  for (std::int64_t j = 0; j < block.end; j += 4) {
    const std::int64_t rows = std::min<std::int64_t>(4, block.end - j), i = std::max<std::int64_t>(j - block.begin, 0);
    multiply<false, Real>(head.many_registers, rows, padded<Real>(head.D), block.size() - i, a.from(j, i),
                          head.queries.from(i, 0), head.product);
    take_product(head, rows, to.from(j, 0), add || j < block.begin);
  }
}

// Scores p[j][i] to weights: softmax over j <= i, and 0 for a j > i in i's vector; further on nobody looks.
template <class Real>
PRENORM_VECTORIZED void causal_softmax(const Head<Real>& head, Queries block) {
  constexpr std::int64_t W = kLanes<Real>;
  constexpr Real kInf = std::numeric_limits<Real>::infinity();
  for (std::int64_t i = 0; i < block.size(); i += W) {  // W queries at once
    const std::int64_t first = block.begin + i, end = std::min(block.end, first + W);
    const Rows<Real> s = head.p.from(0, i);
    for (std::int64_t j = first; j < end; ++j) {
      Real* at_j = s[j];
      const int earlier = static_cast<int>(j - first);
#pragma omp simd
      for (int l = 0; l < W; ++l) at_j[l] = l < earlier ? -kInf : at_j[l];
    }
    Real largest[W], total[W] = {};
    std::fill_n(largest, W, -kInf);
    for (std::int64_t j = 0; j < end; ++j) {
      const Real* at_j = s[j];
#pragma omp simd
      for (std::int64_t l = 0; l < W; ++l) largest[l] = at_j[l] > largest[l] ? at_j[l] : largest[l];
    }
    for (std::int64_t j = 0; j < end; ++j) {
      Real* at_j = s[j];
#pragma omp simd
      for (std::int64_t l = 0; l < W; ++l) {
        at_j[l] = vec::exp((at_j[l] - largest[l]) * head.scale);
        total[l] += at_j[l];
      }
    }
#pragma omp simd
    for (std::int64_t l = 0; l < W; ++l) total[l] = 1 / total[l];
    for (std::int64_t j = 0; j < end; ++j) {
      Real* at_j = s[j];
#pragma omp simd
      for (std::int64_t l = 0; l < W; ++l) at_j[l] *= total[l];
    }
  }
}

// dp, in head.ds, to ds / sqrt(D).
template <class Real>
PRENORM_VECTORIZED void causal_softmax_backward(const Head<Real>& head, Queries block) {
  constexpr std::int64_t W = kLanes<Real>;
  for (std::int64_t i = 0; i < block.size(); i += W) {
    const std::int64_t end = std::min(block.end, block.begin + i + W);
    Real dot[W] = {};
    for (std::int64_t j = 0; j < end; ++j) {
      const Real *p = head.p[j] + i, *dp = head.ds[j] + i;
#pragma omp simd
      for (std::int64_t l = 0; l < W; ++l) dot[l] += p[l] * dp[l];
    }
    for (std::int64_t j = 0; j < end; ++j) {
      const Real* p = head.p[j] + i;
      Real* ds = head.ds[j] + i;
#pragma omp simd
      for (std::int64_t l = 0; l < W; ++l) ds[l] = head.scale * p[l] * (ds[l] - dot[l]);
    }
  }
}

template <class Real>
void weigh(const Head<Real>& head, Queries block) {
  transpose_to_lanes(head, block, head.q);
  dot_products(head, block, head.k, head.p);
  causal_softmax(head, block);
}

template <class Real>
void forward_head(const Head<Real>& head, Rows<Real> y) {
  pack(head, head.T, head.v, head.keys);
  for_blocks(head, [&](Queries block) {
    weigh(head, block);
    sum_over_keys<Real>(head, block, head.p, y, false);
  });
}

template <class Real>
void backward_head(const Head<Real>& head, Rows<const Real> dy, Rows<Real> dq, Rows<Real> dk, Rows<Real> dv, bool add) {
  pack(head, head.T, head.k, head.keys);
  for_blocks(head, [&](Queries block) {
    weigh(head, block);
    pack(head, block.size(), dy.from(block.begin, 0), head.queries);
    sum_over_queries<Real>(head, block, head.p, dv, add);
    transpose_to_lanes(head, block, dy);
    dot_products(head, block, head.v, head.ds);
    causal_softmax_backward(head, block);
    sum_over_keys<Real>(head, block, head.ds, dq, add);
    pack(head, block.size(), head.q.from(block.begin, 0), head.queries);
    sum_over_queries<Real>(head, block, head.ds, dk, add);
  });
}

// Input qkv [B, T, 3 * H * D]; output y [B, T, H * D]. Backward forms the weights anew: that takes no longer than to
// write them to memory and read them again, and what they would need there grows with T^2.
struct CausalAttention final : Node {
  explicit CausalAttention(std::int64_t heads) : H(heads) {}
  const std::int64_t H;

  const OpInfo& info() const override {
    static constexpr OpInfo info{
        .name = "causal_attention_packed",
        .formula = "y_i = sum_j p_ij v_j over j <= i, p_i = softmax_j(q_i . k_j / sqrt(D))",
        .derivative =
            "dv_j = sum_i p_ij dy_i; dp_ij = dy_i . v_j; ds_ij = p_ij (dp_ij - sum_j p_ij dp_ij) / sqrt(D); "
            "dq_i = sum_j ds_ij k_j; dk_j = sum_i ds_ij q_i",
        .reference = "Vaswani et al. 2017, Attention Is All You Need, eq. 1",
        .file = "autograd/ops/causal_attention.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    const Tensor qkv = dense(in[0]);
    const std::int64_t B = qkv.size(0), T = qkv.size(1), C = qkv.size(2) / 3;
    Tensor y = Tensor::empty({B, T, C}, qkv.dtype());
    dispatch_float("causal_attention_packed", qkv.dtype(), [&](auto t) {
      using Real = decltype(t);
      Real* to = y.mutable_data<Real>();
      for_heads<Real>(qkv, [&](const Head<Real>& head, std::int64_t b, std::int64_t h) {
        forward_head<Real>(head, {to + b * T * C + h * head.D, C});
      });
    });
    return {y};
  }

  Saves saves() const override { return {.inputs = {0}}; }

  void backward(const Tensors& all_dy, GradientSink& dx) const override {
    if (GradMode::enabled()) return dx.add(0, formula(input(0), all_dy[0]));
    const Tensor qkv = dense(input(0)), dy = dense(all_dy[0]);
    const std::int64_t T = qkv.size(1), C = qkv.size(2) / 3;
    const auto [out, fresh] = dx.accumulator(0);
    dispatch_float("causal_attention_packed", qkv.dtype(), [&, &out = out, fresh = fresh](auto t) {
      using Real = decltype(t);
      const Real* from = dy.data<Real>();
      Real* to = out.template mutable_data<Real>();
      for_heads<Real>(qkv, [&](const Head<Real>& head, std::int64_t b, std::int64_t h) {
        Real* dq = to + b * T * 3 * C + h * head.D;
        backward_head<Real>(head, {from + b * T * C + h * head.D, C}, {dq, 3 * C}, {dq + C, 3 * C}, {dq + 2 * C, 3 * C},
                            !fresh);
      });
    });
  }

  // The same in ops, to be differentiated again.
  Tensor formula(const Tensor& qkv, const Tensor& dy) const {
    const std::int64_t B = qkv.size(0), T = qkv.size(1), C = qkv.size(2) / 3, D = C / H;
    const double scale = 1 / std::sqrt(static_cast<double>(D));
    const auto heads = [&](const Tensor& x) { return transpose(reshape(x, {B, T, H, D}), 1, 2); };
    const auto side_by_side = [&](const Tensor& x) { return reshape(transpose(x, 1, 2), {B, T, C}); };
    const auto transposed = [](const Tensor& x) { return transpose(x, -2, -1); };
    const Tensor q = heads(slice(qkv, 2, 0, C)), k = heads(slice(qkv, 2, C, 2 * C)),
                 v = heads(slice(qkv, 2, 2 * C, 3 * C)), g = heads(dy);
    const Tensor later = to(triu(ones({T, T}), 1), boolean);
    const Tensor p = softmax(masked_fill(scale * matmul(q, transposed(k)), later, -INFINITY));
    const Tensor dp = matmul(g, transposed(v));
    const Tensor ds = scale * p * (dp - sum(dp * p, {-1}, true));
    return concat(
        {side_by_side(matmul(ds, k)), side_by_side(matmul(transposed(ds), q)), side_by_side(matmul(transposed(p), g))},
        2);
  }

 private:
  // Calls f(head, b, h) for all heads, in parallel.
  template <class Real, class F>
  void for_heads(const Tensor& qkv, F f) const {
    const std::int64_t B = qkv.size(0), T = qkv.size(1), C = qkv.size(2) / 3, D = C / H;
    if (qkv.numel() == 0) return;
    const std::int64_t Q = queries_at_once<Real>(T), pD = padded<Real>(D);
    const std::int64_t scratch = (T + Q + 4) * pD + (D + 2 * T) * Q;
    // Each block of heads has scratch of its own, which stays in the cache from head to head: no more blocks than it
    // takes to keep all threads busy. Heads do not know of each other: results are the same however they are shared
    // out.
    const std::int64_t threads = num_threads();
    const std::int64_t blocks = std::min(block_count(B * H, T * T * (D + 8) / 4), threads == 1 ? threads : 4 * threads);
    const Tensor memory = Tensor::empty({blocks, scratch}, qkv.dtype());
    Real* const all = memory.mutable_data<Real>();
    const Real* const x = qkv.data<Real>();
    const Real scale = static_cast<Real>(1 / std::sqrt(static_cast<double>(D)));
    parallel_for(blocks, [&](std::int64_t block) {
      const auto [begin, end] = block_range(B * H, blocks, block);
      Real *keys = all + block * scratch, *queries = keys + T * pD, *product = queries + Q * pD;
      Real *lanes = product + 4 * pD, *p = lanes + D * Q, *ds = p + T * Q;
      if (D < pD) std::fill_n(keys, (T + Q) * pD, Real{0});  // what stands beyond D is multiplied too
      for (std::int64_t i = begin; i < end; ++i) {
        const Real* q = x + i / H * T * 3 * C + i % H * D;
        f(Head<Real>{T,
                     D,
                     Q,
                     many_registers(),
                     scale,
                     {q, 3 * C},
                     {q + C, 3 * C},
                     {q + 2 * C, 3 * C},
                     {keys, pD},
                     {queries, pD},
                     {lanes, Q},
                     {product, pD},
                     {p, Q},
                     {ds, Q}},
          i / H, i % H);
      }
    });
  }
};

}  // namespace

Tensor causal_attention_packed(const Tensor& qkv, std::int64_t heads) {
  check(qkv.defined() && heads >= 1 && qkv.dims() == 3 && qkv.size(2) > 0 && qkv.size(2) % (3 * heads) == 0,
        "causal_attention_packed: expected qkv [B, T, 3 * H * D] with H = ", heads, ", got ",
        qkv.defined() ? qkv.shape() : Shape{});
  return apply_op<CausalAttention>({qkv}, heads)[0];
}

}  // namespace prenorm
