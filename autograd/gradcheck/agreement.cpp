#include "autograd/gradcheck/agreement.h"

#include <cmath>
#include <string>

#include "autograd/gradcheck/reason.h"
#include "autograd/gradcheck/verdict.h"
#include "autograd/ops.h"

namespace prenorm {
namespace {

// One input at a time costs a run each; a model has hundreds of parameters.
constexpr std::size_t kAloneAtMost = 8;

// The same values at other places: column-major, with gaps.
Tensor strided(const Tensor& tensor) {
  if (!tensor.defined() || tensor.dims() == 0 || tensor.numel() == 0) return tensor;
  Strides strides = tensor.shape();
  std::int64_t stride = 2;
  for (std::int64_t d = 0; d < tensor.dims(); ++d) {
    strides[d] = stride;
    stride *= tensor.shape()[d];
  }
  Tensor out = zeros({stride}, tensor.dtype()).view(tensor.shape(), strides);
  copy_(out, tensor);
  return out;
}

class Agreement {
 public:
  Agreement(const Differentiable& function, const DerivativeCheck& check, double tolerance)
      : function_(function), check_(check), tolerance_(tolerance) {}

  std::optional<GradcheckFailure> find() {
    const Tensors outputs = function_.record();  // anew: moving the inputs has spoilt what older graphs saved
    const Tensors& u = check_.cotangents();
    const NamedTensors& variables = function_.variables;
    expect("run twice, backward gives different bits", gradients_of(outputs, variables, u), 1, 0);
    expect("backward gives other gradients with create_graph", gradients_of(outputs, variables, u, true), 1,
           tolerance_);
    Tensors other_layout;
    for (const Tensor& cotangent : u) other_layout.push_back(strided(cotangent));
    expect("backward gives other gradients for a cotangent that is not contiguous",
           gradients_of(outputs, variables, other_layout), 1, tolerance_);
    two_uses(outputs);
    if (variables.size() > 1 && variables.size() <= kAloneAtMost) {
      for (std::size_t v = 0; v < variables.size(); ++v) alone(v);
    }
    return failure_;
  }

 private:
  // The second use has half the cotangents.
  void two_uses(Tensors outputs) {
    Tensors cotangents = check_.cotangents();
    const Tensors again = function_.record();
    for (std::size_t i = 0; i < again.size(); ++i) {
      outputs.push_back(again[i]);
      cotangents.push_back(cotangents[i].defined() ? cotangents[i] * 0.5 : Tensor());
    }
    expect("the gradients of two uses do not add up", gradients_of(outputs, function_.variables, cotangents), 1.5,
           tolerance_);
  }

  void alone(std::size_t variable) {
    for (std::size_t v = 0; v < function_.variables.size(); ++v) {
      Tensor tensor = function_.variables[v].tensor;
      tensor.requires_grad_(v == variable);
    }
    const NamedTensors one{function_.variables[variable]};
    const Gradients gradients = gradients_of(function_.record(), one, check_.cotangents());
    for (const NamedTensor& named : function_.variables) {
      Tensor tensor = named.tensor;
      tensor.requires_grad_();
    }
    expect_one("backward gives another gradient where no other input requires grad", variable, gradients[0], 1,
               tolerance_);
  }

  void expect(const std::string& what, const Gradients& gradients, double factor, double tolerance) {
    for (std::size_t v = 0; v < gradients.size(); ++v) expect_one(what, v, gradients[v], factor, tolerance);
  }

  void expect_one(const std::string& what, std::size_t variable, const std::vector<double>& gradient, double factor,
                  double tolerance) {
    if (failure_.has_value()) return;
    const std::vector<double>& expected = check_.gradients()[variable];
    const NamedTensor& named = function_.variables[variable];
    GradcheckFailure failure{.order = function_.order, .reason = GradcheckReason::disagreement};
    failure.detail = what;
    failure.input = named.path;
    failure.shape = named.tensor.shape();
    failure.total = named.tensor.numel();
    for (std::size_t i = 0; i < static_cast<std::size_t>(failure.total); ++i) {
      const double a = expected.empty() ? 0 : expected[i] * factor, b = gradient.empty() ? 0 : gradient[i];
      const double error = relative_error(a, b, check_.largest());
      if (error <= tolerance) continue;
      ++failure.wrong;
      if (failure.wrong > 1 && !(error > failure.relative_error)) continue;
      failure.relative_error = error;
      failure.coordinate = coordinate_of(failure.shape, static_cast<std::int64_t>(i));
      failure.analytic = a;
      failure.numeric = b;
    }
    if (failure.wrong > 0) failure_ = failure;
  }

  const Differentiable& function_;
  const DerivativeCheck& check_;
  const double tolerance_;
  std::optional<GradcheckFailure> failure_;
};

}  // namespace

std::optional<GradcheckFailure> find_disagreement(const Differentiable& function, const DerivativeCheck& check,
                                                  double tolerance) {
  return Agreement(function, check, tolerance).find();
}

}  // namespace prenorm
