#include "autograd/view/check.h"

#include "autograd/view/run_json.h"

namespace prenorm::view {
namespace {

TEST_CASE("small inputs are checked element by element") {
  Recording run;
  const Tensor x = uniform64({2, 3}, 0.5, 2, 1);
  sum(log(x) * x).backward();
  const Json json = parse(run);
  for (const char* op : {"log", "mul", "sum"}) {
    const Json& node = only(json, op);
    for (std::size_t i = 0; i < node["checks"].size(); ++i) {
      const Json& check = node["checks"][i];
      CHECK(check["mode"] == "elements");
      CHECK(check["ok"] == true);
      CHECK(check["error"].get<double>() < 1e-8);
      CHECK(check["difference"]["shape"] == node["gradients"][i]["shape"]);
      const std::vector<double> gradient = values(node["gradients"][i]), difference = values(check["difference"]);
      for (std::size_t e = 0; e < gradient.size(); ++e) CHECK(difference[e] == doctest::Approx(gradient[e]));
    }
  }
}

TEST_CASE("large inputs are checked along a direction, in float32 too") {
  for (DType dtype : {float32, float64}) {
    CAPTURE(std::string(name(dtype)));
    Recording run;
    Tensor x = to(randn64({40, 50}, 1).detach(), dtype), w = to(randn64({30, 50}, 2).detach(), dtype);
    x.requires_grad_();
    w.requires_grad_();
    sum(gelu(linear(layer_norm(x), w))).backward();
    const Json json = parse(run);
    const Json& linear = only(json, "linear");
    for (int i : {0, 1}) {
      const Json& check = linear["checks"][i];
      CHECK(check["mode"] == "direction");
      CHECK(check["ok"] == true);
      CHECK(check["error"].get<double>() < (dtype == float64 ? 1e-8 : 1e-5));
      CHECK(number(check["gradient"]) == doctest::Approx(number(check["difference"])).epsilon(1e-4));
    }
    CHECK(with_verdict(json, "wrong").empty());
    CHECK(with_verdict(json, "unchecked").empty());
  }
}

TEST_CASE("a wrong backward shows at its own node only") {
  for (std::int64_t n : {3, 400}) {  // by elements, along a direction
    for (DType dtype : {float32, float64}) {
      for (double factor : {-1.0, 1.01, 2.0, 0.0}) {
        CAPTURE(n);
        CAPTURE(std::string(name(dtype)));
        CAPTURE(factor);
        Recording run;
        Tensor x = to(randn64({n}, 1).detach(), dtype), w = to(randn64({n}, 2).detach(), dtype);
        x.requires_grad_();
        w.requires_grad_();
        sum(tanh(wrong_product(exp(x), w, factor) * x)).backward();
        const Json json = parse(run);
        const Json& wrong = only(json, "wrong_product");
        CHECK(with_verdict(json, "wrong") == Ids{wrong["id"]});
        CHECK(wrong["checks"][0]["ok"] == false);
        CHECK(wrong["checks"][1]["ok"] == true);
        CHECK(with_verdict(json, "unchecked").empty());
      }
    }
  }
}

TEST_CASE("a wrong check says what it looks like") {
  Recording run;
  const Tensor x = randn64({3}, 1), w = randn64({3}, 2);
  sum(wrong_product(x, w, -1)).backward();
  const std::string reason = only(parse(run), "wrong_product")["checks"][0]["reason"];
  CHECK_MESSAGE(reason.find("sign") != std::string::npos, reason);
}

TEST_CASE("a gradient that is forgotten is wrong; one that nobody asked for is not") {
  Recording run;
  const Tensor x = randn64({3}, 1), w = randn64({3}, 2);
  sum(wrong_product(x, w, 1, /*forgets=*/true)).backward();
  Json json = parse(run);
  CHECK(with_verdict(json, "wrong") == Ids{only(json, "wrong_product")["id"]});

  Recording other;
  (void)grad({sum(x * w)}, {x});
  json = parse(other);
  CHECK(with_verdict(json, "wrong").empty());
  CHECK(only(json, "mul")["checks"][0]["ok"] == true);
  CHECK(only(json, "mul")["checks"][1].is_null());
}

TEST_CASE("at a kink any slope between left and right is right") {
  const auto leaf = [](std::initializer_list<double> values) {
    return Tensor::of(values, {.dtype = float64, .requires_grad = true});
  };
  Recording run;
  const Tensor x = leaf({0, 0, 1, -1});
  (sum(relu(x)) + sum(abs(x)) + max(x * 0.0) + norm(x * 0.0)).backward();
  const Json json = parse(run);
  for (const char* op : {"relu", "abs", "max", "norm"}) CHECK(only(json, op)["verdict"] == "ok");
  CHECK(with_verdict(json, "wrong").empty());
  CHECK(only(json, "relu")["checks"][0]["reason"].get<std::string>().find("kink") != std::string::npos);

  // Along a direction: a third of 3000 elements stands on the kink.
  Recording large;
  Tensor y = randn64({3000}, 1);
  {
    const NoGrad no_grad;
    fill_(slice(y, 0, 0, 1000), 0);
  }
  sum(relu(y) * randn64({3000}, 2).detach()).backward();
  const Json big = parse(large);
  CHECK(only(big, "relu")["checks"][0]["mode"] == "direction");
  CHECK(only(big, "relu")["verdict"] == "ok");
}

TEST_CASE("conversions between dtypes, masks, dropout, lookups") {
  manual_seed(1);
  Recording run;
  const Tensor x = randn64({3, 4}, 1);
  const Tensor mask = gt(x.detach(), zeros_like(x.detach()));
  const Tensor single = to(x, float32);
  const Tensor back = to(single * single, float64);
  const Tensor y = where(mask, back, exp(x)) + masked_fill(x, mask, -INFINITY) * 0.0 + dropout(x, 0.5);
  const Tensor finite = where(mask, zeros_like(x.detach()), y) + back;
  sum(softmax(masked_fill(finite, mask, -INFINITY))).backward();
  const Json json = parse(run);
  CHECK(with_verdict(json, "wrong").empty());
  for (std::int64_t id : ids_of(json, "to")) {
    CHECK(json["nodes"][static_cast<std::size_t>(id)]["checks"][0]["mode"] == "elements");
  }
}

TEST_CASE("float32 that rounding leaves little of is not wrong") {
  Recording run;
  const Tensor logits = Tensor::of({20, 1, 2, 3, 1, 18, 2, 3, 9, 1, 0, 3}, {3, 4}, {.requires_grad = true});
  const Tensor target = Tensor::of(std::vector<std::int64_t>{0, 1, 0}, {3}, {.dtype = int64});
  cross_entropy(logits, target).backward();
  sum(softmax(logits) * Tensor::of({1, 2, 3, 4})).backward();
  const Tensor x = Tensor::of({1, 2, 3}, {.requires_grad = true});
  sum(layer_norm(x)).backward();  // the gradient is zero but for rounding
  const Json json = parse(run);
  CHECK(with_verdict(json, "wrong").empty());
  CHECK(with_verdict(json, "unchecked").empty());
}

TEST_CASE("what cannot be checked is said, and is not wrong") {
  Recording run;
  const Tensor x = Tensor::of({0, 1}, {.dtype = float64, .requires_grad = true});
  sum(log(x)).backward(Tensor::scalar(NAN, {.dtype = float64}));
  const Json json = parse(run);
  CHECK(only(json, "log")["verdict"] == "unchecked");
  CHECK(only(json, "log")["checks"][0]["mode"] == "none");
  CHECK(only(json, "log")["checks"][0]["reason"].get<std::string>().find("not finite") != std::string::npos);

  Recording other;
  sum(log(x)).backward();  // the slope at 0 is infinite: the other element is still checked
  const Json finite = parse(other);
  CHECK(only(finite, "log")["verdict"] == "ok");
  CHECK(values(only(finite, "log")["gradients"][0])[0] == INFINITY);
  CHECK(values(only(finite, "log")["checks"][0]["difference"])[1] == doctest::Approx(1));
}

TEST_CASE("checks may be left out") {
  Recording run;
  const Tensor x = randn64({2});
  sum(exp(x)).backward();
  const Json json = parse(run, {.checks = false});
  CHECK(only(json, "exp")["checks"] == Json::parse("[null]"));
  CHECK(only(json, "exp")["verdict"] == "unchecked");
}

}  // namespace
}  // namespace prenorm::view
