#include "autograd/ops/op_checks.h"
#include "autograd/parallel.h"

namespace prenorm {
namespace {

Tensor ids(const std::vector<std::int64_t>& values, const Shape& shape) {
  return Tensor::of(values, shape, {.dtype = int64});
}
Tensor ids(const std::vector<std::int64_t>& values) { return ids(values, {static_cast<std::int64_t>(values.size())}); }

constexpr Reduction kReductions[] = {Reduction::none, Reduction::sum, Reduction::mean};

// The same from log_softmax and a distribution written out, for target [R].
Tensor composed(const Tensor& logits, const std::vector<std::int64_t>& target, const CrossEntropyOptions& options) {
  const std::int64_t R = logits.size(0), C = logits.size(1);
  const double s = options.label_smoothing;
  std::vector<double> q;
  double count = 0;
  for (std::int64_t t : target) {
    const bool counts = t != options.ignore_index;
    count += counts ? 1 : 0;
    for (std::int64_t i = 0; i < C; ++i) q.push_back(!counts ? 0 : (i == t ? 1 - s : 0) + s / static_cast<double>(C));
  }
  const Tensor rows = -sum(log_softmax(logits) * Tensor::of(q, {R, C}, {.dtype = logits.dtype()}), {1});
  if (options.reduction == Reduction::none) return rows;
  return options.reduction == Reduction::sum ? sum(rows) : sum(rows) / count;
}

TEST_CASE("cross_entropy: gradients and the composed twin, for every combination of options") {
  const Tensor logits = randn64({5, 4}, 0, 0, 2);
  for (Reduction reduction : kReductions) {
    for (const std::optional<std::int64_t>& ignored : {std::optional<std::int64_t>(), {-100}, {255}, {2}}) {
      for (double smoothing : {0.0, 0.1, 1.0}) {
        const CrossEntropyOptions options{
            .reduction = reduction, .ignore_index = ignored, .label_smoothing = smoothing};
        const std::vector<std::int64_t> target{3, ignored.value_or(1), 0, ignored.value_or(1), 2};
        const auto f = [&](const Tensors& in) { return cross_entropy(in[0], ids(target), options); };
        expect_gradients(f, Tensors{logits});
        const Tensor y = f({logits}), twin = composed(logits, target, options);
        expect_close(y, twin);
        const Tensor dy = randn64(y.shape(), 1).detach();
        expect_close(grad({y}, {logits}, {dy})[0], grad({twin}, {logits}, {dy})[0]);
      }
    }
  }
}

TEST_CASE("cross_entropy: shapes [C], [R, C], [B, T, C], layouts, one class, no rows") {
  for (Reduction reduction : kReductions) {
    const CrossEntropyOptions options{.reduction = reduction, .label_smoothing = 0.2};
    const bool none = reduction == Reduction::none;
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{3}, Shape{2, 3}, Shape{2, 1, 2}, Shape{0}, Shape{2, 0}}) {
      const Tensor target =
          numel(shape) > 0 ? reshape(mod(arange(static_cast<double>(numel(shape))), 4), shape) : zeros(shape, int64);
      Shape with_classes = shape;
      with_classes.push_back(4);
      const Tensor logits = randn64(with_classes);
      const auto f = [&](const Tensors& in) { return cross_entropy(in[0], target, options); };
      CHECK(f({logits}).shape() == (none ? shape : Shape{}));
      if (numel(shape) == 0) {
        if (!none) expect_close(f({logits}), {reduction == Reduction::mean ? NAN : 0.0});
        CHECK(grad({f({logits})}, {logits}, {ones_like(f({logits}))})[0].shape() == with_classes);
        continue;
      }
      expect_gradients(f, Tensors{logits});
      if (shape.dims() > 0) expect_gradients(f, Tensors{strided(logits)});
    }
  }
  const Tensor logits = randn64({3, 4});
  const Tensor target = select(ids({0, 9, 3, 9, 1, 9}, {3, 2}), 1, 0);  // every second element
  expect_close(cross_entropy(logits, target), cross_entropy(logits, ids({0, 3, 1})), 0);
  const Tensor single = randn64({3, 1});
  expect_close(cross_entropy(single, ids({0, 0, 0}), {.reduction = Reduction::none}), {0, 0, 0});
  expect_gradient(cross_entropy(single, ids({0, 0, 0})), single, {0, 0, 0});
}

