#include "autograd/named_tensors.h"

#include <limits>
#include <string>
#include <vector>

#include "autograd/ops.h"
#include "support.h"

namespace prenorm {
namespace {

using Doubles = std::vector<double>;
using Names = std::vector<std::string>;

TEST_CASE("values are copied by name, in any order, and the tensors stay where they are") {
  const Tensor a = Tensor::of({1, 2}, {.requires_grad = true}), b = zeros({2, 2});
  const void* memory = a.data<float>();
  const LoadResult result =
      load_named("model", {{"a", a}, {"b", b}}, {{"b", full({2, 2}, 7)}, {"a", Tensor::of({5, 6})}});
  CHECK(result.missing.empty());
  CHECK(result.unexpected.empty());
  CHECK(a.to_vector() == Doubles{5, 6});
  CHECK(b.to_vector() == Doubles{7, 7, 7, 7});
  CHECK(a.data<float>() == memory);
  CHECK(a.requires_grad());
}

TEST_CASE("values that are views are copied as they show") {
  const Tensor a = zeros({2, 2});
  load_named("model", {{"a", a}}, {{"a", transpose(Tensor::of({1, 2, 3, 4}, {2, 2}), 0, 1)}});
  CHECK(a.to_vector() == Doubles{1, 3, 2, 4});
}

TEST_CASE("names that do not match are listed, and nothing changes") {
  const Tensor a = zeros({2}), b = zeros({2});
  const NamedTensors into{{"a", a}, {"b", b}}, values{{"a", ones({2})}, {"c", ones({9})}};
  expect_error([&] { load_named("model", into, values); },
               {"model: ", "names do not match", "missing: b", "unexpected: c"});
  expect_error([&] { load_named("model", into, {{"a", ones({2})}}); }, {"missing: b", "unexpected: none"});
  expect_error([&] { load_named("model", {{"a", a}}, values); }, {"missing: none", "unexpected: c"});
  CHECK(a.to_vector() == Doubles{0, 0});

  const LoadResult result = load_named("model", into, values, /*strict=*/false);
  CHECK(result.missing == Names{"b"});
  CHECK(result.unexpected == Names{"c"});
  CHECK(a.to_vector() == Doubles{1, 1});
  CHECK(b.to_vector() == Doubles{0, 0});
}

TEST_CASE("long lists of names are cut") {
  NamedTensors values;
  for (int i = 0; i < 11; ++i) values.push_back({"w" + std::to_string(i), zeros({1})});
  expect_error([&] { load_named("model", {}, values); }, {"unexpected: w0, w1,", "w7 and 3 more"});
}

TEST_CASE("shapes and dtypes must be equal: nothing is broadcast or converted, and nothing changes") {
  const Tensor a = zeros({2, 3}), b = zeros({2});
  for (const Shape& shape : {Shape{3}, Shape{1, 3}, Shape{1}, Shape{3, 2}, Shape{2, 3, 1}, Shape{}}) {
    for (const bool strict : {true, false}) {
      expect_error(
          [&] {
            load_named("model", {{"b", b}, {"a", a}}, {{"b", ones({2})}, {"a", ones(shape)}}, strict);
          },
          {"model: 'a' is [2, 3] float32 here", "the value to load is ["});
    }
  }
  expect_error(
      [&] {
        load_named("model", {{"b", b}, {"a", a}}, {{"b", ones({2})}, {"a", ones({2, 3}, float64)}});
      },
      "[2, 3] float64");
  CHECK(a.to_vector() == Doubles(6, 0.0));
  CHECK(b.to_vector() == Doubles{0, 0});
}

TEST_CASE("a name stands for one tensor") {
  const Tensor a = zeros({1});
  expect_error([&] { load_named("model", {{"a", a}}, {{"a", a}, {"a", ones({1})}}); }, "two tensors are named 'a'");
  expect_error([&] { match_named("model", {{"a", a}, {"a", a}}, {{"a", a}}); }, "two tensors are named 'a'");
}

TEST_CASE("matching looks and changes nothing") {
  const Tensor a = zeros({2});
  const std::uint64_t version = a.version();
  CHECK(match_named("model", {{"a", a}}, {{"a", ones({2})}}).missing.empty());
  CHECK(a.version() == version);
  CHECK(match_named("model", {{"a", a}}, {}, /*strict=*/false).missing == Names{"a"});
}

TEST_CASE("values come over bit for bit, NaN included") {
  const Tensor a = zeros({2}, float64);
  load_named("model", {{"a", a}}, {{"a", Tensor::of({std::nan(""), -0.0}, {2}, {.dtype = float64})}});
  CHECK(std::isnan(a.to_vector()[0]));
  CHECK(std::signbit(a.to_vector()[1]));
}

}  // namespace
}  // namespace prenorm
