// Kind "op": one operation on tensors named by role, with the other arguments in "args".

#include <optional>
#include <string>
#include <vector>

#include "autograd/check.h"
#include "autograd/ops.h"
#include "tests/golden_case.h"

namespace prenorm::golden {
namespace {

const Json& args(const Case& c) { return c.config().at("args"); }

template <class T>
T arg(const Case& c, const char* name) {
  return args(c).at(name).get<T>();
}

Shape shape_arg(const Case& c, const char* name) { return to_shape(args(c).at(name)); }

// The dimensions to reduce; null stands for all.
Dims dims_arg(const Case& c) { return args(c).at("dim").is_null() ? Dims() : shape_arg(c, "dim"); }

Reduction reduction_arg(const Case& c) {
  const auto name = arg<std::string>(c, "reduction");
  if (name == "none") return Reduction::none;
  if (name == "sum") return Reduction::sum;
  if (name == "batchmean") return Reduction::batchmean;
  check(name == "mean", "unknown reduction ", name);
  return Reduction::mean;
}

void output(Case& c, const Tensor& y) {
  c.out("output", y);
  c.backward();
}

// f(x), on the input.
template <class F>
void unary(Case& c, F f) {
  output(c, f(c.in("input")));
}

// f(a, b), where b is a tensor or a number.
template <class F>
void binary(Case& c, F f) {
  const Tensor other = c.optional_in("other");
  output(c, other.defined() ? f(c.in("input"), other) : f(c.in("input"), arg<double>(c, "other")));
}

// The parts of an input that come out as 0, 1, …
void outputs(Case& c, const Tensors& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) c.out(std::to_string(i), parts[i]);
  c.backward();
}

Tensors numbered_inputs(const Case& c) {
  Tensors inputs;
  for (Tensor next; (next = c.optional_in(std::to_string(inputs.size()))).defined();) inputs.push_back(next);
  return inputs;
}

void max_op(Case& c) {
  const MaxResult result = max(c.in("input"), arg<std::int64_t>(c, "dim"), arg<bool>(c, "keepdim"));
  c.out("values", result.values);
  c.out("indices", result.indices);
  c.backward();
}

void slice_op(Case& c) {
  const auto start = arg<std::int64_t>(c, "start");
  output(c, slice(c.in("input"), arg<std::int64_t>(c, "dim"), start, start + arg<std::int64_t>(c, "length")));
}

void cross_entropy_op(Case& c) {
  output(c, cross_entropy(c.in("input"), c.in("target"),
                          {.reduction = reduction_arg(c),
                           .ignore_index = arg<std::int64_t>(c, "ignore_index"),
                           .label_smoothing = arg<double>(c, "label_smoothing")}));
}

void nll_loss_op(Case& c) {
  output(c, nll_loss(c.in("input"), c.in("target"),
                     {.reduction = reduction_arg(c), .ignore_index = arg<std::int64_t>(c, "ignore_index")}));
}

void attention_op(Case& c) {
  output(c, scaled_dot_product_attention(c.in("query"), c.in("key"), c.in("value"), c.optional_in("mask"),
                                         {.causal = arg<bool>(c, "is_causal")})
                .y);
}

void dropout_op(Case& c) {
  manual_seed(arg<std::uint64_t>(c, "seed"));
  output(c, dropout(c.in("input"), arg<double>(c, "p")));
}

}  // namespace

