#include "autograd/view/numbers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "autograd/view/expression.h"
#include "autograd/view/norm_parts.h"

namespace prenorm::view {
namespace {

// No formula over more elements than that.
constexpr std::int64_t kMostWork = 1 << 17;

// Inputs and outputs at the first element of the output, where broadcasting leads to the first of each input.
struct Values {
  const RecordedNode& node;
  const NodeTrace* trace = nullptr;  // forward: null

  const Tensor& in(std::size_t i) const { return node.input_values[i]; }
  const Tensor& out(std::size_t i = 0) const { return node.outputs[i]; }
  const Tensor& dy() const { return trace->cotangents[0]; }
  const Tensor& dx(std::size_t i) const { return trace->gradients[i]; }
  double x(std::size_t i = 0, std::int64_t index = 0) const { return element(in(i), index); }
  double y() const { return element(out(), 0); }
  double g(std::int64_t index = 0) const { return element(dy(), index); }
  bool has(std::size_t i) const { return i < node.inputs.size() && in(i).defined(); }
};

std::int64_t last(const Tensor& tensor) { return tensor.dims() > 0 ? tensor.size(-1) : 1; }

Expression of(std::string text, double value) { return {std::move(text), value, std::abs(value)}; }

// --- forward: of y's first element

using Forward = Expression (*)(const Values&);

double row_mean(const Tensor& x) {
  double sum = 0;
  for (std::int64_t i = 0; i < last(x); ++i) sum += element(x, i);
  return sum / static_cast<double>(last(x));
}

Expression row_times_column(const Values& v, std::int64_t step) {
  return sum_of_terms(last(v.in(0)), [&](std::int64_t k) { return product(v.x(0, k), v.x(1, k * step)); });
}

// gamma * x_hat + beta, as far as they are given.
Expression scaled(const Values& v, const std::string& x_hat, double value) {
  Expression y = of(x_hat, value);
  if (v.has(1)) y = of(digits(v.x(1)) + " * " + y.text, v.x(1) * y.value);
  if (v.has(2)) y = {y.text + " + " + operand(v.x(2)), y.value + v.x(2), std::abs(y.value) + std::abs(v.x(2))};
  return y;
}

Expression layer_norm(const Values& v) {
  const double mean = row_mean(v.in(0)), rstd = element(v.out(2), 0);
  return scaled(v, "(" + digits(v.x()) + " - " + operand(mean) + ") * " + digits(rstd), (v.x() - mean) * rstd);
}

// Its eps is so small beside std, but on a constant row, that the numbers shown do not change.
Expression layer_norm_std(const Values& v) {
  const double mean = row_mean(v.in(0)), std = element(v.out(2), 0);
  return scaled(v, "(" + digits(v.x()) + " - " + operand(mean) + ") / " + digits(std), (v.x() - mean) / std);
}

Expression rms_norm(const Values& v) {
  const double rstd = element(v.out(2), 0);
  return scaled(v, digits(v.x()) + " * " + digits(rstd), v.x() * rstd);
}

double row_sum_of_exp(const Tensor& x) {
  double sum = 0;
  for (std::int64_t i = 0; i < last(x); ++i) sum += std::exp(element(x, i));
  return sum;
}

Expression sum_of_exp(const Tensor& x) {
  return sum_of_terms(last(x), [&](std::int64_t i) { return call("exp", element(x, i), std::exp(element(x, i))); });
}

Expression cross_entropy(const Values& v) {
  const std::int64_t rows = v.in(1).numel(), C = last(v.in(0));
  if (rows * C > kMostWork) return {};
  for (std::int64_t r = 0; r < rows; ++r) {
    if (v.x(1, r) < 0 || v.x(1, r) >= static_cast<double>(C)) return {};  // an ignored row
  }
  const Expression all = sum_of_terms(rows, [&](std::int64_t r) {
    double sum = 0;
    for (std::int64_t i = 0; i < C; ++i) sum += std::exp(v.x(0, r * C + i));
    const double p = std::exp(v.x(0, r * C + static_cast<std::int64_t>(v.x(1, r)))) / sum;
    return of("log " + digits(p), std::log(p));
  });
  const double mean = -all.value / static_cast<double>(rows);
  return {"-(" + all.text + ") / " + std::to_string(rows), mean, all.size};
}

Expression whole(const Values& v, bool mean) {
  const std::int64_t n = v.in(0).numel();
  if (v.out().numel() != 1 || n > kMostWork) return {};  // over some dimensions, which the record does not tell
  Expression sum = sum_of_terms(n, [&](std::int64_t i) { return of(digits(v.x(0, i)), v.x(0, i)); });
  if (!mean) return sum;
  return {"(" + sum.text + ") / " + std::to_string(n), sum.value / static_cast<double>(n), sum.size};
}

const std::map<std::string_view, Forward>& forwards() {
  static const std::map<std::string_view, Forward> table{
      {"add",
       [](const Values& v) {
         return Expression{digits(v.x()) + " + " + operand(v.x(1)), v.x() + v.x(1), std::abs(v.x()) + std::abs(v.x(1))};
       }},
      {"residual_add",
       [](const Values& v) {
         return Expression{digits(v.x()) + " + " + operand(v.x(1)), v.x() + v.x(1), std::abs(v.x()) + std::abs(v.x(1))};
       }},
      {"sub",
       [](const Values& v) {
         return Expression{digits(v.x()) + " - " + operand(v.x(1)), v.x() - v.x(1), std::abs(v.x()) + std::abs(v.x(1))};
       }},
      {"mul", [](const Values& v) { return product(v.x(), v.x(1)); }},
      {"div", [](const Values& v) { return of(digits(v.x()) + " / " + operand(v.x(1)), v.x() / v.x(1)); }},
      {"neg", [](const Values& v) { return of("-" + operand(v.x()), -v.x()); }},
      {"exp", [](const Values& v) { return call("exp", v.x(), std::exp(v.x())); }},
      {"log", [](const Values& v) { return call("log", v.x(), std::log(v.x())); }},
      {"sqrt", [](const Values& v) { return call("sqrt", v.x(), std::sqrt(v.x())); }},
      {"abs", [](const Values& v) { return of("|" + digits(v.x()) + "|", std::abs(v.x())); }},
      {"sin", [](const Values& v) { return call("sin", v.x(), std::sin(v.x())); }},
      {"cos", [](const Values& v) { return call("cos", v.x(), std::cos(v.x())); }},
      {"tanh", [](const Values& v) { return call("tanh", v.x(), std::tanh(v.x())); }},
      {"sigmoid",
       [](const Values& v) { return of("1 / (1 + exp(" + digits(-v.x()) + "))", 1 / (1 + std::exp(-v.x()))); }},
      {"relu", [](const Values& v) { return of("max(" + digits(v.x()) + ", 0)", std::max(v.x(), 0.0)); }},
      {"gelu", [](const Values& v) { return of(digits(v.x()) + " * Phi(" + digits(v.x()) + ")", v.y()); }},
      {"sum", [](const Values& v) { return whole(v, false); }},
      {"mean", [](const Values& v) { return whole(v, true); }},
      {"matmul", [](const Values& v) { return row_times_column(v, v.in(1).dims() > 1 ? last(v.in(1)) : 1); }},
      {"linear",
       [](const Values& v) {
         Expression y = row_times_column(v, 1);
         return v.has(2) ? Expression{y.text + " + " + operand(v.x(2)), y.value + v.x(2), y.size + std::abs(v.x(2))}
                         : y;
       }},
      {"layer_norm", layer_norm},
      {"layer_norm_std", layer_norm_std},
      {"rms_norm", rms_norm},
      {"softmax",
       [](const Values& v) {
         return of("exp(" + digits(v.x()) + ") / (" + sum_of_exp(v.in(0)).text + ")",
                   std::exp(v.x()) / row_sum_of_exp(v.in(0)));
       }},
      {"log_softmax",
       [](const Values& v) {
         const double log_sum = std::log(row_sum_of_exp(v.in(0)));
         return Expression{digits(v.x()) + " - log(" + sum_of_exp(v.in(0)).text + ")", v.x() - log_sum,
                           std::abs(v.x()) + std::abs(log_sum)};
       }},
      {"cross_entropy", cross_entropy},
      // The first query sees the first key alone, with weight 1.
      {"causal_attention_packed", [](const Values& v) { return product(1, v.x(0, last(v.in(0)) / 3 * 2)); }},
  };
  return table;
}

// --- backward: of the first element of an input's gradient

using Backward = Expression (*)(const Values&, std::size_t input);

// Of an input that was not broadcast: dy times a factor.
bool same_shape(const Values& v, std::size_t input) { return v.in(input).shape() == v.out().shape(); }

Expression passed_on(const Values& v, std::size_t input, double sign) {
  if (!same_shape(v, input)) return {};
  return of(sign < 0 ? "-dy = -" + operand(v.g()) : "dy", sign * v.g());
}

Expression times(const Values& v, const std::string& symbol, const std::string& factor, double value) {
  return of("dy * " + symbol + " = " + digits(v.g()) + " * " + factor, v.g() * value);
}

Expression row_of(const std::string& symbols, Expression sum) {
  sum.text = symbols + " = " + sum.text;
  return sum;
}

Expression matmul_backward(const Values& v, std::size_t input) {
  if (v.in(0).dims() != 2 || v.in(1).dims() != 2) return {};
  const std::int64_t m = v.in(0).size(0), k = v.in(0).size(1), n = v.in(1).size(1);
  if (input == 0) {
    return row_of("sum_j dy_0j b_0j", sum_of_terms(n, [&](std::int64_t j) { return product(v.g(j), v.x(1, j)); }));
  }
  return row_of("sum_i a_i0 dy_i0",
                sum_of_terms(m, [&](std::int64_t i) { return product(v.x(0, i * k), v.g(i * n)); }));
}

Expression linear_backward(const Values& v, std::size_t input) {
  const std::int64_t in = last(v.in(0)), out = last(v.out()), rows = v.out().numel() / out;
  if (input == 0) {
    return row_of("sum_o dy_0o W_o0",
                  sum_of_terms(out, [&](std::int64_t o) { return product(v.g(o), v.x(1, o * in)); }));
  }
  if (input == 1) {
    return row_of("sum_r dy_r0 x_r0",
                  sum_of_terms(rows, [&](std::int64_t r) { return product(v.g(r * out), v.x(0, r * in)); }));
  }
  return row_of("sum_r dy_r0",
                sum_of_terms(rows, [&](std::int64_t r) { return of(digits(v.g(r * out)), v.g(r * out)); }));
}

Expression norm_backward(const Values& v, std::size_t input) {
  if (input != 0) {  // beta: a column sum
    const std::int64_t n = last(v.out()), rows = v.out().numel() / n;
    if (input == 1) return {};
    return row_of("sum_r dy_r0",
                  sum_of_terms(rows, [&](std::int64_t r) { return of(digits(v.g(r * n)), v.g(r * n)); }));
  }
  const std::optional<NormParts> parts = norm_parts(v.node, v.trace->cotangents);
  if (!parts.has_value()) return {};
  const auto first = [](const Tensor& tensor) { return tensor.to_vector()[0]; };
  const double g = first(parts->incoming), along = first(parts->x_hat_part), sigma = first(parts->sigma);
  const double mean = parts->mean_part.defined() ? first(parts->mean_part) : 0;
  const std::string minus_mean = parts->mean_part.defined() ? " - " + operand(mean) : "";
  return {"(g" + std::string(parts->mean_part.defined() ? " - mean part" : "") + " - x_hat part) / sigma = (" +
              digits(g) + minus_mean + " - " + operand(along) + ") / " + digits(sigma),
          (g - mean - along) / sigma, (std::abs(g) + std::abs(mean) + std::abs(along)) / sigma};
}

Expression softmax_backward(const Values& v, std::size_t) {
  double sum = 0;
  for (std::int64_t i = 0; i < last(v.out()); ++i) sum += v.g(i) * element(v.out(), i);
  return {"y (dy - sum(dy * y)) = " + digits(v.y()) + " * (" + digits(v.g()) + " - " + operand(sum) + ")",
          v.y() * (v.g() - sum), std::abs(v.y()) * (std::abs(v.g()) + std::abs(sum))};
}

Expression log_softmax_backward(const Values& v, std::size_t) {
  double sum = 0;
  for (std::int64_t i = 0; i < last(v.out()); ++i) sum += v.g(i);
  const double p = std::exp(v.y());
  return {"dy - p sum(dy) = " + digits(v.g()) + " - " + digits(p) + " * " + operand(sum), v.g() - p * sum,
          std::abs(v.g()) + std::abs(p * sum)};
}

Expression cross_entropy_backward(const Values& v, std::size_t) {
  const double p = std::exp(v.x() - std::log(row_sum_of_exp(v.in(0)))), q = v.x(1) == 0 ? 1 : 0;
  const auto rows = static_cast<double>(v.in(1).numel());
  return {"(p - q) dy / count = (" + digits(p) + " - " + digits(q) + ") * " + operand(v.g()) + " / " + digits(rows),
          (p - q) * v.g() / rows, (p + q) * std::abs(v.g()) / rows};
}

const std::map<std::string_view, Backward>& backwards() {
  static const std::map<std::string_view, Backward> table{
      {"add", [](const Values& v, std::size_t i) { return passed_on(v, i, 1); }},
      {"residual_add", [](const Values& v, std::size_t i) { return passed_on(v, i, 1); }},
      {"sub", [](const Values& v, std::size_t i) { return passed_on(v, i, i == 0 ? 1 : -1); }},
      {"mul",
       [](const Values& v, std::size_t i) {
         if (!same_shape(v, i)) return Expression{};
         return times(v, i == 0 ? "b" : "a", operand(v.x(1 - i)), v.x(1 - i));
       }},
      {"div",
       [](const Values& v, std::size_t i) {
         if (!same_shape(v, i)) return Expression{};
         if (i == 0) return of("dy / b = " + digits(v.g()) + " / " + operand(v.x(1)), v.g() / v.x(1));
         return of("-dy * y / b = -" + operand(v.g()) + " * " + operand(v.y()) + " / " + operand(v.x(1)),
                   -v.g() * v.y() / v.x(1));
       }},
      {"neg", [](const Values& v, std::size_t i) { return passed_on(v, i, -1); }},
      {"exp", [](const Values& v, std::size_t) { return times(v, "y", operand(v.y()), v.y()); }},
      {"log", [](const Values& v,
                 std::size_t) { return of("dy / x = " + digits(v.g()) + " / " + operand(v.x()), v.g() / v.x()); }},
      {"relu",
       [](const Values& v, std::size_t) {
         return of(v.y() > 0 ? "dy as y > 0" : "0 as y is not above 0", v.y() > 0 ? v.g() : 0);
       }},
      {"tanh", [](const Values& v,
                  std::size_t) { return times(v, "(1 - y^2)", "(1 - " + operand(v.y()) + "^2)", 1 - v.y() * v.y()); }},
      {"sigmoid",
       [](const Values& v, std::size_t) {
         return times(v, "y (1 - y)", digits(v.y()) + " * (1 - " + digits(v.y()) + ")", v.y() * (1 - v.y()));
       }},
      {"sum", [](const Values& v, std::size_t) { return of("dy", v.g()); }},
      {"mean",
       [](const Values& v, std::size_t) {
         const double n = static_cast<double>(v.in(0).numel()) / static_cast<double>(v.out().numel());
         return of("dy / n = " + digits(v.g()) + " / " + digits(n), v.g() / n);
       }},
      {"matmul", matmul_backward},
      {"linear", linear_backward},
      {"layer_norm", norm_backward},
      {"layer_norm_std", norm_backward},
      {"rms_norm", norm_backward},
      {"softmax", softmax_backward},
      {"log_softmax", log_softmax_backward},
      {"cross_entropy", cross_entropy_backward},
  };
  return table;
}

// --- both

std::string place(std::string_view symbol, const Tensor& tensor) {
  std::string text(symbol);
  for (std::int64_t d = 0; d < tensor.dims(); ++d) text += d == 0 ? "[0" : ", 0";
  return tensor.dims() > 0 ? text + "]" : text;
}

// A formula that does not give what was recorded is not the one that was used.
std::string line(std::string_view symbol, const Tensor& tensor, const Expression& expression) {
  const double value = element(tensor, 0), slack = 1e-3 * std::max(expression.size, std::abs(value));
  const std::string left = place(symbol, tensor) + " = ", right = digits(value);
  const bool fits = std::abs(expression.value - value) <= slack || expression.value == value;
  if (expression.text.empty() || !fits) return left + right;
  return left + expression.text + (expression.text == right ? "" : " = " + right);
}

bool has_elements(const Tensor& tensor) { return tensor.defined() && tensor.numel() > 0; }

// What an op calls its inputs.
std::string symbol(std::string_view op, std::size_t input, std::size_t inputs) {
  static const std::map<std::string_view, std::vector<const char*>> names{
      {"residual_add", {"dx", "dbranch"}},
      {"linear", {"dx", "dW", "db"}},
      {"layer_norm", {"dx", "dgamma", "dbeta"}},
      {"layer_norm_std", {"dx", "da_2", "db_2"}},
      {"rms_norm", {"dx", "dweight"}},
      {"embedding", {"dids", "dW"}},
      {"causal_attention_packed", {"dqkv"}},
      {"scaled_dot_product_attention", {"dq", "dk", "dv"}},
      {"where", {"dcondition", "da", "db"}},
      {"masked_fill", {"dx"}},
      {"cross_entropy", {"dx"}},
      {"dropout", {"dx"}}};
  if (const auto found = names.find(op); found != names.end() && input < found->second.size()) {
    return found->second[input];
  }
  return inputs == 1 ? "dx" : input < 26 ? std::string("d") + static_cast<char>('a' + input) : "dx";
}

}  // namespace

std::string numbers_of(const RecordedNode& node) {
  if (node.outputs.empty() || !has_elements(node.outputs[0])) return "";
  const bool empty = std::any_of(node.input_values.begin(), node.input_values.end(),
                                 [](const Tensor& x) { return x.defined() && x.numel() == 0; });
  const auto formula = forwards().find(node.op());
  const bool known = formula != forwards().end() && node.is_of_library() && !empty;
  return line("y", node.outputs[0], known ? formula->second(Values{node}) : Expression{});
}

std::string backward_numbers_of(const RecordedNode& node, const NodeTrace& trace) {
  std::string text;
  const auto formula = backwards().find(node.op());
  const bool known = formula != backwards().end() && node.is_of_library() && has_elements(node.outputs[0]) &&
                     has_elements(trace.cotangents[0]);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Tensor& gradient = trace.gradients[i];
    if (!has_elements(gradient)) continue;
    const std::string left = symbol(node.op(), i, node.inputs.size());
    if (!text.empty()) text += "; ";
    text += line(left, gradient, known ? formula->second(Values{node, &trace}, i) : Expression{});
  }
  return text;
}

}  // namespace prenorm::view
