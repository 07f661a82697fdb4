#include "autograd/view/fault.h"

#include <algorithm>

#include "autograd/view/run_json.h"
#include "nn/tiny_lm.h"

namespace prenorm::view {
namespace {

// A net with most of what a fault can be planted in.
Tensor net(const Tensor& x, const Tensor& w, const Tensor& gamma) {
  const Tensor h = residual_add(x, linear(gelu(layer_norm(x, gamma, gamma * 0.1)), w));
  return sum(tanh(layer_norm_std(h, gamma, gamma)) * rms_norm(h, gamma));
}

TEST_CASE("each fault is wrong at the broken node and nowhere else") {
  Recording run;
  const Tensor x = randn64({3, 4}, 1), w = randn64({4, 4}, 2), gamma = uniform64({4}, 0.5, 2, 3);
  run.name(x, "x");
  net(x, w, gamma).backward();
  const Json right = parse(run);
  CHECK(with_verdict(right, "wrong").empty());
  int planted = 0;
  for (const char* op : {"layer_norm", "layer_norm_std", "rms_norm", "linear", "gelu", "tanh", "residual_add", "sum"}) {
    for (const std::string& fault : Recording::faults(op)) {
      if (fault == "= for +=") continue;
      CAPTURE(std::string(op));
      CAPTURE(fault);
      const Json json = parse(run, {.break_it = BreakIt{.op = op, .fault = fault}});
      const std::int64_t id = only(json, op)["id"];
      CHECK(with_verdict(json, "wrong") == Ids{id});
      CHECK(json["broken"]["node"] == id);
      CHECK(json["broken"]["fault"] == fault);
      ++planted;
    }
  }
  CHECK(planted == 3 * 8 + 3 + 3 + 2);
  CHECK(parse(run) == right);  // nothing stays broken
}

TEST_CASE("= for += is wrong at the value whose gradient comes together") {
  Recording run;
  const Tensor x = randn64({3}, 1);
  run.name(x, "x");
  const Tensor y = exp(x);
  sum(y * x + y).backward();
  const Json right = parse(run);
  const std::int64_t leaf = named(right, "x")["id"], op = only(right, "exp")["id"];
  for (std::int64_t id : {leaf, op}) {
    const Json json = parse(run, {.break_it = BreakIt{.node = id, .fault = "= for +="}});
    CHECK(with_verdict(json, "wrong") == Ids{id});
    for (const Json& fork : json["forks"]) CHECK(fork["ok"] == (fork["node"] != id));
  }
  for (const Json& fork : right["forks"]) CHECK(fork["ok"] == true);
}

TEST_CASE("without a change, the pass redone is the pass recorded") {
  manual_seed(0);
  nn::TinyLM model(11, {.d_model = 8, .n_heads = 2, .n_layers = 2, .max_len = 4});
  Recording run;
  const Tensor ids = randint(0, 11, {2, 4});
  cross_entropy(model(ids), ids).backward();
  Json right = parse(run), redone = parse(run, {.break_it = BreakIt{.op = "cross_entropy", .fault = "factor 1"}});
  redone["broken"] = nullptr;
  REQUIRE(redone["nodes"].size() == right["nodes"].size());
  for (std::size_t i = 0; i < right["nodes"].size(); ++i) {
    for (const char* key : {"cotangents", "gradients", "backward_index", "backward_numbers", "verdict"}) {
      CAPTURE(i);
      CAPTURE(std::string(key));
      CHECK(redone["nodes"][i][key] == right["nodes"][i][key]);
    }
  }
}

TEST_CASE("faults of a norm over rows of any number of dimensions") {
  for (const Shape& shape : {Shape{4}, Shape{3, 4}, Shape{2, 3, 4}, Shape{2, 1, 3, 4}}) {
    Recording run;
    const Tensor x = randn64(shape, 1), gamma = uniform64({4}, 0.5, 2, 3);
    sum(tanh(layer_norm(x, gamma)) * rms_norm(layer_norm_std(x, gamma), gamma)).backward();
    CHECK(with_verdict(parse(run), "wrong").empty());
    for (const char* op : {"layer_norm", "layer_norm_std", "rms_norm"}) {
      for (const std::string& fault : Recording::faults(op)) {
        if (fault == "= for +=") continue;
        CAPTURE(shape);
        CAPTURE(std::string(op));
        CAPTURE(fault);
        const Json json = parse(run, {.break_it = BreakIt{.op = op, .fault = fault}});
        CHECK(with_verdict(json, "wrong") == Ids{only(json, op)["id"]});
      }
    }
  }
}

TEST_CASE("gradients that are views are read as what they show") {
  Recording run;
  const Tensor x = randn64({3, 2}, 1), w = randn64({4, 2}, 2);
  sum(transpose(linear(x, w), 0, 1) * randn64({4, 3}, 3).detach()).backward();  // and a sum's is expanded
  const Json right = parse(run), redone = parse(run, {.break_it = BreakIt{.op = "sum", .fault = "factor 1"}});
  CHECK(only(redone, "linear")["backward_numbers"] == only(right, "linear")["backward_numbers"]);
  CHECK(only(right, "linear")["backward_numbers"].get<std::string>().find("sum_o") != std::string::npos);
}

TEST_CASE("a fault downstream of which nothing is passed on") {
  Recording run;
  const Tensor x = randn64({3}, 1);
  sum(exp(tanh(x))).backward();
  const Json json = parse(run, {.break_it = BreakIt{.op = "exp", .fault = "nothing is passed on"}});
  CHECK(with_verdict(json, "wrong") == Ids{only(json, "exp")["id"]});
  CHECK(values(only(json, "tanh")["gradients"][0]) == std::vector<double>{0, 0, 0});
}

TEST_CASE("errors name the faults there are") {
  Recording run;
  const Tensor x = randn64({3}, 1), unused = randn64({3}, 2);
  const Tensor aside = exp(unused);
  sum(tanh(x)).backward();
  const auto broken = [&](const BreakIt& fault) { return [&run, fault] { (void)run.json({.break_it = fault}); }; };
  expect_error(broken({.op = "tanh", .fault = "gremlins"}), {"gremlins", "tanh", "\"sign\"", "\"= for +=\""});
  expect_error(broken({.op = "tanh", .fault = "the mean part is not taken away"}), "there is no fault");
  expect_error(broken({.op = "tanh", .fault = "factor two"}), "there is no fault");
  expect_error(broken({.op = "linear", .fault = "sign"}), {"linear", "reached no node"});
  expect_error(broken({.op = "exp", .fault = "sign"}), {"exp", "reached no node"});
  expect_error(broken({.node = 99, .fault = "sign"}), {"no node 99"});
  expect_error(broken({.node = 1, .fault = "sign"}), {"did not reach node 1"});
}

}  // namespace
}  // namespace prenorm::view
