// Rows of a table by their numbers: y[r, :] = W[ids[r], :], W [V, D].
//
//   W's row v went into every y[r, :] with ids[r] = v and collects the gradient of all of them:
//     dW[v, :] = sum over r with ids[r] = v of dy[r, :]    (scatter-add)
//   That sum is linear in dy and gives dy[r, :] to dW[ids[r], :], so its own derivative is a lookup again.

#include <algorithm>

#include "autograd/node.h"
#include "autograd/ops/ids.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

// to[ids[r], :] += from[r, :], row by row in this order: the same bits with any number of threads.
template <class T>
PRENORM_VECTORIZED void add_rows(std::int64_t rows, std::int64_t D, const std::int64_t* ids, const T* from, T* to) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* row = from + r * D;
    T* sum = to + ids[r] * D;
#pragma omp simd
    for (std::int64_t i = 0; i < D; ++i) sum[i] += row[i];
  }
}

// Adds the rows of y [..., D] to those of `to` [V, D] that ids [...] name.
void scatter_into(const Tensor& to, const Tensor& ids, const Tensor& y) {
  const Tensor rows = dense(y), numbers = dense(ids);
  dispatch_float("scatter_add", to.dtype(), [&](auto t) {
    using T = decltype(t);
    add_rows(numbers.numel(), to.size(1), numbers.data<std::int64_t>(), rows.data<T>(), to.mutable_data<T>());
  });
}

// y [V, D] = for each row v, the sum of the rows of x [..., D] whose id is v. The derivative of a lookup, as an op.
struct ScatterAdd final : Node {
  explicit ScatterAdd(std::int64_t V) : V(V) {}
  const std::int64_t V;

  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "scatter_add",
                                 .formula = "y[v] = sum of x[r] over all r with ids[r] = v",
                                 .derivative = "dx[r] = dy[ids[r]]",
                                 .reference = "",
                                 .file = "autograd/ops/embedding.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    Tensor y = zeros({V, in[1].size(-1)}, in[1].dtype());
    scatter_into(y, in[0], in[1]);
    return {y};
  }

  Saves saves() const override { return {.inputs = {0}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override { dx.add(1, embedding(input(0), dy[0])); }
};

struct Embedding final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "embedding",
                                 .formula = "y[r] = W[ids[r]]",
                                 .derivative = "dW[v] = sum of dy[r] over all r with ids[r] = v",
                                 .reference = "",
                                 .file = "autograd/ops/embedding.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    const std::int64_t V = in[1].size(0), D = in[1].size(1);
    Shape shape = in[0].shape();
    shape.push_back(D);
    static_cast<void>(numel(shape));  // an overflow is an error here, before operands are copied
    const Tensor ids = dense(in[0]), weight = dense(in[1]);
    check_ids("embedding", "id", ids, V);
    Tensor y = Tensor::empty(shape, weight.dtype());
    dispatch_float("embedding", weight.dtype(), [&](auto t) {
      using T = decltype(t);
      const std::int64_t* id = ids.data<std::int64_t>();
      const T* from = weight.data<T>();
      T* to = y.mutable_data<T>();
      parallel_rows(ids.numel(), D, [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) std::copy_n(from + id[r] * D, D, to + r * D);
      });
    });
    return {y};
  }

  Saves saves() const override { return {.inputs = {0}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    if (GradMode::enabled()) return dx.add(1, apply_op<ScatterAdd>({input(0), dy[0]}, input_shape(1)[0])[0]);
    const auto [out, fresh] = dx.accumulator(1);
    if (fresh) fill_(out, 0);
    scatter_into(out, input(0), dy[0]);
  }
};

}  // namespace

Tensor embedding(const Tensor& ids, const Tensor& weight) {
  check(ids.defined() && weight.defined(), "embedding: an operand is undefined");
  check(ids.dtype() == int64, "embedding: ids are int64, got ", ids.dtype(), " ", ids.shape());
  check(weight.dims() == 2, "embedding: weight is [V, D], got ", weight.shape());
  return apply_op<Embedding>({ids, weight})[0];
}

}  // namespace prenorm
