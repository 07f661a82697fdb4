#include "autograd/view/budget.h"

#include "autograd/view/run_json.h"

namespace prenorm::view {
namespace {

// Writes all tensors through a budget.
std::vector<Json> written(const std::vector<std::pair<Tensor, Importance>>& tensors, std::size_t other,
                          bool& truncated) {
  TensorBudget budget;
  for (const auto& [tensor, importance] : tensors) CHECK(budget.text(tensor, importance).empty());
  budget.settle(other);
  std::vector<Json> texts;
  for (const auto& [tensor, importance] : tensors) texts.push_back(Json::parse(budget.text(tensor, importance)));
  truncated = budget.truncated();
  return texts;
}

TEST_CASE("small tensors in full, large ones summarised") {
  bool truncated = true;
  const std::vector<Json> texts =
      written({{randn64({256}), Importance::other}, {randn64({257}), Importance::failed}}, 1000, truncated);
  CHECK(texts[0]["values"].size() == 256);
  CHECK(!texts[1].contains("values"));
  CHECK(texts[1]["stats"]["norm"].is_number());
  CHECK(!truncated);
}

TEST_CASE("where space is short, failed nodes come first, then what forks and norms show") {
  std::vector<std::pair<Tensor, Importance>> tensors;
  for (int i = 0; i < 900; ++i) {
    tensors.emplace_back(randn64({256}), i % 3 == 0   ? Importance::other
                                         : i % 3 == 1 ? Importance::shown
                                                      : Importance::failed);
  }
  bool truncated = false;
  const std::vector<Json> texts = written(tensors, 1000, truncated);
  CHECK(truncated);
  std::array<int, 3> full{};
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    full[i % 3] += texts[i].contains("values") ? 1 : 0;
    if (texts[i].contains("values")) bytes += texts[i].dump().size();
  }
  CHECK(full[2] == 300);
  CHECK(full[1] < 300);
  CHECK(full[0] == 0);
  CHECK(bytes <= 2'000'000);
}

TEST_CASE("5,000 nodes stay below 4 MB, with large tensors and with small ones") {
  for (std::int64_t n : {2, 200, 2000}) {
    CAPTURE(n);
    Recording run;
    Tensor x = to(randn64({n}, 1).detach(), float32);
    x.requires_grad_();
    Tensor h = x;
    while (run.size() < 5000) h = residual_add(h, tanh(h)) * 0.5;
    sum(h).backward();
    const std::string json = run.json({.checks = n == 2});
    CHECK(json.size() < 4'000'000);
    const Json parsed = Json::parse(json);
    CHECK(parsed["nodes"].size() >= 5000);
    CHECK(with_verdict(parsed, "wrong").empty());
    CHECK(parsed["truncated"] == (n == 200));
  }
}

}  // namespace
}  // namespace prenorm::view
