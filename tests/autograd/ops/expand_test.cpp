#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("expand and sum_to: gradients; each undoes the other's shape") {
  struct Case {
    Shape from, to;
  };
  for (const Case& one : std::vector<Case>{{{}, {3}},
                                           {{}, {2, 0}},
                                           {{1}, {1}},
                                           {{1}, {4}},
                                           {{3}, {2, 3}},
                                           {{2, 1}, {2, 3}},
                                           {{3, 1, 1}, {2, 3, 1, 2}},
                                           {{1, 2, 1}, {3, 2, 2}},
                                           {{0, 1}, {0, 3}},
                                           {{1, 3}, {0, 3}}}) {
    const Shape& from = one.from;
    const Shape& wide = one.to;
    CAPTURE(from);
    CAPTURE(wide);
    const Tensor small = randn64(from, 1), large = randn64(wide, 2);
    const auto up = [&, to = wide](const Tensors& in) { return expand(in[0], to); };
    const auto down = [&, to = from](const Tensors& in) { return sum_to(in[0], to); };
    expect_gradients(up, Tensors{small}, {.allow_vacuous = large.numel() == 0});
    expect_gradients(down, Tensors{large}, {.allow_vacuous = large.numel() == 0});
    CHECK(up({small}).shape() == wide);
    CHECK(down({large}).shape() == from);
    CHECK(up({small}).storage() == small.storage());
    expect_close(up({small}), small + zeros(wide, float64), 0);
    // <expand(a), b> = <a, sum_to(b)>
    const double uses = sum(up({small}) * large).item(), sums = sum(small * down({large})).item();
    CHECK(uses == doctest::Approx(sums));
  }
  expect_gradients([](const Tensors& in) { return expand(in[0], {4, 3, 2}); }, Tensors{strided(randn64({3, 2}))});
  expect_gradients([](const Tensors& in) { return expand(in[0], {2, 3}) * in[0]; }, Tensors{randn64({3})});
}

TEST_CASE("expand: -1 keeps a size; nothing to do gives the same handle") {
  const Tensor x = randn64({3, 1});
  CHECK(expand(x, {-1, 4}).shape() == Shape{3, 4});
  CHECK(expand(x, {2, -1, -1}).shape() == Shape{2, 3, 1});
  CHECK(expand(x, {3, 1}).is(x));
  CHECK(sum_to(x, {3, 1}).is(x));
}

TEST_CASE("expand and sum_to: int64") {
  expect_close(sum_to(Tensor::of({1, 2, 3, 4}, {2, 2}, {.dtype = int64}), {2}), {4, 6});
  expect_close(expand(arange(2), {2, 2}), {0, 1, 0, 1});
}

TEST_CASE("expand and sum_to: refusals") {
  const Tensor x = ones({2, 3});
  expect_error([&] { expand(x, {2, 4}); }, {"expand", "[2, 3]", "[2, 4]"});
  expect_error([&] { expand(x, {3}); }, {"expand", "[2, 3]", "[3]"});
  expect_error([&] { expand(x, {-1, 2, 3}); }, {"-1"});
  expect_error([&] { sum_to(x, {2}); }, {"sum_to", "[2, 3]", "[2]"});
  expect_error([&] { sum_to(x, {4, 2, 3}); }, {"sum_to", "[2, 3]", "[4, 2, 3]"});
}

}  // namespace
}  // namespace prenorm
