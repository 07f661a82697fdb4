#include "optim/schedule.h"

#include <cmath>

#include "support.h"

namespace prenorm::optim {
namespace {

TEST_CASE("noam rises linearly to step `warmup` and falls as step^-0.5") {
  const double peak = 1 / std::sqrt(512.0) / std::sqrt(4000.0);
  CHECK(noam(1, 512, 4000) == doctest::Approx(peak / 4000).epsilon(1e-12));
  CHECK(noam(2000, 512, 4000) == doctest::Approx(peak / 2).epsilon(1e-12));
  CHECK(noam(4000, 512, 4000) == doctest::Approx(peak).epsilon(1e-12));
  CHECK(noam(16000, 512, 4000) == doctest::Approx(peak / 2).epsilon(1e-12));
  CHECK(noam(4000, 512, 4000, 2) == doctest::Approx(2 * peak).epsilon(1e-12));
  CHECK(noam(1, 1, 1) == 1);
  CHECK(noam(3999, 512, 4000) < noam(4000, 512, 4000));
  CHECK(noam(4001, 512, 4000) < noam(4000, 512, 4000));
  expect_error([] { noam(0, 512, 4000); }, {"noam", "step 0", "at least 1"});
  expect_error([] { noam(1, 0, 4000); }, "d_model 0");
  expect_error([] { noam(1, 512, 0); }, "warmup 0");
}

TEST_CASE("a linear warm-up reaches 1 at its last step and stays there") {
  CHECK(linear_warmup(1, 4) == 0.25);
  CHECK(linear_warmup(3, 4) == 0.75);
  CHECK(linear_warmup(4, 4) == 1);
  CHECK(linear_warmup(1'000'000, 4) == 1);
  CHECK(linear_warmup(1, 1) == 1);
  CHECK(linear_warmup(1, 0) == 1);
  expect_error([] { linear_warmup(0, 4); }, {"linear_warmup", "step 0"});
  expect_error([] { linear_warmup(1, -1); }, "warmup -1");
}

TEST_CASE("a cosine goes from 1 after the warm-up to the floor at the last step, and stays there") {
  CHECK(cosine(1, 100, 10) == 0.1);
  CHECK(cosine(10, 100, 10) == 1);
  CHECK(cosine(55, 100, 10) == doctest::Approx(0.5).epsilon(1e-12));
  CHECK(cosine(100, 100, 10) == doctest::Approx(0));
  CHECK(cosine(101, 100, 10) == cosine(100, 100, 10));
  CHECK(cosine(55, 100, 10, 0.2) == doctest::Approx(0.6).epsilon(1e-12));
  CHECK(cosine(100, 100, 10, 0.2) == doctest::Approx(0.2).epsilon(1e-12));
  CHECK(cosine(1'000'000, 100, 10, 0.2) == doctest::Approx(0.2).epsilon(1e-12));
  CHECK(cosine(1, 4) == doctest::Approx(0.5 * (1 + std::sqrt(0.5))).epsilon(1e-12));
  CHECK(cosine(4, 4) == doctest::Approx(0));
  CHECK(cosine(1, 1) == doctest::Approx(0));
  expect_error([] { cosine(1, 10, 10); }, {"cosine", "10 steps", "warm-up of 10"});
  expect_error([] { cosine(1, 0); }, "0 steps");
  expect_error([] { cosine(0, 10); }, "step 0");
}

TEST_CASE("constant is 1") {
  CHECK(constant(1) == 1);
  CHECK(constant(1'000'000) == 1);
}

}  // namespace
}  // namespace prenorm::optim
