// The checker's own test: wrong backwards have to be caught, right ones must not be refused.
//
// Each op of the table stands with a maker of random inputs. A fault wraps the right forward in a node whose backward
// spoils the right gradients, in ways that occur: a mean left out, n for n - 1, a stale mask, a missing eps.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/gradcheck.h"
#include "autograd/node.h"
#include "autograd/ops.h"
#include "tests/support.h"

namespace prenorm {
namespace {

// Random sizes, and leaves of them.
class Maker {
 public:
  explicit Maker(std::uint64_t seed) : generator_(seed), b(size(1, 3)), r(size(2, 4)), n(size(3, 6)) {}

  Tensor normal(const Shape& shape, double mean = 0, double std = 1) {
    return randn64(shape, generator_.next32(), mean, std);
  }
  Tensor positive(const Shape& shape) { return uniform64(shape, 0.5, 2, generator_.next32()); }
  Tensor bits(const Shape& shape) {
    const Tensor draws = uniform64(shape, 0, 1, generator_.next32()).detach();
    return lt(draws, full_like(draws, 0.6));
  }
  Tensor ids(const Shape& shape, std::int64_t below) {
    std::vector<std::int64_t> values(static_cast<std::size_t>(numel(shape)));
    for (std::int64_t& value : values) value = size(0, below - 1);
    return Tensor::of(values, shape, {.dtype = int64});
  }
  std::int64_t size(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(generator_.uniform() * static_cast<double>(high - low + 1));
  }

 private:
  Generator generator_;

