// Softmax and cross-entropy in one: x [..., C] logits, t [...] class ids, s the label smoothing. For each row
//
//   loss = -sum_i q_i log p_i,  p = softmax(x),  q_i = (1 - s) 1[i = t] + s / C
//        = log(sum_i e^(x_i)) - (1 - s) x_t - s mean(x)           as q sums to 1
//
// and the result is all rows' losses, their sum, or the sum over the number of rows that count. A row whose target is
// ignore_index has loss 0 and does not count; the class of that number, where there is one, keeps its place in the sum.
//
// Derivation: d log(sum_i e^(x_i)) / dx_j = e^(x_j) / sum_i e^(x_i) = p_j, and the rest is linear in x, so
//     dx_j = g (p_j - q_j),  g = dy for the sum, dy / count for the mean, the row's dy for none.
//   p and q both sum to 1, so dx sums to zero over the classes.

#include "autograd/ops/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/lanes.h"
#include "autograd/node.h"
#include "autograd/ops/ids.h"
#include "autograd/ops/reduce.h"
#include "autograd/vec_math.h"

namespace prenorm {
namespace {

// A block of rows. `largest` and `scale` = 1 / sum_i e^(x_i - largest) make p_i = e^(x_i - largest) * scale; the
// log-sum-exp alone would not, as it loses digits where logits are large.
template <class T>
struct Rows {
  std::int64_t rows, C;
  std::optional<std::int64_t> ignored;
  T smoothing;
  const T* x;
  const std::int64_t* target;
  T *largest, *scale;
};

template <class T>
PRENORM_VECTORIZED void forward_rows(const Rows<T>& block, T* loss) {
  const std::int64_t C = block.C;
  const T s = block.smoothing;
  for (std::int64_t r = 0; r < block.rows; ++r) {
    const T* x = block.x + r * C;
    T most = -std::numeric_limits<T>::infinity();
#pragma omp simd reduction(max : most)
    for (std::int64_t i = 0; i < C; ++i) most = x[i] > most ? x[i] : most;
    const auto [total, below] = lane_sums<T>(C, [=](std::int64_t i, T& e, T& gap) {
      gap = most - x[i];
      e = vec::exp(-gap);
    });
    block.largest[r] = most;
    block.scale[r] = 1 / total;
    loss[r] = 0;
    const std::int64_t target = block.target[r];
    if (target == block.ignored) continue;
    loss[r] = vec::log(total) + (1 - s) * (most - x[target]);
    if (s > 0) loss[r] += s * below / static_cast<T>(C);  // not where s = 0: a logit of -inf has below = inf
  }
}

// dy has one element a row, or one for all (step 0). factor: 1, or 1 / count.
template <bool add, class T>
PRENORM_VECTORIZED void backward_rows(const Rows<T>& block, const T* dy, std::int64_t step, T factor, T* all_dx) {
  const std::int64_t C = block.C;
  const T s = block.smoothing, even = s / static_cast<T>(C);
  for (std::int64_t r = 0; r < block.rows; ++r) {
    const T* x = block.x + r * C;
    T* dx = all_dx + r * C;
    const std::int64_t target = block.target[r];
    if (target == block.ignored) {
      if (!add) std::fill_n(dx, C, T{0});
      continue;
    }
    const T g = dy[r * step] * factor, most = block.largest[r], scale = block.scale[r];
#pragma omp simd
    for (std::int64_t i = 0; i < C; ++i) {
      const T value = (vec::exp(x[i] - most) * scale - even) * g;
      dx[i] = add ? dx[i] + value : value;
    }
    dx[target] -= (1 - s) * g;
  }
}

// Inputs x [..., C], target [...]; outputs loss and, for backward, largest [...] and scale [...].
struct CrossEntropy final : Node {
  explicit CrossEntropy(const CrossEntropyOptions& options) : options(options) {}
  const CrossEntropyOptions options;

