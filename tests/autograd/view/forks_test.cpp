#include "autograd/view/forks.h"

#include "autograd/view/run_json.h"
#include "nn/tiny_lm.h"

namespace prenorm::view {
namespace {

const Json& fork_at(const Json& run, std::int64_t node) {
  for (const Json& fork : run["forks"]) {
    if (fork["node"] == node) return fork;
  }
  FAIL("no fork at node ", node);
  return run["forks"][0];
}

TEST_CASE("the parts of a fork add up to the total") {
  manual_seed(0);
  nn::TinyLM model(11, {.d_model = 8, .n_heads = 2, .n_layers = 3, .max_len = 4});
  model.to(float64);
  Recording run;
  const Tensor ids = randint(0, 11, {2, 4});
  cross_entropy(model(ids), ids).backward();
  const Json json = parse(run);
  CHECK(json["forks"].size() == 6);  // two a block
  for (const Json& fork : json["forks"]) {
    std::vector<double> sum(64, 0.0);
    for (const Json& part : fork["parts"]) {
      const std::vector<double> gradient = values(part["gradient"]);
      double squares = 0;
      for (std::size_t i = 0; i < sum.size(); ++i) {
        sum[i] += gradient[i];
        squares += gradient[i] * gradient[i];
      }
      CHECK(number(part["norm"]) == doctest::Approx(std::sqrt(squares)));
    }
    const std::vector<double> total = values(fork["total"]);
    for (std::size_t i = 0; i < sum.size(); ++i) CHECK(sum[i] == doctest::Approx(total[i]).epsilon(1e-12));
    CHECK(fork["ok"] == true);
    CHECK(fork["parts"][0]["role"] == "skip");
    CHECK(fork["parts"][1]["role"] == "branch");
    CHECK(json["nodes"][fork["parts"][0]["consumer"].get<std::size_t>()]["op"] == "residual_add");
    CHECK(std::abs(number(fork["cosine"])) < 1);
  }
}

TEST_CASE("roles, cosine, and a value used twice by one op") {
  Recording run;
  const Tensor x = randn64({3}, 1), y = randn64({3}, 2);
  run.name(x, "x");
  run.name(y, "y");
  (sum(residual_add(x, x * 2.0)) + sum(y * y) + sum(exp(y))).backward();
  const Json json = parse(run);
  const Json& at_x = fork_at(json, named(json, "x")["id"]);
  CHECK(at_x["parts"][0]["role"] == "skip");
  CHECK(at_x["parts"][1]["role"] == "branch");
  CHECK(number(at_x["cosine"]) == doctest::Approx(1));
  const Json& at_y = fork_at(json, named(json, "y")["id"]);
  CHECK(at_y["parts"].size() == 3);
  CHECK(at_y["cosine"].is_null());
  for (const Json& part : at_y["parts"]) CHECK(part["role"] == "");
  CHECK(values(at_y["total"]) == y.grad().to_vector());
}

TEST_CASE("what backward begins with is a part of the total, too") {
  Recording run;
  const Tensor x = randn64({3}, 1);
  const Tensor y = exp(x);
  const Tensor z = y * y;
  z.backward(ones({3}, float64), {.keep_graph = true});
  y.backward(ones({3}, float64));
  const Json json = parse(run);
  CHECK(with_verdict(json, "wrong").empty());
  CHECK(json["forks"][0]["ok"] == true);
}

TEST_CASE("a gradient hook may change the total: then nothing is claimed") {
  Recording run;
  const Tensor x = randn64({3}, 1);
  const Tensor y = exp(x);
  y.register_hook([](const Tensor& gradient) { return gradient * 2.0; });
  sum(y * y).backward();
  const Json json = parse(run);
  CHECK(json["forks"][0]["ok"].is_null());
  CHECK(with_verdict(json, "wrong").empty());
}

}  // namespace
}  // namespace prenorm::view
