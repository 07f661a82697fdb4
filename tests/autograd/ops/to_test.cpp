#include <limits>

#include "autograd/node.h"
#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("to: values between all dtypes") {
  const Tensor x = Tensor::of({-1.75, 0, 0.25, 3}, {.dtype = float64});
  const std::vector<double> expected[] = {{-1.75, 0, 0.25, 3}, {-1.75, 0, 0.25, 3}, {-1, 0, 0, 3}, {1, 0, 1, 1}};
  for (DType from : {float32, float64, int64, boolean}) {
    for (DType dtype : {float32, float64, int64, boolean}) {
      const Tensor y = to(to(x, from), dtype);
      CHECK(y.dtype() == dtype);
      // The poorer of the two decides; 0.25 is true, but not once it has been cut off.
      const int poorer = static_cast<int>(std::max(from, dtype));
      const bool cut_off = from == int64 && dtype == boolean;
      expect_close(y, cut_off ? std::vector<double>{1, 0, 0, 1} : expected[poorer], 0);
    }
  }
  CHECK(to(Tensor::of({0.1}, {.dtype = float64}), float32).item() == static_cast<double>(0.1f));
  expect_close(to(strided(randn64({2, 3})), float32), to(randn64({2, 3}), float32), 0);
  CHECK(to(zeros({0, 3}), int64).shape() == Shape{0, 3});
}

TEST_CASE("to: what int64 cannot hold becomes its lowest value, NaN too, on every processor") {
  const std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  const std::vector<double> wide = {NAN, INFINITY, -INFINITY, 1e19, 9223372036854775808.0, -9223372036854775808.0};
  for (DType dtype : {float32, float64}) {
    const Tensor x = Tensor::of(wide, {6}, {.dtype = dtype});
    CHECK(to(x, int64).to_vector<std::int64_t>() == std::vector<std::int64_t>(6, lowest));
    CHECK(x.to_vector<std::int64_t>() == std::vector<std::int64_t>(6, lowest));
    CHECK(to(x, boolean).to_vector<std::int64_t>() == std::vector<std::int64_t>(6, 1));
  }
  CHECK(to(Tensor::of({9223372036854774784.0}, {.dtype = float64}), int64).item<std::int64_t>() == 9223372036854774784);
  CHECK(full({1}, NAN, int64).item<std::int64_t>() == lowest);
  CHECK(Tensor::of({NAN}, {.dtype = int64}).item<std::int64_t>() == lowest);
  expect_error([] { arange(0, 1e19); }, {"arange", "int64"});
}

TEST_CASE("to: the same handle where nothing changes") {
  const Tensor x = randn64({2});
  CHECK(to(x, float64).is(x));
}

TEST_CASE("to: gradients go back in the dtype of x") {
  const Tensor x = randn64({2, 3});
  // A round trip through float32 is not smooth for small steps.
  expect_gradient(to(to(x, float32) * 3, float64), x, std::vector<double>(6, 3));
  const Tensor y = to(x, float32);
  const Tensor dx = grad({y}, {x}, {full({2, 3}, 0.5)}, {.create_graph = true})[0];
  CHECK(dx.dtype() == float64);
  expect_close(dx, std::vector<double>(6, 0.5));
  // Twice: L = (x in float32)^2, dL/dx = 2 x.
  const Tensor leaf = Tensor::of({1.5, -2}, {.dtype = float64, .requires_grad = true});
  const Tensor single = to(leaf, float32);
  const Tensor first = grad({single * single}, {leaf}, {ones({2})}, {.create_graph = true})[0];
  expect_close(first, {3, -4});
  expect_close(grad({first}, {leaf}, {ones({2}, float64)})[0], {2, 2});
}

TEST_CASE("to: integers and masks have no place in the graph") {
  const Tensor x = randn64({3});
  CHECK(!to(x, int64).requires_grad());
  CHECK(!to(x, boolean).requires_grad());
}

}  // namespace
}  // namespace prenorm
