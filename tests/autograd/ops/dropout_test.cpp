#include "autograd/ops/op_checks.h"

namespace prenorm {
namespace {

bool generator_untouched(const std::function<void()>& f) {
  const std::vector<std::int64_t> before = default_generator().state().to_vector<std::int64_t>();
  f();
  return default_generator().state().to_vector<std::int64_t>() == before;
}

TEST_CASE("dropout: gradients, both orders, all layouts") {
  for (double p : {0.0, 0.1, 0.5, 1.0}) {
    const auto f = [p](const Tensors& in) {
      manual_seed(3);
      return dropout(in[0], p);
    };
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{7}, Shape{3, 4}, Shape{2, 2, 3}}) {
      const Tensor x = randn64(shape);
      const bool nothing = p == 1 || (p == 0.5 && shape.dims() == 0) || numel(shape) == 0;
      expect_gradients(f, Tensors{x}, {.allow_vacuous = nothing});
      CHECK(f({x}).shape() == shape);
    }
    expect_gradients(f, Tensors{strided(randn64({3, 4}))}, {.allow_vacuous = p == 1});
    expect_gradients([&](const Tensors& in) { return f(in) * in[0]; }, Tensors{randn64({3, 4})},
                     {.allow_vacuous = p == 1});
  }
}

TEST_CASE("dropout: what is kept is divided by 1 - p, what is dropped is 0, and the gradient has the same mask") {
  manual_seed(1);
  const Tensor x = uniform64({1000}, 1, 2);
  const Tensor y = dropout(x, 0.25), dx = grad({y}, {x}, {ones({1000}, float64)})[0];
  const std::vector<double> from = x.to_vector(), to = y.to_vector(), slope = dx.to_vector();
  int kept = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    kept += to[i] != 0 ? 1 : 0;
    CHECK(to[i] == doctest::Approx(to[i] != 0 ? from[i] / 0.75 : 0));
    CHECK(slope[i] == doctest::Approx(to[i] != 0 ? 1 / 0.75 : 0));
  }
  CHECK(kept > 700);
  CHECK(kept < 800);
}

TEST_CASE("dropout: the mean stays") {
  manual_seed(2);
  CHECK(mean(dropout(ones({1000000}), 0.1)).item() == doctest::Approx(1).epsilon(0.002));
}

TEST_CASE("dropout: with p = 0 and in evaluation x itself comes back and nothing is drawn") {
  const Tensor x = randn64({4});
  CHECK(generator_untouched([&] {
    CHECK(dropout(x, 0).is(x));
    CHECK(dropout(x, 0.5, false).is(x));
    CHECK(dropout(x, 1, false).is(x));
  }));
  CHECK_FALSE(generator_untouched([&] { dropout(x, 0.5); }));
}

TEST_CASE("dropout: with p = 1 everything is 0, and so are the gradients") {
  for (DType dtype : {float32, float64}) {
    const Tensor x = Tensor::of({1, -2, 3}, {.dtype = dtype, .requires_grad = true});
    CHECK(generator_untouched([&] {
      expect_close(dropout(x, 1), {0, 0, 0});
      expect_gradient(dropout(x, 1), x, {0, 0, 0}, 0);
    }));
  }
}

TEST_CASE("dropout: the same mask for float32 and float64") {
  const Tensor x = uniform64({300}, 1, 2).detach();
  manual_seed(5);
  const Tensor y = dropout(x, 0.3);
  manual_seed(5);
  expect_close(dropout(to(x, float32), 0.3), y, 1e-6);
}

TEST_CASE("dropout: refusals, before anything is drawn") {
  const Tensor x = ones({3});
  CHECK(generator_untouched([&] {
    for (double p : {-0.1, 1.1, static_cast<double>(NAN)}) {
      for (bool training : {true, false}) {
        expect_error([&] { dropout(x, p, training); }, {"dropout", "between 0 and 1", "p = "});
      }
    }
    expect_error([&] { dropout(ones({3}, int64), 0.5); }, {"dropout", "int64"});
    expect_error([&] { dropout(Tensor(), 0.5); }, {"dropout", "undefined"});
  }));
}

}  // namespace
}  // namespace prenorm