  const OpInfo& info() const override {
    static constexpr OpInfo info{
        .name = "cross_entropy",
        .formula =
            "y = -sum(q * log p) over the rows that count, over their number; p = softmax(x), "
            "q = (1 - s) * onehot(target) + s / C",
        .derivative = "dx = (p - q) * dy / count, 0 in rows that do not count",
        .reference = "smoothing: Szegedy et al. 2016, Rethinking the Inception Architecture, section 7",
        .file = "autograd/ops/cross_entropy.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    const Tensor x = dense(in[0]), target = dense(in[1]);
    const std::int64_t C = x.size(-1), R = target.numel();
    check_ids("cross_entropy", "target", target, C, options.ignore_index);
    const auto one_a_row = [&] { return Tensor::empty(target.shape(), x.dtype()); };
    const Tensor losses = one_a_row(), largest = one_a_row(), scale = one_a_row();
    dispatch_float("cross_entropy", x.dtype(), [&](auto t) {
      using T = decltype(t);
      const Rows<T> all = rows(x, target, largest.mutable_data<T>(), scale.mutable_data<T>());
      T* out = losses.mutable_data<T>();
      parallel_rows(R, C * 8,
                    [&](std::int64_t begin, std::int64_t end) { forward_rows(part(all, begin, end), out + begin); });
    });
    return {reduce_rows(losses, target, options), largest, scale};
  }

  Saves saves() const override { return {.inputs = {0, 1}, .outputs = {1, 2}}; }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    const Tensor target = dense(input(1));
    const bool one_each = options.reduction == Reduction::none;
    if (GradMode::enabled()) {
      const Tensor x = input(0), q = target_distribution(target, x.size(-1), options.label_smoothing, x.dtype());
      const Tensor g = row_factors(target, options, x.dtype()) * (one_each ? unsqueeze(dy[0], -1) : dy[0]);
      return dx.add(0, (softmax(x) - q) * g);
    }
    const Tensor x = dense(input(0)), g = dense(dy[0]), largest = output(1), scale = output(2);
    const std::int64_t C = x.size(-1), R = target.numel();
    const bool mean = options.reduction == Reduction::mean;
    const double factor = mean ? 1 / static_cast<double>(rows_that_count(target, options)) : 1;
    const auto [out, fresh] = dx.accumulator(0);
    dispatch_float("cross_entropy", x.dtype(), [&, &out = out, fresh = fresh](auto t) {
      using T = decltype(t);
      const Rows<T> all = rows(x, target, const_cast<T*>(largest.data<T>()), const_cast<T*>(scale.data<T>()));
      const T* from = g.data<T>();
      T* to = out.template mutable_data<T>();
      const std::int64_t step = one_each ? 1 : 0;
      parallel_rows(R, C * 8, [&](std::int64_t begin, std::int64_t end) {
        const auto run = fresh ? backward_rows<false, T> : backward_rows<true, T>;
        run(part(all, begin, end), from + begin * step, step, static_cast<T>(factor), to + begin * C);
      });
    });
  }

 private:
  template <class T>
  Rows<T> rows(const Tensor& x, const Tensor& target, T* largest, T* scale) const {
    return {target.numel(),
            x.size(-1),
            options.ignore_index,
            static_cast<T>(options.label_smoothing),
            x.data<T>(),
            target.data<std::int64_t>(),
            largest,
            scale};
  }
  template <class T>
  static Rows<T> part(Rows<T> block, std::int64_t begin, std::int64_t end) {
    block.rows = end - begin;
    block.x += begin * block.C;
    block.target += begin;
    block.largest += begin;
    block.scale += begin;
    return block;
  }
};

}  // namespace

void check_class_loss(std::string_view op, const Tensor& x, const Tensor& target, const CrossEntropyOptions& options) {
  check(x.defined() && target.defined(), op, ": an operand is undefined");
  check(x.dims() >= 1 && target.shape() == Shape(x.shape().begin(), x.shape().end() - 1) && target.dtype() == int64, op,
        ": expected [..., C] and int64 targets [...], got ", x.shape(), " and ", target.dtype(), " ", target.shape());
  check(options.reduction != Reduction::batchmean, op, ": reductions are none, sum and mean; batchmean is kl_div's");
  check(options.label_smoothing >= 0 && options.label_smoothing <= 1, op, ": label smoothing is between 0 and 1, got ",
        options.label_smoothing);
}

std::int64_t rows_that_count(const Tensor& target, const CrossEntropyOptions& options) {
  const Tensor ids = dense(target);
  const std::int64_t* id = ids.data<std::int64_t>();
  return ids.numel() - std::count(id, id + ids.numel(), options.ignore_index);
}

Tensor reduce_rows(const Tensor& rows, const Tensor& target, const CrossEntropyOptions& options) {
  if (options.reduction == Reduction::none) return rows;
  const NoGrad no_grad;
  const Tensor total = sum(rows);
  return options.reduction == Reduction::sum ? total : total / static_cast<double>(rows_that_count(target, options));
}

Tensor row_factors(const Tensor& target, const CrossEntropyOptions& options, DType dtype) {
  const Tensor ids = dense(target);
  const bool mean = options.reduction == Reduction::mean;
  const double factor = mean ? 1 / static_cast<double>(rows_that_count(ids, options)) : 1;
  Shape shape = ids.shape();
  shape.push_back(1);
  Tensor factors = Tensor::empty(shape, dtype);
  dispatch_float("row_factors", dtype, [&](auto t) {
    using T = decltype(t);
    const std::int64_t* id = ids.data<std::int64_t>();
    std::transform(id, id + ids.numel(), factors.mutable_data<T>(),
                   [&](std::int64_t i) { return i == options.ignore_index ? T{0} : static_cast<T>(factor); });
  });
  return factors;
}

Tensor target_distribution(const Tensor& target, std::int64_t classes, double smoothing, DType dtype) {
  const Tensor ids = dense(target);
  Shape shape = ids.shape();
  shape.push_back(classes);
  Tensor q = full(shape, smoothing / static_cast<double>(classes), dtype);
  dispatch_float("target_distribution", dtype, [&](auto t) {
    using T = decltype(t);
    const std::int64_t* id = ids.data<std::int64_t>();
    T* row = q.mutable_data<T>();
    for (std::int64_t r = 0; r < ids.numel(); ++r, row += classes) {
      if (id[r] >= 0 && id[r] < classes) row[id[r]] += static_cast<T>(1 - smoothing);
    }
  });
  return q;
}

Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options) {
  check_class_loss("cross_entropy", logits, target, options);
  return apply_op<CrossEntropy>({logits, target}, options)[0];
}

}  // namespace prenorm
