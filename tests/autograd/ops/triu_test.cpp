#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("triu and tril: values and gradients for every diagonal") {
  for (const Shape& shape : {Shape{3, 3}, Shape{2, 4}, Shape{4, 2}, Shape{2, 3, 3}, Shape{1, 1}}) {
    const Tensor x = randn64(shape);
    const std::int64_t rows = x.size(-2), columns = x.size(-1);
    for (std::int64_t diagonal = -rows - 1; diagonal <= columns + 1; ++diagonal) {
      CAPTURE(diagonal);
      std::vector<double> upper = x.to_vector(), lower = upper;
      for (std::size_t i = 0; i < upper.size(); ++i) {
        const std::int64_t place = static_cast<std::int64_t>(i) % (rows * columns);
        const std::int64_t offset = place % columns - place / columns;
        if (offset < diagonal) upper[i] = 0;
        if (offset > diagonal) lower[i] = 0;
      }
      expect_close(triu(x, diagonal), upper, 0);
      expect_close(tril(x, diagonal), lower, 0);
      expect_close(tril(strided(x), diagonal), lower, 0);
      const auto none = [](const std::vector<double>& kept) {
        return std::all_of(kept.begin(), kept.end(), [](double v) { return v == 0; });
      };
      expect_gradients([&](const Tensors& in) { return triu(in[0], diagonal); }, Tensors{x},
                       {.allow_vacuous = none(upper)});
      expect_gradients([&](const Tensors& in) { return tril(in[0], diagonal) * in[0]; }, Tensors{strided(x)},
                       {.allow_vacuous = none(lower)});
    }
  }
}

TEST_CASE("triu and tril: empty ones, NaN outside, all dtypes") {
  for (const Shape& shape : {Shape{0, 3}, Shape{3, 0}, Shape{0, 2, 2}}) {
    CHECK(triu(zeros(shape)).shape() == shape);
    CHECK(tril(zeros(shape)).shape() == shape);
  }
  expect_close(triu(Tensor::of({1, 2, NAN, 4}, {2, 2})), {1, 2, 0, 4});
  expect_close(tril(Tensor::of({1, 2, 3, 4}, {2, 2}, {.dtype = int64})), {1, 0, 3, 4});
  const Tensor mask = tril(ones({2, 2}, boolean));
  CHECK(mask.dtype() == boolean);
  expect_close(mask, {1, 0, 1, 1});
}

TEST_CASE("triu and tril: refusals") {
  expect_error([] { triu(ones({3})); }, {"triu", "[3]"});
  expect_error([] { tril(Tensor::scalar(1)); }, {"tril", "[]"});
}

}  // namespace
}  // namespace prenorm