 public:
  const std::int64_t b, r, n;  // a batch of 1 to 3, rows 2 to 4, their length 3 to 6
};

using Function = std::function<Tensor(const Tensors& in)>;
struct Op {
  std::string name;
  std::function<Tensors(Maker& make)> inputs;
  Function function;
};

Tensors one(Maker& make) { return {make.normal({make.b, make.r, make.n})}; }
Tensors one_positive(Maker& make) { return {make.positive({make.r, make.n})}; }
Tensors broadcast_pair(Maker& make) { return {make.normal({make.b, 1, make.n}), make.normal({make.r, make.n})}; }
Tensors norm_inputs(Maker& make) {
  return {make.normal({make.b, make.r, make.n}), make.normal({make.n}), make.normal({make.n})};
}
// Rows around 5 whose standard deviation is 1e-3, where eps matters.
Tensors narrow_rows(Maker& make) {
  return {make.normal({make.r, make.n}, 5, 1e-3), make.positive({make.n}), make.normal({make.n})};
}
Tensors channels(Maker& make) {
  return {make.normal({make.r + 1, make.b, make.n}), make.normal({make.b}), make.normal({make.b})};
}
Tensors rows_and_classes(Maker& make) { return {make.normal({make.r, make.n}), make.ids({make.r}, make.n)}; }
Tensors attention_inputs(Maker& make) {
  const std::int64_t d = 3;
  return {make.normal({make.b, make.n, d}), make.normal({make.b, make.n, d}), make.normal({make.b, make.n, d}),
          make.bits({make.n, make.n})};
}

double size_of_rows(const Tensor& x) { return static_cast<double>(x.size(-1)); }
// The same mask each time.
Tensor repeatable_dropout(const Tensor& x, std::uint64_t seed) {
  manual_seed(seed);
  return dropout(x, 0.4);
}

std::vector<Op> all_ops() {
  const CrossEntropyOptions smoothed{.label_smoothing = 0.1}, ignoring{.ignore_index = 0};
  const CrossEntropyOptions summed{.reduction = Reduction::sum}, each{.reduction = Reduction::none};
  return {
      {"add", broadcast_pair, [](const Tensors& in) { return in[0] + in[1]; }},
      {"sub", broadcast_pair, [](const Tensors& in) { return in[0] - in[1]; }},
      {"mul", broadcast_pair, [](const Tensors& in) { return in[0] * in[1]; }},
      {"div",
       [](Maker& m) {
         return Tensors{m.normal({m.r, m.n}), m.positive({m.n})};
       },
       [](const Tensors& in) { return in[0] / in[1]; }},
      {"pow",
       [](Maker& m) {
         return Tensors{m.positive({m.r, m.n}), m.normal({m.n})};
       },
       [](const Tensors& in) { return pow(in[0], in[1]); }},
      {"pow of a number", one_positive, [](const Tensors& in) { return pow(in[0], 2.5); }},
      {"neg", one, [](const Tensors& in) { return -in[0]; }},
      {"exp", one, [](const Tensors& in) { return exp(in[0]); }},
      {"log", one_positive, [](const Tensors& in) { return log(in[0]); }},
      {"sqrt", one_positive, [](const Tensors& in) { return sqrt(in[0]); }},
      {"abs", one, [](const Tensors& in) { return abs(in[0]); }},
      {"sin", one, [](const Tensors& in) { return sin(in[0]); }},
      {"cos", one, [](const Tensors& in) { return cos(in[0]); }},
      {"tanh", one, [](const Tensors& in) { return tanh(in[0]); }},
      {"sigmoid", one, [](const Tensors& in) { return sigmoid(in[0]); }},
      {"relu", one, [](const Tensors& in) { return relu(in[0]); }},
      {"gelu", one, [](const Tensors& in) { return gelu(in[0]); }},
      {"gelu by tanh", one, [](const Tensors& in) { return gelu(in[0], Gelu::tanh); }},
      {"where",
       [](Maker& m) {
         return Tensors{m.bits({m.r, m.n}), m.normal({m.n}), m.normal({m.r, m.n})};
       },
       [](const Tensors& in) { return where(in[0], in[1], in[2]); }},
      {"masked_fill",
       [](Maker& m) {
         return Tensors{m.normal({m.b, m.r, m.n}), m.bits({m.r, m.n})};
       },
       [](const Tensors& in) { return masked_fill(in[0], in[1], -1e9) * 1.0; }},
      {"dropout", one, [](const Tensors& in) { return repeatable_dropout(in[0], 5); }},
      {"residual_add",
       [](Maker& m) {
         return Tensors{m.normal({m.r, m.n}), m.normal({m.r, m.n})};
       },
       [](const Tensors& in) { return residual_add(in[0], in[1]); }},
      {"sum", one, [](const Tensors& in) { return sum(in[0], {1}); }},
      {"mean", one,
       [](const Tensors& in) {
         return mean(in[0], {0, 2});
       }},
      {"var", one, [](const Tensors& in) { return var(in[0], {-1}); }},
      {"biased var", one, [](const Tensors& in) { return var(in[0], {-1}, 0); }},
      {"std", one, [](const Tensors& in) { return std(in[0], {-1}); }},
      {"norm", one, [](const Tensors& in) { return norm(in[0], {-1}); }},
      {"max", one, [](const Tensors& in) { return max(in[0], 1).values; }},
      {"max of all", one, [](const Tensors& in) { return max(in[0]); }},
      {"sum_to", one,
       [](const Tensors& in) {
         return sum_to(in[0], {1, in[0].size(2)});
       }},
      {"reshape", one,
       [](const Tensors& in) {
         return reshape(in[0], {-1, in[0].size(0)});
       }},
      {"transpose", one, [](const Tensors& in) { return transpose(in[0], 0, 2); }},
      {"permute", one,
       [](const Tensors& in) {
         return permute(in[0], {1, 2, 0});
       }},
      {"unsqueeze", one, [](const Tensors& in) { return unsqueeze(in[0], 1); }},
      {"squeeze",
       [](Maker& m) {
         return Tensors{m.normal({m.r, 1, m.n})};
       },
       [](const Tensors& in) { return squeeze(in[0], 1); }},
      {"expand",
       [](Maker& m) {
         return Tensors{m.normal({m.r, 1, m.n})};
       },
       [](const Tensors& in) {
         return expand(in[0], {2, -1, 3, -1});
       }},
      {"slice", one, [](const Tensors& in) { return slice(in[0], -1, 1, 1000, 2); }},
      {"select", one, [](const Tensors& in) { return select(in[0], 1, -1); }},
      {"concat",
       [](Maker& m) {
         return Tensors{m.normal({m.r, m.b}), m.normal({m.r, m.b})};
       },
       [](const Tensors& in) { return concat(in, 1); }},
      {"split", one,
       [](const Tensors& in) {
         return split(in[0], {1, in[0].size(2) - 1}, 2)[1];
       }},
      {"chunk", one, [](const Tensors& in) { return chunk(in[0], 2, 2)[0]; }},
      {"clone", one, [](const Tensors& in) { return clone(in[0]); }},
      {"contiguous", one, [](const Tensors& in) { return contiguous(transpose(in[0], 0, 1)); }},
      {"triu", one, [](const Tensors& in) { return triu(in[0], 1); }},
      {"tril", one, [](const Tensors& in) { return tril(in[0]); }},
      {"matmul",
       [](Maker& m) {
         return Tensors{m.normal({m.b, m.n, m.r}), m.normal({m.r, m.n})};
       },
       [](const Tensors& in) { return matmul(in[0], in[1]); }},
      {"square matmul",
       [](Maker& m) {
         return Tensors{m.normal({m.n, m.n}), m.normal({m.n, m.n})};
       },
       [](const Tensors& in) { return matmul(in[0], in[1]); }},
      {"linear",
       [](Maker& m) {
         return Tensors{m.normal({m.b, m.r, m.n}), m.normal({4, m.n}), m.normal({4})};
       },
       [](const Tensors& in) { return linear(in[0], in[1], in[2]); }},
      {"layer_norm", norm_inputs, [](const Tensors& in) { return layer_norm(in[0], in[1], in[2]); }},
      {"layer_norm of narrow rows", narrow_rows,
       [](const Tensors& in) { return layer_norm(in[0], in[1], in[2], 1e-6); }},
      {"layer_norm_std", norm_inputs, [](const Tensors& in) { return layer_norm_std(in[0], in[1], in[2]); }},
      {"layer_norm_std of narrow rows", narrow_rows,
       [](const Tensors& in) { return layer_norm_std(in[0], in[1], in[2]); }},
      {"rms_norm",
       [](Maker& m) {
         return Tensors{m.normal({m.b, m.r, m.n}), m.normal({m.n})};
       },
       [](const Tensors& in) { return rms_norm(in[0], in[1], 1e-2); }},
      {"batch_norm", channels, [](const Tensors& in) { return batch_norm(in[0], in[1], in[2]).y; }},
      {"batch_norm_with", channels,
       [](const Tensors& in) {
         const Tensor given = ones_like(in[1]);
         return batch_norm_with(in[0], given, given * 2.0, in[1], in[2]);
       }},
      {"softmax", one, [](const Tensors& in) { return softmax(in[0]); }},
      {"log_softmax", one, [](const Tensors& in) { return log_softmax(in[0], 1); }},
      {"cross_entropy", rows_and_classes, [=](const Tensors& in) { return cross_entropy(in[0], in[1], smoothed); }},
      {"cross_entropy of each", rows_and_classes, [=](const Tensors& in) { return cross_entropy(in[0], in[1], each); }},
      {"cross_entropy, some ignored",
       [](Maker& m) {
         const Tensor target = m.ids({m.r + 1}, m.n);
         target.mutable_data<std::int64_t>()[0] = 0;
         target.mutable_data<std::int64_t>()[1] = 1;
         return Tensors{m.normal({m.r + 1, m.n}), target};
       },
       [=](const Tensors& in) { return cross_entropy(in[0], in[1], ignoring); }},
      {"nll_loss", rows_and_classes, [=](const Tensors& in) { return nll_loss(in[0], in[1], summed); }},
      {"kl_div",
       [](Maker& m) {
         return Tensors{m.normal({m.r, m.n}), softmax(m.normal({m.r, m.n}).detach())};
       },
       [](const Tensors& in) { return kl_div(in[0], in[1], Reduction::batchmean); }},
      {"embedding",
       [](Maker& m) {
         return Tensors{m.ids({m.r, 3}, 4), m.normal({4, m.n})};
       },
       [](const Tensors& in) { return embedding(in[0], in[1]); }},
      {"attention", attention_inputs,
       [](const Tensors& in) { return scaled_dot_product_attention(in[0], in[1], in[2], {}, {.causal = true}).y; }},
      {"masked attention", attention_inputs,
       [](const Tensors& in) {
         return scaled_dot_product_attention(in[0], in[1], in[2], in[3], {.masked_score = -1e9}).y;
       }},
      {"causal_attention_packed",
       [](Maker& m) {
         return Tensors{m.normal({m.b, m.n, 3 * 2 * 2})};
       },
       [](const Tensors& in) { return causal_attention_packed(in[0], 2); }},
  };
}

// --- faults

// Changes the right gradients dx of the inputs into wrong ones.
using Spoil = std::function<void(Tensors& dx, const Tensors& in, const Tensor& dy)>;
struct Fault {
  std::string op, what;
  Spoil spoil;
};

// Runs the right function, and a backward that spoils the right gradients. These are computed anew, so that the wrong
// ones can be differentiated as well.
struct Planted final : Node {
  Planted(Function function, Spoil spoil) : function(std::move(function)), spoil(std::move(spoil)) {}
  const Function function;
  const Spoil spoil;

  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "planted", .formula = "", .derivative = "", .reference = "", .file = ""};
    return info;
  }
  Tensors forward(const Tensors& in) const override { return {function(in)}; }
  Saves saves() const override { return {.inputs = {0, 1, 2, 3}}; }
  void backward(const Tensors& dy, GradientSink& sink) const override {
    const bool create_graph = GradMode::enabled();
    Tensors in, wanted;
    for (std::int64_t i = 0; i < input_count(); ++i) {
      in.push_back(create_graph ? input(i) : input(i).detach().requires_grad_(needs(i)));
      if (needs(i)) wanted.push_back(in.back());
    }
    Tensor y;
    {
      const SetGrad recording(true);
      y = function(in);
    }
    const Tensors gradients = grad({y}, wanted, {dy[0]}, {.create_graph = create_graph, .allow_unused = true});
    Tensors dx(in.size());
    for (std::size_t i = 0, next = 0; i < in.size(); ++i) {
      if (!needs(static_cast<std::int64_t>(i))) continue;
      dx[i] = gradients[next].defined() ? gradients[next] : zeros_like(in[i]);
      ++next;
    }
    spoil(dx, in, dy[0]);
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (dx[i].defined()) sink.add(static_cast<std::int64_t>(i), dx[i]);
    }
  }
};

