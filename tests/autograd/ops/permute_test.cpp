#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

TEST_CASE("permute: y[i_dims] = x[i], with gradients") {
  struct Case {
    Shape shape;
    Dims dims;
  };
  for (const Case& one : std::vector<Case>{{{}, {}},
                                           {{3}, {0}},
                                           {{2, 3}, {0, 1}},
                                           {{2, 3}, {1, 0}},
                                           {{2, 3, 4}, {2, 0, 1}},
                                           {{2, 3, 4}, {-1, 0, -2}},
                                           {{2, 1, 3, 2}, {3, 1, 0, 2}},
                                           {{2, 0, 3}, {2, 1, 0}}}) {
    const Shape& shape = one.shape;
    const Dims& dims = one.dims;
    CAPTURE(dims);
    const Tensor x = randn64(shape);
    const auto f = [d = dims](const Tensors& in) { return permute(in[0], d); };
    expect_gradients(f, Tensors{x}, maybe_vacuous(x));
    expect_gradients(f, Tensors{strided(x)}, maybe_vacuous(x));
    const Tensor y = f({x});
    CHECK(y.storage() == x.storage());
    // Each element of y, found in x by its indices.
    const std::vector<double> from = x.to_vector(), to = y.to_vector();
    const Strides strides = contiguous_strides(shape), steps = contiguous_strides(y.shape());
    for (std::int64_t i = 0; i < y.numel(); ++i) {
      std::int64_t place = 0;
      for (std::int64_t d = 0; d < y.dims(); ++d) {
        const std::int64_t index = i / steps[d] % y.shape()[d];
        place += index * strides[dims[d] < 0 ? dims[d] + y.dims() : dims[d]];
      }
      CHECK(to[static_cast<std::size_t>(i)] == from[static_cast<std::size_t>(place)]);
    }
  }
}

TEST_CASE("transpose: two dimensions change places") {
  const Tensor x = randn64({2, 3, 4});
  CHECK(transpose(x, 0, -1).shape() == Shape{4, 3, 2});
  expect_close(transpose(x, 1, 2), permute(x, {0, 2, 1}), 0);
  CHECK(transpose(x, 1, -2).is(x));
  CHECK(transpose(Tensor::scalar(1), 0, -1).shape() == Shape{});
  expect_gradients([](const Tensors& in) { return transpose(in[0], 0, -1); }, Tensors{x});
  const Tensor square = randn64({3, 3});
  expect_gradients([](const Tensors& in) { return transpose(in[0], 0, 1) * in[0]; }, Tensors{square});
}

TEST_CASE("permute and transpose: refusals") {
  const Tensor x = ones({2, 3});
  expect_error([&] { permute(x, {0}); }, {"permute", "[0]", "[2, 3]"});
  expect_error([&] { permute(x, {0, -2}); }, {"permute", "twice"});
  expect_error([&] { permute(x, {0, 2}); }, {"permute", "dimension 2"});
  expect_error([&] { transpose(x, 0, 2); }, {"transpose", "dimension 2"});
}

}  // namespace
}  // namespace prenorm
