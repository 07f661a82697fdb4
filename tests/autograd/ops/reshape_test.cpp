#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("reshape: values in row-major order and gradients, from any layout") {
  struct Case {
    Shape from, to;
  };
  for (const Case& one : std::vector<Case>{{{}, {1}},
                                           {{1, 1}, {}},
                                           {{6}, {2, 3}},
                                           {{2, 3}, {3, 2}},
                                           {{2, 3, 4}, {6, 4}},
                                           {{2, 3, 4}, {2, 12}},
                                           {{2, 3, 4}, {4, 3, 2}},
                                           {{2, 1, 3}, {1, 2, 3, 1}},
                                           {{0, 3}, {3, 0, 2}},
                                           {{4, 1, 6}, {2, 2, 2, 3}}}) {
    const Shape& from = one.from;
    const Shape& wanted = one.to;
    CAPTURE(from);
    CAPTURE(wanted);
    const Tensor x = randn64(from);
    const auto f = [to = wanted](const Tensors& in) { return reshape(in[0], to); };
    for (const Tensor& layout : {x, strided(x)}) {
      const Tensor y = f({layout});
      CHECK(y.shape() == wanted);
      expect_close(y, x.to_vector(), 0);
      expect_gradients(f, Tensors{layout}, maybe_vacuous(x));
    }
    CHECK(f({x}).storage() == x.storage());
  }
  const Tensor x = randn64({3, 2});
  expect_gradients([](const Tensors& in) { return reshape(in[0], {6}) * reshape(in[0], {6}); }, Tensors{x});
  expect_gradients([](const Tensors& in) { return reshape(expand(in[0], {2, 3, 2}), {3, 4}); }, Tensors{x});
}

TEST_CASE("reshape: a view where the memory allows it, a copy elsewhere") {
  const Tensor x = randn64({4, 6});
  const auto is_view = [&](const Tensor& y, const Shape& to) {
    const Tensor z = reshape(y, to);
    expect_close(z, y.to_vector(), 0);
    return z.storage() == y.storage();
  };
  CHECK(is_view(transpose(x, 0, 1), {6, 2, 2}));
  CHECK(!is_view(transpose(x, 0, 1), {24}));
  CHECK(is_view(slice(x, 0, 1, 3), {12}));
  CHECK(is_view(slice(x, 1, 0, 4), {4, 2, 2}));
  CHECK(!is_view(slice(x, 1, 0, 4), {16}));
  CHECK(is_view(slice(x, 1, 0, 6, 2), {2, 2, 3}));
  CHECK(is_view(expand(unsqueeze(x, 0), {3, 4, 6}), {3, 24}));
  CHECK(!is_view(expand(unsqueeze(x, 0), {3, 4, 6}), {72}));
}

TEST_CASE("reshape: one size may be -1; nothing to do gives the same handle") {
  const Tensor x = randn64({2, 6});
  CHECK(reshape(x, {-1}).shape() == Shape{12});
  CHECK(reshape(x, {3, -1, 2}).shape() == Shape{3, 2, 2});
  CHECK(reshape(zeros({0, 3}), {-1, 3}).shape() == Shape{0, 3});
  CHECK(reshape(x, {2, -1}).is(x));
}

TEST_CASE("reshape: refusals") {
  const Tensor x = ones({2, 3});
  expect_error([&] { reshape(x, {4}); }, {"reshape", "[2, 3]", "[4]"});
  expect_error([&] { reshape(x, {-1, 4}); }, {"reshape", "[2, 3]", "[-1, 4]"});
  expect_error([&] { reshape(x, {-1, -1}); }, {"reshape", "-1"});
  expect_error([&] { reshape(x, {-2, -3}); }, {"negative"});
  expect_error([] { reshape(zeros({0}), {-1, 0}); }, {"reshape", "[-1, 0]"});
}

}  // namespace
}  // namespace prenorm