const Handlers& op_handlers() {
  static const Handlers handlers = {
      {"abs", [](Case& c) { unary(c, [](const Tensor& x) { return abs(x); }); }},
      {"exp", [](Case& c) { unary(c, [](const Tensor& x) { return exp(x); }); }},
      {"log", [](Case& c) { unary(c, [](const Tensor& x) { return log(x); }); }},
      {"neg", [](Case& c) { unary(c, [](const Tensor& x) { return neg(x); }); }},
      {"relu", [](Case& c) { unary(c, [](const Tensor& x) { return relu(x); }); }},
      {"sigmoid", [](Case& c) { unary(c, [](const Tensor& x) { return sigmoid(x); }); }},
      {"sqrt", [](Case& c) { unary(c, [](const Tensor& x) { return sqrt(x); }); }},
      {"tanh", [](Case& c) { unary(c, [](const Tensor& x) { return tanh(x); }); }},
      {"gelu",
       [](Case& c) {
         output(c, gelu(c.in("input"), arg<std::string>(c, "approximate") == "tanh" ? Gelu::tanh : Gelu::exact));
       }},
      {"add", [](Case& c) { binary(c, [](const Tensor& a, const auto& b) { return a + b; }); }},
      {"sub", [](Case& c) { binary(c, [](const Tensor& a, const auto& b) { return a - b; }); }},
      {"mul", [](Case& c) { binary(c, [](const Tensor& a, const auto& b) { return a * b; }); }},
      {"div", [](Case& c) { binary(c, [](const Tensor& a, const auto& b) { return a / b; }); }},
      {"pow", [](Case& c) { binary(c, [](const Tensor& a, const auto& b) { return pow(a, b); }); }},
      {"matmul", [](Case& c) { output(c, matmul(c.in("input"), c.in("other"))); }},
      {"sum", [](Case& c) { output(c, sum(c.in("input"), dims_arg(c), arg<bool>(c, "keepdim"))); }},
      {"mean", [](Case& c) { output(c, mean(c.in("input"), dims_arg(c), arg<bool>(c, "keepdim"))); }},
      {"var",
       [](Case& c) { output(c, var(c.in("input"), dims_arg(c), arg<int>(c, "correction"), arg<bool>(c, "keepdim"))); }},
      {"std",
       [](Case& c) { output(c, std(c.in("input"), dims_arg(c), arg<int>(c, "correction"), arg<bool>(c, "keepdim"))); }},
      {"max", max_op},
      {"softmax", [](Case& c) { output(c, softmax(c.in("input"), arg<std::int64_t>(c, "dim"))); }},
      {"log_softmax", [](Case& c) { output(c, log_softmax(c.in("input"), arg<std::int64_t>(c, "dim"))); }},
      {"transpose",
       [](Case& c) {
         output(c, transpose(c.in("input"), arg<std::int64_t>(c, "dim0"), arg<std::int64_t>(c, "dim1")));
       }},
      {"permute", [](Case& c) { output(c, permute(c.in("input"), shape_arg(c, "dims"))); }},
      {"reshape", [](Case& c) { output(c, reshape(c.in("input"), shape_arg(c, "shape"))); }},
      {"expand", [](Case& c) { output(c, expand(c.in("input"), shape_arg(c, "shape"))); }},
      {"slice", slice_op},
      {"concat", [](Case& c) { output(c, concat(numbered_inputs(c), arg<std::int64_t>(c, "dim"))); }},
      {"split",
       [](Case& c) {
         outputs(c, split(c.in("input"), arg<std::vector<std::int64_t>>(c, "sizes"), arg<std::int64_t>(c, "dim")));
       }},
      {"where", [](Case& c) { output(c, where(c.in("condition"), c.in("input"), c.in("other"))); }},
      {"masked_fill", [](Case& c) { output(c, masked_fill(c.in("input"), c.in("mask"), arg<double>(c, "value"))); }},
      {"triu", [](Case& c) { output(c, triu(c.in("input"), arg<std::int64_t>(c, "diagonal"))); }},
      {"tril", [](Case& c) { output(c, tril(c.in("input"), arg<std::int64_t>(c, "diagonal"))); }},
      {"cross_entropy", cross_entropy_op},
      {"nll_loss", nll_loss_op},
      {"kl_div",
       [](Case& c) { output(c, kl_div(c.in("input"), c.in("target"), reduction_arg(c), arg<bool>(c, "log_target"))); }},
      {"embedding", [](Case& c) { output(c, embedding(c.in("input"), c.in("weight"))); }},
      {"layer_norm",
       [](Case& c) {
         output(c, layer_norm(c.in("input"), shape_arg(c, "normalized_shape"), c.optional_in("weight"),
                              c.optional_in("bias"), arg<double>(c, "eps")));
       }},
      {"rms_norm",
       [](Case& c) {
         output(c, rms_norm(c.in("input"), shape_arg(c, "normalized_shape"), c.optional_in("weight"),
                            arg<double>(c, "eps")));
       }},
      {"linear", [](Case& c) { output(c, linear(c.in("input"), c.in("weight"), c.optional_in("bias"))); }},
      {"scaled_dot_product_attention", attention_op},
      {"dropout", dropout_op},
  };
  return handlers;
}

}  // namespace prenorm::golden