// Spoils one input's gradient where it is asked for.
Spoil gradient_of(int input, const std::function<Tensor(const Tensor& dx, const Tensors& in, const Tensor& dy)>& f) {
  return [=](Tensors& dx, const Tensors& in, const Tensor& dy) {
    if (dx[static_cast<std::size_t>(input)].defined()) {
      dx[static_cast<std::size_t>(input)] = f(dx[static_cast<std::size_t>(input)], in, dy);
    }
  };
}
Spoil times(int input, double factor) {
  return gradient_of(input, [=](const Tensor& dx, const Tensors&, const Tensor&) { return dx * factor; });
}
// One element is 1 % too large.
Spoil one_element(int input) {
  return gradient_of(input, [](const Tensor& dx, const Tensors&, const Tensor&) {
    std::vector<double> factors(static_cast<std::size_t>(dx.numel()), 1.0);
    factors.back() = 1.01;
    return dx * Tensor::of(factors, dx.shape(), {.dtype = float64});
  });
}
// The gradient with respect to x alone, as a function of x, dy and the second input.
Spoil dx_is(const std::function<Tensor(const Tensor& x, const Tensor& dy)>& f) {
  return gradient_of(0, [=](const Tensor&, const Tensors& in, const Tensor& dy) { return f(in[0], dy); });
}