TEST_CASE("cross_entropy: values; gradients are (p - y) / count and sum to zero") {
  const Tensor flat = zeros({2, 4}, float64).requires_grad_();
  for (double smoothing : {0.0, 0.1}) {
    expect_close(cross_entropy(flat, ids({1, 3}), {.label_smoothing = smoothing}), {std::log(4)});
  }
  expect_gradient(cross_entropy(flat, ids({1, 3})), flat, {0.125, -0.375, 0.125, 0.125, 0.125, 0.125, 0.125, -0.375});
  const Tensor logits = randn64({6, 5});
  const Tensor dx = grad({cross_entropy(logits, ids({0, 1, 2, 3, 4, 0}), {.label_smoothing = 0.3})}, {logits})[0];
  expect_close(sum(dx, {1}), std::vector<double>(6, 0), 1e-15);
}

TEST_CASE("cross_entropy: ignored rows count for nothing: the loss is that of the batch without them") {
  const Tensor logits = randn64({5, 3});
  const Tensor rest = concat({slice(logits, 0, 1, 3), slice(logits, 0, 4, 5)}).detach().requires_grad_();
  for (std::int64_t ignored : {-100, -1, 3, 255, 1}) {
    for (Reduction reduction : {Reduction::sum, Reduction::mean}) {
      for (double smoothing : {0.0, 0.1}) {
        CrossEntropyOptions options{.reduction = reduction, .ignore_index = ignored, .label_smoothing = smoothing};
        const Tensor loss = cross_entropy(logits, ids({ignored, 0, 2, ignored, 0}), options);
        options.ignore_index.reset();
        const Tensor of_rest = cross_entropy(rest, ids({0, 2, 0}), options);
        expect_close(loss, of_rest);
        const Tensor dx = grad({loss}, {logits})[0], d_rest = grad({of_rest}, {rest})[0];
        expect_close(concat({slice(dx, 0, 1, 3), slice(dx, 0, 4, 5)}), d_rest);
        expect_close(concat({slice(dx, 0, 0, 1), slice(dx, 0, 3, 4)}), std::vector<double>(6, 0), 0);
      }
    }
  }
}

TEST_CASE("cross_entropy: ignored rows are 0 where nothing is reduced") {
  const Tensor logits = randn64({3, 4});
  for (std::int64_t ignored : {255, -100, 2}) {
    const Tensor rows =
        cross_entropy(logits, ids({1, ignored, 0}), {.reduction = Reduction::none, .ignore_index = ignored});
    const Tensor all = cross_entropy(logits, ids({1, 3, 0}), {.reduction = Reduction::none});
    expect_close(rows, all * Tensor::of({1, 0, 1}, {.dtype = float64}), 0);
    expect_close(slice(grad({rows}, {logits}, {ones({3}, float64)})[0], 0, 1, 2), {0, 0, 0, 0}, 0);
  }
}

TEST_CASE("cross_entropy: of the output of another op, which backward needs as it was") {
  expect_gradients([](const Tensors& in) { return cross_entropy(exp(in[0]), ids({2, 0})); }, Tensors{randn64({2, 4})});
}

TEST_CASE("cross_entropy: an ignore_index that names a class leaves it in the softmax's sum") {
  const Tensor logits = Tensor::of({0, std::log(2), 0, 0, 0, 0}, {2, 3}, {.dtype = float64, .requires_grad = true});
  const Tensor loss = cross_entropy(logits, ids({0, 1}), {.ignore_index = 1});
  expect_close(loss, {std::log(4)});  // 1 / (1 + 2 + 1): the ignored class 1 has its 2
  expect_gradient(loss, logits, {-0.75, 0.5, 0.25, 0, 0, 0});
}

TEST_CASE("cross_entropy: all rows ignored: mean NaN as in PyTorch, sum 0, gradients 0") {
  const Tensor logits = randn64({2, 3}), target = ids({-100, -100});
  for (Reduction reduction : kReductions) {
    const Tensor y = cross_entropy(logits, target, {.reduction = reduction, .ignore_index = -100});
    if (reduction == Reduction::none) expect_close(y, {0, 0}, 0);
    if (reduction == Reduction::sum) expect_close(y, {0.0}, 0);
    if (reduction == Reduction::mean) expect_close(y, {NAN});
    expect_gradient(y, logits, std::vector<double>(6, 0), 0);
  }
}

