#include "nn/init.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/ops.h"
#include "autograd/random.h"
#include "support.h"

namespace prenorm::nn {
namespace {

using Doubles = std::vector<double>;

double largest(const Tensor& x) { return max(abs(x.detach())).item(); }
double spread(const Tensor& x) { return std(x.detach()).item(); }

TEST_CASE("linear_uniform is uniform in +-1 / sqrt(fan_in), from one draw an element") {
  manual_seed(1);
  const Tensor w = linear_uniform({100, 25}, 25), next = rand({3});
  manual_seed(1);
  CHECK(w.to_vector() == uniform({100, 25}, -0.2, 0.2).to_vector());
  CHECK(next.to_vector() == rand({3}).to_vector());
  CHECK(w.dtype() == float32);
  CHECK(largest(w) <= 0.2);
  CHECK(largest(w) > 0.19);
  CHECK(spread(w) == doctest::Approx(0.2 / std::sqrt(3.0)).epsilon(0.05));
  CHECK(std::abs(mean(w).item()) < 0.01);
}

TEST_CASE("without inputs the bound is 0") { CHECK(linear_uniform({3}, 0).to_vector() == Doubles{0, 0, 0}); }

TEST_CASE("xavier_uniform_ fills with bound gain * sqrt(6 / (in + out))") {
  Tensor w = zeros({60, 36}).requires_grad_();
  const std::uint64_t version = w.version();
  manual_seed(2);
  xavier_uniform_(w);
  CHECK(w.version() > version);
  CHECK(w.is_leaf());
  CHECK(largest(w) <= 0.25);  // sqrt(6 / 96)
  CHECK(largest(w) > 0.24);
  CHECK(spread(w) == doctest::Approx(0.25 / std::sqrt(3.0)).epsilon(0.05));
  manual_seed(2);
  CHECK(w.to_vector() == uniform({60, 36}, -0.25, 0.25).to_vector());

  const Tensor wide = zeros({60, 36}, float64);
  xavier_uniform_(wide, 2);
  CHECK(largest(wide) <= 0.5);
  CHECK(largest(wide) > 0.48);
  expect_error([] { xavier_uniform_(zeros({3})); }, {"xavier_uniform_", "[out, in]", "[3]"});
}

}  // namespace
}  // namespace prenorm::nn