// The standard LayerNorm's dx from its parts, any of which may be left out or be wrong.
struct NormParts {
  double eps = 1e-5;
  double correction = 0;
  bool mean_term = true, spread_term = true, gamma = true;
};
Spoil layer_norm_with(const NormParts& parts) {
  return gradient_of(0, [=](const Tensor&, const Tensors& in, const Tensor& dy) {
    const Tensor d = in[0] - mean(in[0], {-1}, true);
    const Tensor rstd = 1.0 / sqrt(sum(d * d, {-1}, true) / (size_of_rows(in[0]) - parts.correction) + parts.eps);
    const Tensor x_hat = d * rstd, g = parts.gamma ? dy * in[1] : dy;
    Tensor inner = g;
    if (parts.mean_term) inner = inner - mean(g, {-1}, true);
    if (parts.spread_term) inner = inner - x_hat * mean(g * x_hat, {-1}, true);
    return rstd * inner;
  });
}
// The same for the unbiased form: y = a_2 d / (std + eps) + b_2.
Spoil layer_norm_std_with(const NormParts& parts) {
  return gradient_of(0, [=](const Tensor&, const Tensors& in, const Tensor& dy) {
    const double count = size_of_rows(in[0]) - parts.correction;
    const Tensor d = in[0] - mean(in[0], {-1}, true);
    const Tensor s = sqrt(sum(d * d, {-1}, true) / count), r = 1.0 / (s + parts.eps);
    const Tensor g = parts.gamma ? dy * in[1] : dy;
    Tensor dx = r * (parts.mean_term ? g - mean(g, {-1}, true) : g);
    if (parts.spread_term) dx = dx - d * (r * r * sum(g * d, {-1}, true) / (count * s));
    return dx;
  });
}

