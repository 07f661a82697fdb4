#include "autograd/view/numbers.h"

#include <functional>

#include "autograd/view/run_json.h"

namespace prenorm::view {
namespace {

Tensor leaf(std::initializer_list<double> values, const Shape& shape) {
  return Tensor::of(values, shape, {.dtype = float64, .requires_grad = true});
}

struct Row {
  const char* op;
  std::function<Tensor()> f;
  const char *forward, *backward;
};

TEST_CASE("formulas with their numbers") {
  const Tensor a = leaf({2, -1, 3, 0.5}, {2, 2}), b = leaf({-4, 5, 1, 2}, {2, 2}), g = leaf({2, 1}, {2}),
               p = leaf({1, 2, 3, 4}, {2, 2});
  const Tensor u = Tensor::of({3, 1, 2, 1}, {2, 2}, {.dtype = float64});  // the cotangent
  const Tensor target = Tensor::of(std::vector<std::int64_t>{0, 1}, {2}, {.dtype = int64});
  const std::vector<Row> rows{
      {"add", [&] { return a + b; }, "y[0, 0] = 2 + (-4) = -2", "da[0, 0] = dy = 3; db[0, 0] = dy = 3"},
      {"sub", [&] { return a - b; }, "y[0, 0] = 2 - (-4) = 6", "da[0, 0] = dy = 3; db[0, 0] = -dy = -3 = -3"},
      {"mul", [&] { return a * b; }, "y[0, 0] = 2 * (-4) = -8",
       "da[0, 0] = dy * b = 3 * (-4) = -12; db[0, 0] = dy * a = 3 * 2 = 6"},
      {"div", [&] { return b / a; }, "y[0, 0] = -4 / 2 = -2",
       "da[0, 0] = dy / b = 3 / 2 = 1.5; db[0, 0] = -dy * y / b = -3 * (-2) / 2 = 3"},
      {"neg", [&] { return -a; }, "y[0, 0] = -2", "dx[0, 0] = -dy = -3 = -3"},
      {"exp", [&] { return exp(a); }, "y[0, 0] = exp(2) = 7.389", "dx[0, 0] = dy * y = 3 * 7.389 = 22.17"},
      {"log", [&] { return log(p); }, "y[0, 0] = log(1) = 0", "dx[0, 0] = dy / x = 3 / 1 = 3"},
      {"relu", [&] { return relu(b); }, "y[0, 0] = max(-4, 0) = 0", "dx[0, 0] = 0 as y is not above 0 = 0"},
      {"tanh", [&] { return tanh(a); }, "y[0, 0] = tanh(2) = 0.964",
       "dx[0, 0] = dy * (1 - y^2) = 3 * (1 - 0.964^2) = 0.212"},
      {"sigmoid", [&] { return sigmoid(a); }, "y[0, 0] = 1 / (1 + exp(-2)) = 0.8808",
       "dx[0, 0] = dy * y (1 - y) = 3 * 0.8808 * (1 - 0.8808) = 0.315"},
      {"gelu", [&] { return gelu(a); }, "y[0, 0] = 2 * Phi(2) = 1.954", "dx[0, 0] = 3.256"},
      {"residual_add", [&] { return residual_add(a, b); }, "y[0, 0] = 2 + (-4) = -2",
       "dx[0, 0] = dy = 3; dbranch[0, 0] = dy = 3"},
      {"matmul", [&] { return matmul(a, b); }, "y[0, 0] = 2 * (-4) + -1 * 1 = -9",
       "da[0, 0] = sum_j dy_0j b_0j = 3 * (-4) + 1 * 5 = -7; db[0, 0] = sum_i a_i0 dy_i0 = 2 * 3 + 3 * 2 = 12"},
      {"linear", [&] { return linear(a, b, g); }, "y[0, 0] = 2 * (-4) + -1 * 5 + 2 = -11",
       "dx[0, 0] = sum_o dy_0o W_o0 = 3 * (-4) + 1 * 1 = -11; dW[0, 0] = sum_r dy_r0 x_r0 = 3 * 2 + 2 * 3 = 12; "
       "db[0] = sum_r dy_r0 = 3 + 2 = 5"},
      {"softmax", [&] { return softmax(a); }, "y[0, 0] = exp(2) / (exp(2) + exp(-1)) = 0.9526",
       "dx[0, 0] = y (dy - sum(dy * y)) = 0.9526 * (3 - 2.905) = 0.09035"},
      {"log_softmax", [&] { return log_softmax(a); }, "y[0, 0] = 2 - log(exp(2) + exp(-1)) = -0.04859",
       "dx[0, 0] = dy - p sum(dy) = 3 - 0.9526 * 4 = -0.8103"},
      {"layer_norm", [&] { return layer_norm(a, g); }, "y[0, 0] = 2 * (2 - 0.5) * 0.6667 = 2",
       "dx[0, 0] = (g - mean part - x_hat part) / sigma = (6 - 3.5 - 2.5) / 1.5 = 7.407e-06; dgamma[0] = 5"},
      {"rms_norm", [&] { return rms_norm(a); }, "y[0, 0] = 2 * 0.6325 = 1.265",
       "dx[0, 0] = (g - x_hat part) / sigma = (3 - 2) / 1.581 = 0.6325"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.op));
    Recording run;
    row.f().backward(u);
    const Json json = parse(run);
    CHECK(only(json, row.op)["numbers"] == row.forward);
    CHECK(only(json, row.op)["backward_numbers"] == row.backward);
  }
}

TEST_CASE("losses and sums") {
  Recording run;
  const Tensor x = leaf({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor target = Tensor::of(std::vector<std::int64_t>{0, 2}, {2}, {.dtype = int64});
  (cross_entropy(x, target) + sum(x) + mean(x)).backward();
  const Json json = parse(run);
  CHECK(only(json, "cross_entropy")["numbers"] == "y = -(log 0.09003 + log 0.6652) / 2 = 1.408");
  CHECK(only(json, "cross_entropy")["backward_numbers"] ==
        "dx[0, 0] = (p - q) dy / count = (0.09003 - 1) * 1 / 2 = -0.455");
  CHECK(only(json, "sum")["numbers"] == "y = 1 + 2 + … + 6 (6 terms) = 21");
  CHECK(only(json, "mean")["numbers"] == "y = (1 + 2 + … + 6 (6 terms)) / 6 = 3.5");
  CHECK(only(json, "mean")["backward_numbers"] == "dx[0, 0] = dy / n = 1 / 6 = 0.1667");
}

TEST_CASE("where the formula does not hold, and for other ops, the value alone") {
  Recording run;
  const Tensor x = leaf({1, 2, 3, 5}, {2, 2}), w = leaf({3, 5, 7, 9}, {2, 2});
  const Tensor target = Tensor::of(std::vector<std::int64_t>{0, -1}, {2}, {.dtype = int64});
  sum(wrong_product(x, w, 1)).backward();
  softmax(x, 0).backward(w.detach());  // columns: the op sees them as rows
  cross_entropy(x, target, {.ignore_index = -1, .label_smoothing = 0.1}).backward();
  const Json json = parse(run);
  CHECK(only(json, "wrong_product")["numbers"] == "y[0, 0] = 4");
  CHECK(only(json, "wrong_product")["backward_numbers"] == "da[0, 0] = 4; db[0, 0] = 1");
  CHECK(only(json, "softmax")["numbers"] == "y[0, 0] = exp(1) / (exp(1) + exp(3)) = 0.1192");
  CHECK(only(json, "cross_entropy")["numbers"].get<std::string>().find("log") == std::string::npos);

  Recording other;
  sum(exp(Tensor::of(std::vector<double>{}, {0}, {.dtype = float64, .requires_grad = true}))).backward();
  CHECK(only(parse(other), "exp")["numbers"] == "");
}

}  // namespace
}  // namespace prenorm::view