TEST_CASE("cross_entropy: huge logits, -inf, NaN") {
  for (DType dtype : {float32, float64}) {
    const auto of = [dtype](std::initializer_list<double> values) {
      return Tensor::of(values, {.dtype = dtype, .requires_grad = true});
    };
    const Tensor far = of({1e4, 0, -1e4});
    expect_close(cross_entropy(far, ids({0}, {})), {0.0});
    expect_close(cross_entropy(far, ids({2}, {})), {2e4});
    expect_close(cross_entropy(far, ids({2}, {}), {.label_smoothing = 0.3}), {0.7 * 2e4 + 0.3 * 1e4}, 1e-6);
    expect_gradient(cross_entropy(far, ids({2}, {})), far, {1, 0, -1});
    // A loss of rows far from zero keeps its digits: the maximum is taken off before anything else.
    const Tensor near = of({0.5, -0.25, 0.125}), moved = of({0.5 + 8192, -0.25 + 8192, 0.125 + 8192});
    expect_close(cross_entropy(moved, ids({1}, {})), cross_entropy(near, ids({1}, {})), 1e-7);
    expect_close(grad({cross_entropy(moved, ids({1}, {}))}, {moved})[0],
                 grad({cross_entropy(near, ids({1}, {}))}, {near})[0], 1e-7);
    const Tensor hidden = of({0, -INFINITY, 0});
    expect_close(cross_entropy(hidden, ids({0}, {})), {std::log(2)}, 1e-7);
    expect_gradient(cross_entropy(hidden, ids({0}, {})), hidden, {-0.5, 0, 0.5}, 1e-7);
    expect_close(cross_entropy(hidden, ids({1}, {})), {INFINITY});
    expect_close(cross_entropy(of({0, NAN}), ids({0}, {})), {NAN});
  }
}

TEST_CASE("cross_entropy: what it is given stays as it was") {
  const Tensor x = randn64({3, 4});
  const auto f = [](const Tensors& in) { return cross_entropy(exp(in[0]), ids({3, 0, 1})) + sum(exp(in[0])); };
  expect_gradients(f, Tensors{x});
  const auto twice = [](const Tensors& in) {
    return cross_entropy(in[0], ids({3, 0, 1})) * cross_entropy(in[0], ids({1, 1, 1}), {.label_smoothing = 0.5});
  };
  expect_gradients(twice, Tensors{x});
}

TEST_CASE("cross_entropy: float32 is close to float64; the same bits with any number of threads") {
  const std::int64_t R = 900, C = 83;
  const Tensor logits = to(randn64({R, C}, 0, 0, 3).detach(), float32).requires_grad_();
  const Tensor logits64 = to(logits.detach(), float64).requires_grad_(), target = mod(arange(R), C);
  for (const CrossEntropyOptions& options : {CrossEntropyOptions{}, {.ignore_index = 7, .label_smoothing = 0.1}}) {
    const Tensor loss = cross_entropy(logits, target, options), loss64 = cross_entropy(logits64, target, options);
    expect_close(loss, loss64, 1e-6);
    const Tensor dx = grad({loss}, {logits})[0], dx64 = grad({loss64}, {logits64})[0];
    expect_close(dx * R, dx64 * R, 1e-6);
    const int before = num_threads();
    for (int threads : {1, 2, 3}) {
      set_num_threads(threads);
      const Tensor again = cross_entropy(logits, target, options);
      expect_close(again, loss, 0);
      expect_close(grad({again}, {logits})[0], dx, 0);
    }
    set_num_threads(before);
  }
}

TEST_CASE("cross_entropy: refusals") {
  const Tensor logits = ones({2, 3, 5});
  const auto with = [&](std::int64_t wrong) { return ids({0, 1, 2, 3, wrong, 4}, {2, 3}); };
  expect_error([&] { cross_entropy(logits, with(-99)); }, {"cross_entropy", "target -99", "[1, 1]", "[0, 5)"});
  expect_error([&] { cross_entropy(logits, with(5)); }, {"cross_entropy", "target 5", "[1, 1]", "[0, 5)"});
  expect_error([&] { cross_entropy(logits, with(-1), {.ignore_index = -100}); }, {"target -1", "[1, 1]"});
  expect_error([&] { cross_entropy(ones({5}), ids({5}, {})); }, {"target 5", "[]", "[0, 5)"});
  expect_error([&] { cross_entropy(logits, ids({0, 1})); }, {"cross_entropy", "[2, 3, 5]", "int64 [2]"});
  expect_error([&] { cross_entropy(logits, ones({2, 3})); }, {"cross_entropy", "int64", "float32 [2, 3]"});
  expect_error([&] { cross_entropy(ones({2, 5}, int64), ids({0, 1})); }, {"cross_entropy", "int64"});
  expect_error([&] { cross_entropy(Tensor::scalar(1), ids({0}, {})); }, {"cross_entropy", "[]"});
  expect_error([&] { cross_entropy(logits, with(0), {.reduction = Reduction::batchmean}); }, {"batchmean", "kl_div"});
  for (double smoothing : {-0.1, 1.1, static_cast<double>(NAN)}) {
    expect_error([&] { cross_entropy(logits, with(0), {.label_smoothing = smoothing}); }, {"smoothing", "0 and 1"});
  }
  expect_error([&] { cross_entropy(Tensor(), ids({0})); }, {"cross_entropy", "undefined"});
  expect_error([&] { cross_entropy(logits, Tensor()); }, {"cross_entropy", "undefined"});
}

}  // namespace
}  // namespace prenorm
