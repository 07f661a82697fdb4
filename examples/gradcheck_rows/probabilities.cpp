#include "autograd/ops.h"
#include "gradcheck_rows/rows.h"
#include "nn/transformer.h"

namespace prenorm::gradcheck_rows {
namespace {

// Along one dimension, also of scalars and single elements, whose gradient is zero.
MakeCases along(std::int64_t dim, const std::function<Tensor(const Tensor&, std::int64_t)>& f) {
  return [=](Cases& c) {
    const GradcheckFunction function([=](const Tensors& in) { return f(in[0], dim); });
    c.check(function, {{"x", c.normal({3, 4})}});
    c.check(function, {{"x", c.normal({2, 3, 4}, Layout::transposed)}});
    c.check(function, {{"x", c.normal({3, 2, 2}, Layout::gaps)}});
    c.check(function, {{"x", c.normal({19, 19})}});
    c.check_empty(function, {{"x", c.normal({0, 3})}});
    c.check_empty(function, {{"x", c.normal({1, 1, 1})}});
  };
}

// Elements that are -inf take no part.
MakeCases with_minus_infinity(const OneInput& f) {
  return [=](Cases& c) {
    const Tensor hidden = Tensor::of(std::vector<bool>{false, true, false, false}, {4}, {.dtype = boolean});
    c.check([=](const Tensors& in) { return f(masked_fill(in[0], hidden, -INFINITY)); }, {{"x", c.normal({3, 4})}});
  };
}

using ClassLoss = Tensor (*)(const Tensor&, const Tensor&, const CrossEntropyOptions&);

// x [..., C] and target [...]. Where there is an ignored class, some rows have it and some do not.
MakeCases class_loss(ClassLoss f, const CrossEntropyOptions& options) {
  return [=](Cases& c) {
    const auto targets = [&](const Shape& shape, std::int64_t C) {
      std::vector<std::int64_t> ids = c.ids(shape, C).to_vector<std::int64_t>();
      if (options.ignore_index.has_value()) {
        ids.front() = C - 1;  // a row that counts
        ids[ids.size() / 2] = *options.ignore_index;
      }
      return Tensor::of(ids, shape, {.dtype = int64});
    };
    const GradcheckFunction function([=](const Tensors& in) { return f(in[0], in[1], options); });
    const auto check = [&](const Shape& rows, std::int64_t C, Layout layout) {
      Shape shape = rows;
      shape.push_back(C);
      c.check(function, {{"x", c.normal(shape, layout)}, {"target", targets(rows, C)}});
    };
    check({3}, 5, Layout::dense);
    check({2, 3}, 4, Layout::transposed);
    check({2, 1, 2}, 3, Layout::gaps);
    check({4}, 19, Layout::dense);
    if (!options.ignore_index.has_value()) check({}, 3, Layout::dense);
  };
}

std::string describe(const CrossEntropyOptions& options) {
  std::string text = options.reduction == Reduction::mean  ? "mean"
                     : options.reduction == Reduction::sum ? "sum"
                                                           : "none";
  if (options.ignore_index.has_value()) text += ", ignore_index";
  if (options.label_smoothing > 0) text += ", smoothing";
  return text;
}

MakeCases kl_div_cases(Reduction reduction, bool log_target) {
  return [=](Cases& c) {
    const auto check = [&](const Shape& shape, Layout layout) {
      const Tensor p = softmax(c.normal(shape)).detach();
      const Tensor target = log_target ? log(p) : p;
      const auto f = [=](const Tensors& in) { return kl_div(in[0], target, reduction, log_target); };
      c.check(f, {{"x", c.normal(shape, layout)}});
    };
    check({4}, Layout::dense);
    check({3, 5}, Layout::dense);
    check({2, 3, 4}, Layout::transposed);
  };
}

void label_smoothing_cases(Cases& c) {
  const Tensor target = Tensor::of({2, 0, 1, 4}, {.dtype = int64});  // 0 is padding
  for (Layout layout : {Layout::dense, Layout::transposed}) {
    c.check([target](const Tensors& in) { return nn::label_smoothing_loss(in[0], target, 0, 0.4); },
            {{"log_probs", c.normal({4, 5}, layout)}});
  }
}

}  // namespace

Rows probability_rows() {
  const auto softmax_of = [](const Tensor& x, std::int64_t dim) { return softmax(x, dim); };
  const auto log_softmax_of = [](const Tensor& x, std::int64_t dim) { return log_softmax(x, dim); };
  Rows rows{
      {"softmax", "last dim", ops("softmax.cpp"), along(-1, softmax_of)},
      {"softmax", "first dim", ops("softmax.cpp"), along(0, softmax_of)},
      {"softmax", "-inf", ops("softmax.cpp"), with_minus_infinity([](const Tensor& x) { return softmax(x); })},
      {"log_softmax", "last dim", ops("log_softmax.cpp"), along(-1, log_softmax_of)},
      {"log_softmax", "first dim", ops("log_softmax.cpp"), along(0, log_softmax_of)},
  };
  const auto add_class_loss = [&rows](const std::string& name, ClassLoss f, double smoothing) {
    for (Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none}) {
      for (const std::optional<std::int64_t>& ignored : {std::optional<std::int64_t>(), {-100}}) {
        const CrossEntropyOptions options{reduction, ignored, smoothing};
        rows.push_back({name, describe(options), ops(name + ".cpp"), class_loss(f, options)});
      }
    }
  };
  add_class_loss("cross_entropy", cross_entropy, 0);
  add_class_loss("cross_entropy", cross_entropy, 0.2);
  rows.push_back({"cross_entropy", "ignore_index is a class", ops("cross_entropy.cpp"),
                  class_loss(cross_entropy, {.ignore_index = 1, .label_smoothing = 0.1})});
  add_class_loss("nll_loss", nll_loss, 0);
  const std::vector<std::pair<Reduction, std::string>> kinds{{Reduction::mean, "mean"},
                                                             {Reduction::batchmean, "batchmean"},
                                                             {Reduction::sum, "sum"},
                                                             {Reduction::none, "none"}};
  for (const auto& [reduction, text] : kinds) {
    rows.push_back({"kl_div", text, ops("kl_div.cpp"), kl_div_cases(reduction, false)});
    rows.push_back({"kl_div", text + ", log_target", ops("kl_div.cpp"), kl_div_cases(reduction, true)});
  }
  rows.push_back({"label_smoothing_loss", "", layers("transformer.cpp"), label_smoothing_cases});
  return rows;
}

}  // namespace prenorm::gradcheck_rows
