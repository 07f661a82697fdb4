#include "autograd/tensor.h"

#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "autograd/node.h"
#include "autograd/ops.h"
#include "support.h"

namespace prenorm {
namespace {

using Doubles = std::vector<double>;
using Ints = std::vector<std::int64_t>;

TEST_CASE("tensors are made from numbers of any kind, in the dtype asked for") {
  CHECK(Tensor::of({1, 2, 3}).dtype() == float32);
  CHECK(Tensor::of({1, 2, 3}).shape() == Shape{3});
  CHECK(Tensor::of({1, 2, 3, 4}, {2, 2}, {.dtype = float64}).to_vector() == Doubles{1, 2, 3, 4});
  CHECK(Tensor::of(std::vector<int>{1, 2}, {2}, {.dtype = int64}).to_vector<std::int64_t>() == Ints{1, 2});
  CHECK(Tensor::of(std::vector<float>{0.5F}, {1}, {.dtype = float64}).item() == 0.5);
  CHECK(Tensor::of(std::vector<bool>{true, false}, {2}, {.dtype = boolean}).to_vector() == Doubles{1, 0});
  CHECK(Tensor::of({2, 0, 0.5}, {3}, {.dtype = boolean}).to_vector() == Doubles{1, 0, 1});
  CHECK(Tensor::scalar(2.5).shape() == Shape{});
  CHECK(Tensor::scalar(2.5).item<float>() == 2.5F);
  const std::int64_t large = (std::int64_t{1} << 53) + 1;  // no double
  CHECK(Tensor::of(Ints{large}, {1}, {.dtype = int64}).item<std::int64_t>() == large);
  CHECK(Tensor::of(Doubles{}, {0, 3}).numel() == 0);
  expect_error([] { Tensor::of({1, 2, 3}, {2, 2}); }, {"of: 3 values", "[2, 2], which holds 4"});
}

TEST_CASE("only float tensors can require grad") {
  CHECK(Tensor::of({1}, {.requires_grad = true}).requires_grad());
  CHECK_FALSE(Tensor::of({1}).requires_grad());
  expect_error([] { Tensor::of({1}, {.dtype = int64, .requires_grad = true}); },
               {"requires_grad_", "only float32 and float64", "int64"});
  Tensor mask = ones({2}, boolean);
  expect_error([&] { mask.requires_grad_(); }, "got bool");
  mask.requires_grad_(false);
}

TEST_CASE("an undefined tensor says so whatever is asked of it") {
  const Tensor none;
  CHECK_FALSE(none.defined());
  CHECK_FALSE(none.requires_grad());
  CHECK(none.is_leaf());
  CHECK(none.node() == nullptr);
  expect_error([&] { static_cast<void>(none.shape()); }, "undefined");
  expect_error([&] { static_cast<void>(none.numel()); }, "undefined");
  expect_error([&] { static_cast<void>(none.item()); }, "undefined");
  expect_error([&] { static_cast<void>(none.to_vector()); }, "undefined");
  expect_error([&] { static_cast<void>(none.data<float>()); }, "undefined");
  expect_error([&] { static_cast<void>(none.grad()); }, "undefined");
  expect_error([&] { none.detach(); }, "undefined");
  expect_error([&] { none.backward(); }, "undefined");
  expect_error([&] { Tensor().requires_grad_(); }, "undefined");
}

TEST_CASE("values come out only as what they are, or converted on request") {
  const Tensor x = Tensor::of({1.5, -2}, {2});
  CHECK(x.data<float>()[1] == -2.0F);
  CHECK(x.to_vector<std::int64_t>() == Ints{1, -2});
  expect_error([&] { static_cast<void>(x.data<double>()); }, {"holds float32", "asked for float64"});
  expect_error([&] { static_cast<void>(x.mutable_data<std::int64_t>()); }, {"holds float32", "asked for int64"});
  expect_error([&] { static_cast<void>(x.item()); }, {"item", "one element", "[2]"});
  expect_error([] { static_cast<void>(zeros({0}).item()); }, {"one element", "[0]"});
  CHECK(full({1, 1, 1}, 3).item() == 3);
}

TEST_CASE("sizes count from both ends") {
  const Tensor x = zeros({2, 3, 4});
  CHECK(x.size(0) == 2);
  CHECK(x.size(-1) == 4);
  CHECK(x.dims() == 3);
  expect_error([&] { static_cast<void>(x.size(3)); }, "dimension 3");
  expect_error([] { static_cast<void>(Tensor::scalar(1).size(0)); }, "a scalar has no dimension 0");
}

TEST_CASE("shapes that overflow are refused before memory is asked for") {
  const std::int64_t big = std::int64_t{1} << 31;
  memory::reset_peak();
  const memory::Stats before = memory::stats();
  expect_error([&] { Tensor::empty({big, big, 2}); }, {"[2147483648, 2147483648, 2]", "more elements than int64"});
  expect_error([&] { Tensor::empty({big, big}, float64); }, {"[2147483648, 2147483648] float64", "more bytes"});
  expect_error([&] { zeros({0, big, big, 2}); }, "more elements than int64");
  expect_error([] { Tensor::empty({3, -1}); }, "not negative");
  CHECK(memory::stats().system_allocations == before.system_allocations);
  CHECK(memory::stats().peak == before.peak);
}

TEST_CASE("an empty tensor has no values, however large its other sizes") {
  const std::int64_t big = std::int64_t{1} << 58;
  CHECK(zeros({0, big}).to_vector().empty());
  CHECK(zeros({big, 0}).to_vector().empty());
  CHECK(zeros({0}).is_contiguous());
  CHECK(transpose(zeros({3, 0, 2}), 0, 2).is_contiguous());
}

TEST_CASE("views share storage and know whether they have gaps") {
  const Tensor x = reshape(arange(24), {2, 3, 4});
  const Tensor t = transpose(x, 0, 2), s = slice(x, 1, 1, 3), e = expand(reshape(arange(3), {3, 1}), {3, 2});
  CHECK(t.strides() == Strides{1, 4, 12});
  CHECK(t.to_vector<std::int64_t>() ==
        Ints{0, 12, 4, 16, 8, 20, 1, 13, 5, 17, 9, 21, 2, 14, 6, 18, 10, 22, 3, 15, 7, 19, 11, 23});
  CHECK(s.storage_offset() == 4);
  CHECK(s.to_vector<std::int64_t>() == Ints{4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 20, 21, 22, 23});
  CHECK(e.strides() == Strides{1, 0});
  CHECK(e.to_vector<std::int64_t>() == Ints{0, 0, 1, 1, 2, 2});
  CHECK(t.storage() == x.storage());
  CHECK(s.storage() == x.storage());

  CHECK(x.is_contiguous());
  CHECK_FALSE(t.is_contiguous());
  CHECK_FALSE(s.is_contiguous());
  CHECK_FALSE(e.is_contiguous());
  CHECK(slice(x, 0, 1, 2).is_contiguous());                 // one matrix of the two
  CHECK(transpose(zeros({3, 1}), 0, 1).is_contiguous());    // the stride of a size of 1 means nothing
  CHECK(slice(zeros({4, 1}), 0, 0, 4, 4).is_contiguous());  // one element
  CHECK_FALSE(slice(zeros({4, 1}), 0, 0, 4, 2).is_contiguous());
  CHECK(x.view({2, 2}, {12, 1}, 5).to_vector<std::int64_t>() == Ints{5, 6, 17, 18});
}

TEST_CASE("every write counts, through any view and through detach, and is seen by all of them") {
  const Tensor x = zeros({2, 3});
  const Tensor row = select(x, 0, 1), flat = reshape(x, {6}), same = x.detach(), copy = clone(x);
  const std::uint64_t start = x.version();
  fill_(row, 2);
  CHECK(x.version() == start + 1);
  add_(flat, ones({6}));
  mul_(same, 3);
  copy_(x, x);
  CHECK(x.version() == start + 4);
  CHECK(row.version() == x.version());
  CHECK(same.version() == x.version());
  CHECK(x.to_vector() == Doubles{3, 3, 3, 9, 9, 9});
  same.mutable_data<float>()[0] = 7;
  CHECK(x.version() == start + 5);
  CHECK(x.to_vector()[0] == 7);
  CHECK(copy.to_vector() == Doubles(6, 0.0));
  const std::uint64_t copied = copy.version();
  fill_(x, 1);
  CHECK(copy.version() == copied);
}

TEST_CASE("a random view reshaped has the values of its copy, and shares its storage where it can") {
  std::mt19937 random(3);
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
  int shared = 0, copied = 0;
  for (int round = 0; round < 400; ++round) {
    Tensor x = reshape(arange(48), {2, 3, 1, 4, 2});
    for (int changes = 0; changes < 3; ++changes) {
      const std::int64_t d = below(x.dims()), e = below(x.dims()), kind = below(4);
      if (kind == 0) x = transpose(x, d, e);
      if (kind == 1) x = slice(x, d, below(2), 4, 1 + below(2));
      if (kind == 2 && x.size(d) == 1) {
        Shape wider = x.shape();
        wider[d] = 3;
        x = expand(x, wider);
      }
      if (kind == 3 && x.dims() < 7) x = unsqueeze(x, d);
    }
    if (x.numel() == 0) continue;
    const Tensor copy = clone(x);
    REQUIRE(copy.is_contiguous());
    REQUIRE(copy.storage() != x.storage());
    for (const Shape& wanted : {Shape{-1}, Shape{-1, 2}, Shape{2, -1}, Shape{1, -1, 1}, Shape{-1, 6}, Shape{3, -1}}) {
      std::int64_t known = 1;
      for (std::int64_t size : wanted) known *= std::max<std::int64_t>(size, 1);
      if (x.numel() % known != 0) continue;
      const Tensor y = reshape(x, wanted);
      CAPTURE(x.shape());
      CAPTURE(x.strides());
      CAPTURE(wanted);
      REQUIRE(y.to_vector<std::int64_t>() == copy.to_vector<std::int64_t>());
      REQUIRE(reshape(copy, wanted).storage() == copy.storage());
      ++(y.storage() == x.storage() ? shared : copied);
    }
  }
  CHECK(shared > 100);
  CHECK(copied > 100);
}

TEST_CASE("operands broadcast also where dimensions are prepended, and gradients come back in their shapes") {
  const Tensor a = uniform64({3, 1, 5}, 1, 2, 1), b = uniform64({2, 3, 4, 5}, 1, 2, 2);
  for (Tensor (*op)(const Tensor&, const Tensor&) : {add, sub, mul, div}) {
    const Tensor y = op(a, b), swapped = op(b, a);
    REQUIRE(y.shape() == Shape{2, 3, 4, 5});
    REQUIRE(swapped.shape() == Shape{2, 3, 4, 5});
    expect_close(y, op(clone(expand(a, {2, 3, 4, 5})), b), 0);
    const Tensors both = grad({y}, {a, b}, {ones_like(y)});
    CHECK(both[0].shape() == Shape{3, 1, 5});
    CHECK(both[1].shape() == Shape{2, 3, 4, 5});
  }
  const Tensor y = a + b;
  for (std::int64_t i :
       {0, 1, 7, 59, 60, 119}) {  // by hand: b's element i stands in row i / 20 % 3 and column i % 5 of a
    CHECK(y.to_vector()[static_cast<std::size_t>(i)] ==
          a.to_vector()[static_cast<std::size_t>(i / 20 % 3 * 5 + i % 5)] + b.to_vector()[static_cast<std::size_t>(i)]);
  }
  expect_close(grad({y}, {a}, {ones_like(y)})[0], Doubles(15, 8.0));

  const Tensor column = randn64({2, 1}), row = randn64({1, 3});
  const Tensors outer = grad({sum(column + row)}, {column, row});
  expect_close(outer[0], {3, 3});
  expect_close(outer[1], {2, 2, 2});
  CHECK((zeros({0, 3}) + zeros({1, 3})).shape() == Shape{0, 3});
}

TEST_CASE("no dtype becomes another one silently") {
  const Tensor f = ones({2}), d = ones({2}, float64), i = ones({2}, int64), b = ones({2}, boolean);
  for (const Tensor& other : {d, i, b}) {
    expect_error([&] { add(f, other); }, {"add", "float32", name(other.dtype())});
    expect_error([&] { mul(other, f); }, {"mul", "float32", name(other.dtype())});
    expect_error([&] { where(b, f, other); }, {"where", "float32", name(other.dtype())});
    expect_error([&] { matmul(f, other); }, {"matmul", "float32", name(other.dtype())});
    expect_error([&] { concat({f, other}); }, {"concat", "float32", name(other.dtype())});
    expect_error([&] { add_(f, other); }, {"add_", "float32", name(other.dtype())});
  }
  expect_error([&] { exp(i); }, {"exp", "float32 or float64", "int64"});
  expect_error([&] { where(f, f, f); }, {"where", "bool", "float32"});
  CHECK((f + 1).dtype() == float32);
  CHECK((2 * d).dtype() == float64);
  CHECK((i + i).dtype() == int64);
  CHECK((i * 3).to_vector<std::int64_t>() == Ints{3, 3});
}

TEST_CASE("to converts, with a derivative between float types") {
  Tensor x = Tensor::of({0.1, -1.7, 3}, {.requires_grad = true});
  const Tensor y = to(x, float64);
  CHECK(y.dtype() == float64);
  CHECK(y.to_vector() == Doubles{static_cast<double>(0.1F), static_cast<double>(-1.7F), 3});
  (y * Tensor::of({1, 2, 3}, {3}, {.dtype = float64})).backward(ones({3}, float64));
  CHECK(x.grad().dtype() == float32);
  CHECK(x.grad().to_vector() == Doubles{1, 2, 3});
  CHECK(to(x, float32).is(x));

  const Tensor integers = to(x, int64);
  CHECK(integers.to_vector<std::int64_t>() == Ints{0, -1, 3});
  CHECK_FALSE(integers.requires_grad());
  CHECK(to(Tensor::of({0, -0.5, 2}), boolean).to_vector() == Doubles{0, 1, 1});
  CHECK(to(Tensor::of(Ints{3, 0}, {2}, {.dtype = int64}), float32).to_vector() == Doubles{3, 0});
}

TEST_CASE("only the last handle on the only view of a storage owns it alone") {
  Tensor x = ones({2});
  CHECK(x.is_sole_owner());
  Tensor handle = x;
  CHECK(handle.is(x));
  CHECK_FALSE(x.is_sole_owner());
  handle = x.detach();
  CHECK_FALSE(handle.is(x));
  CHECK_FALSE(x.is_sole_owner());
  handle = {};
  CHECK(x.is_sole_owner());
  x.requires_grad_();
  CHECK_FALSE(exp(x).is_sole_owner());  // a graph may have saved it
}

TEST_CASE("detach shows the same data without its place in the graph") {
  const Tensor x = Tensor::of({1, 2}, {.requires_grad = true}), y = x * 2, d = y.detach();
  CHECK(d.storage() == y.storage());
  CHECK(d.to_vector() == Doubles{2, 4});
  CHECK_FALSE(d.requires_grad());
  CHECK(d.is_leaf());
  CHECK_FALSE(x.detach().requires_grad());
  (x * d).backward(ones({2}));
  CHECK(x.grad().to_vector() == Doubles{2, 4});
}

}  // namespace
}  // namespace prenorm