Tensor swap_last(const Tensor& x) { return transpose(x, -1, -2); }

std::vector<Fault> all_faults() {
  using T = const Tensor&;
  using Ts = const Tensors&;
  return {
      {"add", "one row of the broadcast sum",
       gradient_of(1, [](T dx, Ts in, T dy) { return in[0].size(0) > 1 ? select(dy, 0, 0) : dx * 1.01; })},
      {"add", "a mean for the broadcast sum", gradient_of(0, [](T, Ts, T dy) { return mean(dy, {1}, true); })},
      {"sub", "sign of the second operand", times(1, -1)},
      {"mul", "the other factor left out", gradient_of(1, [](T, Ts in, T dy) { return sum_to(dy, in[1].shape()); })},
      {"mul", "its own factor for the other",
       gradient_of(0, [](T, Ts in, T dy) { return sum_to(dy * in[0], in[0].shape()); })},
      {"div", "sign of the divisor's", times(1, -1)},
      {"div", "b for b^2", gradient_of(1, [](T dx, Ts in, T) { return dx * in[1]; })},
      {"pow", "log of the base left out",
       gradient_of(1, [](T, Ts in, T dy) { return sum_to(dy * pow(in[0], in[1]), in[1].shape()); })},
      {"pow of a number", "exponent not lowered", dx_is([](T x, T dy) { return dy * 2.5 * pow(x, 2.5); })},
      {"exp", "x for y", dx_is([](T x, T dy) { return dy * x; })},
      {"exp", "one element", one_element(0)},
      {"log", "times 1.01", times(0, 1.01)},
      {"sqrt", "1/2 left out", times(0, 2)},
      {"abs", "always 1", dx_is([](T, T dy) { return dy * 1.0; })},
      {"sin", "sin for cos", dx_is([](T x, T dy) { return dy * sin(x); })},
      {"cos", "sign", times(0, -1)},
      {"tanh", "y for y^2", dx_is([](T x, T dy) { return dy * (1.0 - tanh(x)); })},
      {"sigmoid", "1 - y left out", dx_is([](T x, T dy) { return dy * sigmoid(x); })},
      {"relu", "the sign of dy for that of x",
       dx_is([](T, T dy) { return where(gt(dy, zeros_like(dy)), dy, zeros_like(dy)); })},
      {"gelu", "the tanh form's", dx_is([](T x, T dy) {
         const double c = std::sqrt(2 / M_PI);
         const Tensor t = tanh(c * (x + 0.044715 * (x * x * x)));
         return dy * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * (c * (1.0 + 3 * 0.044715 * (x * x))));
       })},
      {"gelu", "density left out", dx_is([](T x, T dy) { return dy * gelu(x) / x; })},
      {"where", "both branches get dy", gradient_of(2, [](T, Ts, T dy) { return dy * 1.0; })},
      {"masked_fill", "masked elements get dy", dx_is([](T, T dy) { return dy * 1.0; })},
      {"dropout", "stale mask", dx_is([](T x, T dy) { return dy * repeatable_dropout(ones_like(x), 6); })},
      {"dropout", "missing scale", times(0, 0.6)},
      {"residual_add", "the skip's gradient lost", times(0, 0)},
      {"residual_add", "the branch's added twice", times(1, 2)},
      {"sum", "one element", one_element(0)},
      {"mean", "division left out",
       gradient_of(0, [](T dx, Ts in, T) { return dx * static_cast<double>(in[0].size(0) * in[0].size(2)); })},
      {"var", "n for n - 1",
       gradient_of(0, [](T dx, Ts in, T) { return dx * ((size_of_rows(in[0]) - 1) / size_of_rows(in[0])); })},
      {"biased var", "n - 1 for n",
       gradient_of(0, [](T dx, Ts in, T) { return dx * (size_of_rows(in[0]) / (size_of_rows(in[0]) - 1)); })},
      {"std", "mean not subtracted",
       dx_is([](T x, T dy) { return unsqueeze(dy, -1) * x / ((size_of_rows(x) - 1) * std(x, {-1}, 1, true)); })},
      {"norm", "not divided by the norm", dx_is([](T x, T dy) { return unsqueeze(dy, -1) * x; })},
      {"max", "all elements get dy", dx_is([](T x, T dy) { return expand(unsqueeze(dy, 1), x.shape()) * 1.0; })},
      {"transpose", "not swapped back", dx_is([](T x, T dy) { return reshape(dy, x.shape()); })},
      {"permute", "the permutation for its inverse", dx_is([](T x, T dy) {
         return reshape(permute(dy, {1, 2, 0}), x.shape());
       })},
      {"expand", "one of the repeated",
       dx_is([](T x, T dy) { return reshape(slice(select(dy, 0, 0), 1, 0, 1), x.shape()); })},
      {"slice", "one to the left", dx_is([](T x, T dy) {
         const Tensor zero = zeros({x.size(0), x.size(1), 1}, float64);
         Tensors columns;
         for (std::int64_t i = 0; i < dy.size(2); ++i) {
           columns.push_back(slice(dy, 2, i, i + 1));
           columns.push_back(zero);
         }
         if (x.size(2) % 2 == 1) columns.push_back(zero);
         return concat(columns, 2);
       })},
      {"concat", "parts exchanged",
       [](Tensors& dx, Ts in, T dy) {
         const std::int64_t middle = in[0].size(1);
         if (dx[0].defined()) dx[0] = slice(dy, 1, middle, 2 * middle) * 1.0;
         if (dx[1].defined()) dx[1] = slice(dy, 1, 0, middle) * 1.0;
       }},
      {"triu", "the diagonal too", dx_is([](T, T dy) { return triu(dy); })},
      {"square matmul", "dA transposed", gradient_of(0, [](T dx, Ts, T) { return swap_last(dx) * 1.0; })},
      {"square matmul", "B for B^T", gradient_of(0, [](T, Ts in, T dy) { return matmul(dy, in[1]); })},
      {"matmul", "one batch of the sum",
       gradient_of(1,
                   [](T dx, Ts in, T dy) {
                     return in[0].size(0) > 1 ? matmul(swap_last(select(in[0], 0, 0)), select(dy, 0, 0)) : dx * 1.01;
                   })},
      {"linear", "the bias's sum as a mean",
       gradient_of(2,
                   [](T, Ts, T dy) {
                     return mean(dy, {0, 1});
                   })},
      {"linear", "one element of dW", one_element(1)},
      {"layer_norm", "mean(g) left out", layer_norm_with({.mean_term = false})},
      {"layer_norm", "x_hat mean(g x_hat) left out", layer_norm_with({.spread_term = false})},
      {"layer_norm", "n - 1 for n", layer_norm_with({.correction = 1})},
      {"layer_norm", "gamma left out", layer_norm_with({.gamma = false})},
      {"layer_norm", "dbeta as a mean",
       gradient_of(2,
                   [](T, Ts, T dy) {
                     return mean(dy, {0, 1});
                   })},
      {"layer_norm", "dgamma without x_hat",
       gradient_of(1,
                   [](T, Ts, T dy) {
                     return sum(dy, {0, 1});
                   })},
      {"layer_norm", "one element", one_element(0)},
      {"layer_norm of narrow rows", "missing eps", layer_norm_with({.eps = 0})},
      {"layer_norm_std", "mean(g) left out", layer_norm_std_with({.eps = 1e-6, .correction = 1, .mean_term = false})},
      {"layer_norm_std", "the spread's term left out",
       layer_norm_std_with({.eps = 1e-6, .correction = 1, .spread_term = false})},
      {"layer_norm_std", "n for n - 1", layer_norm_std_with({.eps = 1e-6})},
      {"layer_norm_std", "times 1.01", times(0, 1.01)},
      {"layer_norm_std of narrow rows", "missing eps", layer_norm_std_with({.eps = 0, .correction = 1})},
      {"rms_norm", "the spread's term left out", dx_is([](T x, T dy) {
         return dy / sqrt(mean(x * x, {-1}, true) + 1e-2);  // and the weight
       })},
      {"rms_norm", "dweight times 1.01", times(1, 1.01)},
      {"batch_norm", "statistics as constants",
       gradient_of(0,
                   [](T, Ts in, T dy) {
                     const Tensor deviation = sqrt(var(in[0], {0, 2}, 0, true) + 1e-5);
                     return dy * reshape(in[1], {1, -1, 1}) / deviation;
                   })},
      {"softmax", "sum(dy y) left out", dx_is([](T x, T dy) { return dy * softmax(x); })},
      {"softmax", "over the other dimension", dx_is([](T x, T dy) {
         const Tensor y = softmax(x);
         return y * (dy - sum(dy * y, {1}, true));
       })},
      {"log_softmax", "y left out", dx_is([](T x, T dy) { return dy - mean(dy, {1}, true) * ones_like(x); })},
      {"cross_entropy", "not divided by the rows",
       gradient_of(0, [](T dx, Ts in, T) { return dx * static_cast<double>(in[0].size(0)); })},
      {"cross_entropy", "smoothing forgotten",
       gradient_of(0,
                   [](T, Ts in, T dy) {
                     Tensor x = in[0].requires_grad() ? in[0] : in[0].detach().requires_grad_();
                     const SetGrad recording(true);
                     return grad({cross_entropy(x, in[1])}, {x}, {dy}, {.create_graph = true})[0];
                   })},
      {"cross_entropy, some ignored", "ignored rows get a gradient",
       gradient_of(0,
                   [](T dx, Ts in, T) {
                     return dx + unsqueeze(to(eq(in[1], zeros_like(in[1])), float64), -1) * (softmax(in[0]) - 0.1);
                   })},
      {"nll_loss", "sign", times(0, -1)},
      {"kl_div", "divided by all elements", gradient_of(0, [](T dx, Ts in, T) { return dx / size_of_rows(in[0]); })},
      {"embedding", "repeated ids lost",
       gradient_of(1,
                   [](T, Ts in, T dy) {
                     const Tensor ids = reshape(in[0], {-1}), rows = reshape(dy, {ids.numel(), dy.size(-1)});
                     Tensors last(static_cast<std::size_t>(in[1].size(0)), zeros({1, dy.size(-1)}, float64));
                     const std::vector<std::int64_t> values = ids.to_vector<std::int64_t>();
                     for (std::size_t i = 0; i < values.size(); ++i) {
                       const auto row = static_cast<std::int64_t>(i);
                       last[static_cast<std::size_t>(values[i])] = slice(rows, 0, row, row + 1);
                     }
                     return concat(last, 0);
                   })},
      {"attention", "missing scale of dq", times(0, std::sqrt(3.0))},
      {"attention", "dk for dq",
       [](Tensors& dx, Ts, T) {
         if (dx[0].defined() && dx[1].defined()) std::swap(dx[0], dx[1]);
       }},
      {"attention", "weights transposed for dv",
       gradient_of(2,
                   [](T, Ts in, T dy) {
                     const Tensor weights =
                         scaled_dot_product_attention(in[0], in[1], in[2], {}, {.causal = true}).weights;
                     return matmul(weights, dy);
                   })},
      {"masked attention", "mask left out for dv",
       gradient_of(2,
                   [](T, Ts in, T dy) {
                     return matmul(swap_last(softmax(matmul(in[0], swap_last(in[1])) / std::sqrt(3.0))), dy);
                   })},
      {"causal_attention_packed", "one element", one_element(0)},
      // Right without a graph and in the first derivative, wrong in the second: values taken as constants.
      {"layer_norm", "statistics saved as constants",
       gradient_of(0,
                   [](T, Ts in, T dy) {
                     const Tensor x = in[0].detach(), g = dy * in[1], d = x - mean(x, {-1}, true);
                     const Tensor rstd = 1.0 / sqrt(mean(d * d, {-1}, true) + 1e-5), x_hat = d * rstd;
                     return rstd * (g - mean(g, {-1}, true) - x_hat * mean(g * x_hat, {-1}, true));
                   })},
      {"softmax", "output saved as a constant", dx_is([](T x, T dy) {
         const Tensor y = softmax(x.detach());
         return y * (dy - sum(dy * y, {-1}, true));
       })},
      {"linear", "cotangent as a constant for dW",
       gradient_of(1, [](T, Ts in, T dy) { return sum(matmul(swap_last(dy.detach()), in[0]), {0}); })},
  };
}

