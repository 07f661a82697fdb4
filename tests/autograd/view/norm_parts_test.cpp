#include "autograd/view/norm_parts.h"

#include <functional>

#include "autograd/view/run_json.h"

namespace prenorm::view {
namespace {

TEST_CASE("the parts add up, and what passes is dx times sigma") {
  const Tensor x = randn64({3, 5}, 1, 2, 3), gamma = uniform64({5}, 0.5, 2, 2), beta = randn64({5}, 3);
  const std::vector<std::pair<std::string, std::function<Tensor(double)>>> norms{
      {"layer_norm", [&](double eps) { return layer_norm(x, gamma, beta, eps); }},
      {"layer_norm_std", [&](double eps) { return layer_norm_std(x, gamma, beta, eps); }},
      {"rms_norm", [&](double eps) { return rms_norm(x, gamma, eps); }}};
  for (const auto& named : norms) {
    const auto& op = named.first;
    const auto& norm = named.second;
    for (double eps : {1e-6, 0.5}) {
      CAPTURE(op);
      CAPTURE(eps);
      Recording run;
      sum(tanh(norm(eps))).backward();
      const Json json = parse(run);
      REQUIRE(json["norms"].size() == 1);
      const Json& parts = json["norms"][0];
      const Json& node = only(json, op);
      CHECK(parts["node"] == node["id"]);
      CHECK(parts["mean_part"].is_null() == (op == "rms_norm"));
      const std::vector<double> dy = values(node["cotangents"][0]), dx = values(node["gradients"][0]),
                                g = values(parts["incoming"]), x_hat_part = values(parts["x_hat_part"]),
                                passed = values(parts["passed"]), sigma = values(parts["sigma"]);
      REQUIRE(sigma.size() == 3);
      for (std::size_t i = 0; i < dx.size(); ++i) {
        const double mean = op == "rms_norm" ? 0 : values(parts["mean_part"])[i];
        CHECK(g[i] == doctest::Approx(dy[i] * gamma.to_vector()[i % 5]));
        CHECK(passed[i] == doctest::Approx(g[i] - mean - x_hat_part[i]).epsilon(1e-12));
        CHECK(passed[i] / sigma[i / 5] == doctest::Approx(dx[i]).epsilon(1e-10));
      }
      CHECK(number(parts["norms"]["incoming"]) > number(parts["norms"]["passed"]));
      CHECK(parts["norms"]["mean_part"].is_null() == (op == "rms_norm"));
    }
  }
}

TEST_CASE("a constant row, and float32") {
  Recording run;
  const Tensor x = Tensor::of({1, 1, 1, 2, 3, 5}, {2, 3}, {.requires_grad = true});
  sum(layer_norm_std(x) * Tensor::of({1, 2, 4, 4, 2, 1}, {2, 3})).backward();
  const Json json = parse(run);
  const Json& parts = json["norms"][0];
  const std::vector<double> dx = values(only(json, "layer_norm_std")["gradients"][0]), passed = values(parts["passed"]),
                            sigma = values(parts["sigma"]);
  CHECK(sigma[0] == doctest::Approx(1e-6).epsilon(1e-6));
  for (std::size_t i = 0; i < 6; ++i) CHECK(passed[i] / sigma[i / 3] == doctest::Approx(dx[i]).epsilon(1e-5));
}

}  // namespace
}  // namespace prenorm::view
