#include "autograd/ops.h"
#include "gradcheck_rows/rows.h"

namespace prenorm::gradcheck_rows {
namespace {

// x, scale and shift to y; scale and shift may be undefined.
using NormOp = std::function<Tensor(const Tensor& x, const Tensor& scale, const Tensor& shift)>;

struct Affine {
  std::string scale, shift;  // the names of those that are given; empty where absent
};

// Calls f with those that are given.
GradcheckFunction with(const Affine& affine, const NormOp& f) {
  return [=](const Tensors& in) {
    std::size_t next = 1;
    const Tensor scale = affine.scale.empty() ? Tensor() : in[next++];
    const Tensor shift = affine.shift.empty() ? Tensor() : in[next++];
    return f(in[0], scale, shift);
  };
}

NamedTensors inputs(Cases& c, const Affine& affine, const Tensor& x, const Shape& normalized) {
  NamedTensors named{{"x", x}};
  for (const std::string& name : {affine.scale, affine.shift}) {
    if (!name.empty()) named.push_back({name, c.normal(normalized)});
  }
  return named;
}

// Rows over the last dimension: short and long ones, one or many, in any layout.
MakeCases rows_of(const Affine& affine, const NormOp& f) {
  return [=](Cases& c) {
    const GradcheckFunction function = with(affine, f);
    const auto check = [&](const Shape& shape, Layout layout = Layout::dense) {
      c.check(function, inputs(c, affine, c.normal(shape, layout), {shape.back()}));
    };
    check({5});
    check({1, 3});
    check({3, 8});
    check({2, 3, 4}, Layout::transposed);
    check({4, 19});
    check({2, 2, 7}, Layout::gaps);
    check({600, 33});  // long enough to be cut into blocks for threads
    const Tensor none = c.normal({0, 4});
    c.check_empty(function, inputs(c, affine, none, {4}));
  };
}

// Rows of small spread, where eps is not small beside the variance; y bends at the scale of the spread.
MakeCases flat_rows(const Affine& affine, double mean, const NormOp& f) {
  return [=](Cases& c) {
    const GradcheckFunction function = with(affine, f);
    for (double spread : {1e-2, 1e-3}) {
      Tensor x = c.normal({3, 8});
      {
        const NoGrad no_grad;
        x = x * spread + mean;
      }
      c.check(function, inputs(c, affine, x.requires_grad_(), {8}), {.step = GradcheckOptions().step * spread});
    }
  };
}

// Several dimensions are normalised together.
MakeCases several_dims(const Affine& affine, const std::function<NormOp(const Shape&)>& over) {
  return [=](Cases& c) {
    const auto check = [&](const Shape& shape, std::int64_t dims, Layout layout) {
      const Shape normalized(shape.end() - dims, shape.end());
      c.check(with(affine, over(normalized)), inputs(c, affine, c.normal(shape, layout), normalized));
    };
    check({2, 3, 4}, 2, Layout::dense);
    check({2, 3, 2}, 3, Layout::transposed);
    check({2, 2, 3}, 2, Layout::gaps);
  };
}

const Affine kGammaBeta{"gamma", "beta"}, kGamma{"gamma", ""}, kBeta{"", "beta"}, kNone{"", ""};
const Affine kA2B2{"a_2", "b_2"}, kA2{"a_2", ""}, kB2{"", "b_2"};
const Affine kWeight{"weight", ""}, kWeightBias{"weight", "bias"}, kBias{"", "bias"};

NormOp standard(double eps = 1e-5) {
  return [eps](const Tensor& x, const Tensor& gamma, const Tensor& beta) {
    return layer_norm(x, Shape{x.size(-1)}, gamma, beta, eps);
  };
}
NormOp standard_over(const Shape& normalized) {
  return [=](const Tensor& x, const Tensor& gamma, const Tensor& beta) {
    return layer_norm(x, normalized, gamma, beta, 1e-5);
  };
}
NormOp unbiased(double eps = 1e-6) {
  return [eps](const Tensor& x, const Tensor& a_2, const Tensor& b_2) { return layer_norm_std(x, a_2, b_2, eps); };
}
NormOp rms(double eps = 1e-6) {
  return [eps](const Tensor& x, const Tensor& weight, const Tensor&) {
    return rms_norm(x, Shape{x.size(-1)}, weight, eps);
  };
}
NormOp rms_over(const Shape& normalized) {
  return [=](const Tensor& x, const Tensor& weight, const Tensor&) { return rms_norm(x, normalized, weight, 1e-6); };
}

// On a constant row the unbiased form has dx = (g - mean(g)) / eps, and std no derivative of its own: order 1 alone,
// and a step far below eps, as y bends at that scale.
void constant_rows(Cases& c) {
  const GradcheckFunction f = with(kA2B2, unbiased());
  for (double value : {0.0, 0.5, -7.0}) {
    Tensor x = full({2, 8}, value, float64);
    c.check(f, inputs(c, kA2B2, x.requires_grad_(), {8}), {.order = 1, .step = 1e-13});
  }
}

MakeCases batch_norm_cases(const Affine& affine, const NormOp& f) {
  return [=](Cases& c) {
    const GradcheckFunction function = with(affine, f);
    c.check(function, inputs(c, affine, c.normal({4, 3}), {3}));
    c.check(function, inputs(c, affine, c.normal({3, 1}), {1}));
    c.check(function, inputs(c, affine, c.normal({7, 3}, Layout::transposed), {3}));
    c.check(function, inputs(c, affine, c.normal({3, 2, 4}), {2}));
    c.check(function, inputs(c, affine, c.normal({2, 3, 5}, Layout::transposed), {3}));
  };
}

NormOp of_batch(double eps = 1e-5) {
  return
      [eps](const Tensor& x, const Tensor& weight, const Tensor& bias) { return batch_norm(x, weight, bias, eps).y; };
}

// Statistics from outside, which have gradients here as well.
MakeCases batch_norm_with_cases(const Affine& affine) {
  return [=](Cases& c) {
    const auto check = [&](const Shape& shape, Layout layout) {
      const Shape channels{shape[1]};
      NamedTensors all = inputs(c, affine, c.normal(shape, layout), channels);
      all.push_back({"mean", c.normal(channels)});
      all.push_back({"var", c.positive(channels)});
      const std::size_t last = all.size() - 1;
      const auto f = [affine, last](const Tensors& in) {
        const NormOp op = [&](const Tensor& x, const Tensor& weight, const Tensor& bias) {
          return batch_norm_with(x, in[last - 1], in[last], weight, bias);
        };
        return with(affine, op)(in);
      };
      c.check(f, all);
    };
    check({4, 3}, Layout::dense);
    check({1, 2}, Layout::dense);
    check({2, 3, 4}, Layout::transposed);
  };
}

}  // namespace

Rows norm_rows() {
  const std::string standard_file = ops("layer_norm.cpp"), unbiased_file = ops("layer_norm_std.cpp"),
                    rms_file = ops("rms_norm.cpp"), batch_file = ops("batch_norm.cpp");
  return {
      {"layer_norm", "gamma and beta", standard_file, rows_of(kGammaBeta, standard())},
      {"layer_norm", "gamma", standard_file, rows_of(kGamma, standard())},
      {"layer_norm", "beta", standard_file, rows_of(kBeta, standard())},
      {"layer_norm", "plain", standard_file, rows_of(kNone, standard())},
      {"layer_norm", "large eps", standard_file, rows_of(kGammaBeta, standard(0.5))},
      {"layer_norm", "flat rows", standard_file, flat_rows(kGammaBeta, 3, standard())},
      {"layer_norm", "several dims", standard_file, several_dims(kGammaBeta, standard_over)},
      {"layer_norm", "several dims, plain", standard_file, several_dims(kNone, standard_over)},
      {"layer_norm_std", "a_2 and b_2", unbiased_file, rows_of(kA2B2, unbiased())},
      {"layer_norm_std", "a_2", unbiased_file, rows_of(kA2, unbiased())},
      {"layer_norm_std", "b_2", unbiased_file, rows_of(kB2, unbiased())},
      {"layer_norm_std", "plain", unbiased_file, rows_of(kNone, unbiased())},
      {"layer_norm_std", "large eps", unbiased_file, rows_of(kA2B2, unbiased(0.5))},
      {"layer_norm_std", "flat rows", unbiased_file, flat_rows(kA2B2, 3, unbiased())},
      {"layer_norm_std", "constant rows", unbiased_file, constant_rows},
      {"rms_norm", "weight", rms_file, rows_of(kWeight, rms())},
      {"rms_norm", "plain", rms_file, rows_of(kNone, rms())},
      {"rms_norm", "large eps", rms_file, rows_of(kWeight, rms(0.5))},
      {"rms_norm", "small rows", rms_file, flat_rows(kWeight, 0, rms())},
      {"rms_norm", "several dims", rms_file, several_dims(kWeight, rms_over)},
      {"batch_norm", "weight and bias", batch_file, batch_norm_cases(kWeightBias, of_batch())},
      {"batch_norm", "weight", batch_file, batch_norm_cases(kWeight, of_batch())},
      {"batch_norm", "bias", batch_file, batch_norm_cases(kBias, of_batch())},
      {"batch_norm", "plain", batch_file, batch_norm_cases(kNone, of_batch())},
      {"batch_norm", "large eps", batch_file, batch_norm_cases(kWeightBias, of_batch(0.5))},
      {"batch_norm_with", "weight and bias", batch_file, batch_norm_with_cases(kWeightBias)},
      {"batch_norm_with", "plain", batch_file, batch_norm_with_cases(kNone)},
  };
}

}  // namespace prenorm::gradcheck_rows
