#include "autograd/view/paths.h"

#include <functional>
#include <numeric>

#include "autograd/view/run_json.h"
#include "nn/tiny_lm.h"

namespace prenorm::view {
namespace {

double sum_of(const Json& shares) {
  double sum = 0;
  for (const Json& share : shares) sum += number(share);
  return sum;
}

TEST_CASE("shares of a linear stack are binomial") {
  // x_(l+1) = x_l + a x_l: the gradient is (1 + a)^L, and a^k binom(L, k) of it crossed k branches.
  Recording run;
  const Tensor x = randn64({3}, 1);
  Tensor h = x;
  for (int l = 0; l < 4; ++l) h = residual_add(h, h * 0.5);
  sum(h).backward();
  const Json json = parse(run);
  REQUIRE(json["paths"].size() == 1);
  const Json& path = json["paths"][0];
  CHECK(path["stream"].get<Ids>() == ids_of(json, "residual_add"));
  const double all = std::pow(1.5, 4);
  const std::vector<double> binomial{1, 4, 6, 4, 1};
  for (std::size_t k = 0; k < 5; ++k) {
    CHECK(number(path["shares"][k]) == doctest::Approx(binomial[k] * std::pow(0.5, k) / all));
    CHECK(number(path["norms"][k]) == doctest::Approx(binomial[k] * std::pow(0.5, k) * std::sqrt(3.0)));
  }
  CHECK(number(path["sum"]) == doctest::Approx(1).epsilon(1e-12));
}

TEST_CASE("shares add up to 1, for pre-norm and post-norm") {
  for (nn::Order order : {nn::Order::pre, nn::Order::post}) {
    manual_seed(0);
    nn::TinyLM model(11, {.d_model = 8, .n_heads = 2, .n_layers = 4, .max_len = 4, .order = order});
    model.to(float64);
    Recording run;
    const Tensor ids = randint(0, 11, {2, 4});
    cross_entropy(model(ids), ids).backward();
    const Json json = parse(run);
    REQUIRE(json["paths"].size() == 1);
    CHECK(json["paths"][0]["stream"].size() == 8);
    CHECK(json["paths"][0]["shares"].size() == 9);
    CHECK(std::abs(sum_of(json["paths"][0]["shares"]) - 1) < 1e-12);
    CHECK(std::abs(number(json["paths"][0]["sum"]) - 1) < 1e-12);
  }
}

TEST_CASE("uses of the stream beside it count as what came in there") {
  Recording run;
  const Tensor x = randn64({3}, 1);
  const Tensor a = residual_add(x, tanh(x)), b = residual_add(a, exp(a));
  (sum(b) + sum(a * a) + sum(x * x)).backward();
  const Json json = parse(run);
  CHECK(std::abs(sum_of(json["paths"][0]["shares"]) - 1) < 1e-12);
}

TEST_CASE("an input that asks for no gradient, a zero gradient, several streams") {
  Recording run;
  const Tensor x = randn64({3}, 1).detach(), w = randn64({3}, 2);
  const Tensor first = residual_add(x, w * x);
  sum(residual_add(first, tanh(first))).backward();
  Json json = parse(run);
  REQUIRE(json["paths"].size() == 1);
  CHECK(json["paths"][0]["stream"].size() == 1);  // from where a gradient arrives
  CHECK(std::abs(number(json["paths"][0]["sum"]) - 1) < 1e-12);

  Recording two;
  const Tensor y = randn64({3}, 3), z = randn64({3}, 4);
  sum(residual_add(y, tanh(y)) * residual_add(z, tanh(z))).backward();
  sum(residual_add(w, tanh(w)) * 0.0).backward();
  json = parse(two);
  CHECK(json["paths"].size() == 2);
}

}  // namespace
}  // namespace prenorm::view