const Op& find(const std::vector<Op>& ops, const std::string& name) {
  const auto found = std::find_if(ops.begin(), ops.end(), [&](const Op& op) { return op.name == name; });
  REQUIRE_MESSAGE(found != ops.end(), name);
  return *found;
}

Function planted(const Op& op, const Spoil& spoil) {
  return [=](const Tensors& in) { return apply_op<Planted>(in, op.function, spoil)[0]; };
}

}  // namespace

TEST_CASE("planted_faults: wrong backwards are caught") {
  const std::vector<Op> ops = all_ops();
  const std::vector<Fault> faults = all_faults();
  std::set<std::string> spoilt;
  std::size_t caught = 0;
  for (const Fault& fault : faults) {
    const Op& op = find(ops, fault.op);
    spoilt.insert(op.name);
    bool every_time = true;
    for (std::uint64_t seed : {1, 2, 3}) {
      Maker make(seed);
      const GradcheckReport report = gradcheck(planted(op, fault.spoil), op.inputs(make), {.seed = seed});
      CHECK_MESSAGE(!report.passed, op.name, ", ", fault.what, " is not caught with seed ", seed);
      every_time = every_time && !report.passed;
    }
    if (every_time) ++caught;
  }
  std::cout << "planted_faults: caught / planted: " << caught << " / " << faults.size() << ", over " << spoilt.size()
            << " ops\n";
  CHECK(caught == faults.size());
  CHECK(faults.size() >= 40);
  CHECK(spoilt.size() >= 15);
}

// The node that carries the faults is no fault itself.
TEST_CASE("planted_faults: without a fault the same node passes") {
  for (const Op& op : all_ops()) {
    Maker make(1);
    const Spoil nothing = [](Tensors&, const Tensors&, const Tensor&) {};
    const GradcheckReport report = gradcheck(planted(op, nothing), op.inputs(make));
    CHECK_MESSAGE(report.passed, op.name, ": ", report.message);
  }
}

TEST_CASE("planted_faults: right backwards are not refused, whatever the shape and seed") {
  const std::vector<Op> ops = all_ops();
  int checked = 0, refused = 0;
  for (std::uint64_t seed = 1; checked < 1000; ++seed) {
    for (const Op& op : ops) {
      Maker make(seed);
      const GradcheckReport report = gradcheck(op.function, op.inputs(make), {.seed = seed});
      CHECK_MESSAGE(report.passed, op.name, " with seed ", seed, ": ", report.message);
      ++checked;
      if (!report.passed) ++refused;
    }
  }
  std::cout << "planted_faults: refused / right: " << refused << " / " << checked << ", over " << ops.size()
            << " ops\n";
}

}  // namespace prenorm
