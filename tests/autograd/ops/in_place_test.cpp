#include "autograd/grad_mode.h"
#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("fill_, copy_, add_, mul_: values in all dtypes; each write counts the version up") {
  for (DType dtype : {float32, float64, int64}) {
    const Tensor x = zeros({2, 2}, dtype);
    const std::uint64_t before = x.version();
    expect_close(fill_(x, 3), {3, 3, 3, 3});
    expect_close(add_(x, Tensor::of({1, 2}, {.dtype = dtype})), {4, 5, 4, 5});
    expect_close(add_(x, Tensor::of({1, 2}, {.dtype = dtype}), -2), {2, 1, 2, 1});
    expect_close(mul_(x, 3), {6, 3, 6, 3});
    expect_close(copy_(x, Tensor::of({7, 8, 9, 10}, {2, 2}, {.dtype = dtype})), {7, 8, 9, 10});
    CHECK(x.version() == before + 5);
  }
  expect_close(fill_(zeros({2}, boolean), 1), {1, 1});
}

TEST_CASE("copy_: converts the dtype and broadcasts") {
  const Tensor x = zeros({2, 3}, int64);
  expect_close(copy_(x, Tensor::of({1.75, -2.5, 0})), {1, -2, 0, 1, -2, 0});
  expect_close(copy_(x, Tensor::of({4, 5}, {2, 1})), {4, 4, 4, 5, 5, 5});
  expect_close(copy_(zeros({2}, boolean), Tensor::of({0.5, 0})), {1, 0});
}

TEST_CASE("writes through views reach exactly the elements of the view") {
  const Tensor x = zeros({3, 4});
  fill_(slice(x, 1, 1, 3), 1);
  add_(transpose(x, 0, 1), Tensor::of({10, 20, 30}));
  mul_(select(x, 0, 2), 2);
  copy_(slice(x, 0, 0, 1), Tensor::of({-1}));
  expect_close(x, {-1, -1, -1, -1, 20, 21, 21, 20, 60, 62, 62, 60});
  const Tensor long_row = zeros({2, 100000});
  add_(slice(long_row, 1, 1, 100000), ones({}), 0.5);
  CHECK(sum(long_row).item() == 99999);
}

TEST_CASE("values that share memory with the target are read before they are written") {
  const Tensor x = arange(5);
  copy_(slice(x, 0, 1, 5), slice(x, 0, 0, 4));
  expect_close(x, {0, 0, 1, 2, 3});
  const Tensor square = reshape(arange(4), {2, 2});
  copy_(square, transpose(square, 0, 1));
  expect_close(square, {0, 2, 1, 3});
  add_(square, transpose(square, 0, 1));
  expect_close(square, {0, 3, 3, 6});
  add_(square, square);
  expect_close(square, {0, 6, 6, 12});
}

TEST_CASE("empty targets, repeated ones too") {
  fill_(zeros({0}), 1);
  add_(zeros({2, 0}), zeros({2, 1}));
  add_(expand(zeros({1, 0}), {2, 0}), zeros({2, 0}));
}

TEST_CASE("a tensor that requires grad is written under NoGrad only, and its graph notices") {
  const Tensor x = randn64({2});
  const Tensor constant = ones({2}, float64);
  const auto all = [&](const Tensor& to, const Tensor& from) {
    return std::vector<std::function<void()>>{[=] { copy_(to, from); }, [=] { add_(to, from); }};
  };
  for (const auto& write : all(x, constant)) expect_error(write, {"[2]", "requires grad", "NoGrad"});
  for (const auto& write : all(constant, x)) expect_error(write, {"[2]", "require grad", "detach()"});
  expect_error([&] { fill_(x, 1); }, {"fill_", "requires grad"});
  expect_error([&] { mul_(x, 1); }, {"mul_", "requires grad"});
  const Tensor y = x * x;
  {
    const NoGrad no_grad;
    for (const auto& write : all(x, constant)) write();
  }
  expect_error([&] { y.backward(constant); }, {"mul", "[2]", "version 1", "version 3"});
}

TEST_CASE("in place: refusals") {
  const Tensor x = zeros({2, 3});
  for (const auto& [op, write] : std::vector<std::pair<std::string_view, std::function<void(Tensor)>>>{
           {"copy_", [&](const Tensor& y) { copy_(x, y); }}, {"add_", [&](const Tensor& y) { add_(x, y); }}}) {
    expect_error([&, f = write] { f(ones({2})); }, {op, "[2]", "[2, 3]"});
    expect_error([&, f = write] { f(ones({4, 2, 3})); }, {op, "[4, 2, 3]", "[2, 3]"});
  }
  expect_error([&] { add_(x, ones({3}, float64)); }, {"add_", "float32", "float64"});
  expect_error([] { add_(ones({2}, boolean), ones({2}, boolean)); }, {"add_", "bool"});
  expect_error([] { mul_(ones({2}, boolean), 2); }, {"mul_", "bool"});
  const Tensor repeated = expand(ones({2, 1}), {2, 3});
  expect_error([&] { fill_(repeated, 1); }, {"fill_", "[2, 3]", "clone()"});
  expect_error([&] { add_(repeated, x); }, {"add_", "[2, 3]", "clone()"});
}

}  // namespace
}  // namespace prenorm
