#include "optim/adam.h"

#include <cmath>

#include "autograd/parallel.h"
#include "autograd/vectorized.h"

namespace prenorm::optim {
namespace {

// What is the same for all elements of a parameter at one step.
template <class T>
struct Coefficients {
  T beta1, beta2, eps;
  T take1, take2;  // 1 - beta, not rounded twice
  T decay;         // added to the gradient, times the weight
  T shrink;        // the weight's factor before the update
  T step_size;     // lr / (1 - beta1^t)
  T root;          // 1 / sqrt(1 - beta2^t)
};

template <class T>
PRENORM_VECTORIZED void adam_update(std::int64_t n, const Coefficients<T>& at, T* p, const T* gradient, T* m, T* v,
                                    T* largest) {
  const T beta1 = at.beta1, beta2 = at.beta2, eps = at.eps, take1 = at.take1, take2 = at.take2;
  const T decay = at.decay, shrink = at.shrink, step_size = at.step_size, root = at.root;
  if (largest == nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      const T g = gradient[i] + decay * p[i];
      m[i] = beta1 * m[i] + take1 * g;
      v[i] = beta2 * v[i] + take2 * g * g;
      p[i] = shrink * p[i] - step_size * m[i] / (std::sqrt(v[i]) * root + eps);
    }
    return;
  }
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const T g = gradient[i] + decay * p[i];
    m[i] = beta1 * m[i] + take1 * g;
    v[i] = beta2 * v[i] + take2 * g * g;
    largest[i] = v[i] > largest[i] ? v[i] : largest[i];
    p[i] = shrink * p[i] - step_size * m[i] / (std::sqrt(largest[i]) * root + eps);
  }
}

std::vector<std::string> slot_names(bool amsgrad) {
  std::vector<std::string> names{"exp_avg", "exp_avg_sq"};
  if (amsgrad) names.push_back("max_exp_avg_sq");
  return names;
}

AdamOptions as_adam(const AdamWOptions& o) { return {o.lr, o.beta1, o.beta2, o.eps, o.weight_decay, o.amsgrad}; }

}  // namespace

Adam::Adam(std::string_view type, std::vector<ParameterGroup> groups, const AdamOptions& options, bool decoupled)
    : Optimizer(type, std::move(groups), slot_names(options.amsgrad)), options_(options), decoupled_(decoupled) {
  const auto is_beta = [](double beta) { return beta >= 0 && beta < 1; };
  check(is_beta(options.beta1) && is_beta(options.beta2), type, ": betas are in [0, 1), got ", options.beta1, " and ",
        options.beta2);
  check(options.eps >= 0, type, ": eps is not negative, got ", options.eps);
}

Adam::Adam(const NamedTensors& parameters, const AdamOptions& options)
    : Adam("Adam", {{parameters, options.lr, options.weight_decay}}, options, false) {}
Adam::Adam(std::vector<ParameterGroup> groups, const AdamOptions& options)
    : Adam("Adam", std::move(groups), options, false) {}
AdamW::AdamW(const NamedTensors& parameters, const AdamWOptions& options)
    : Adam("AdamW", {{parameters, options.lr, options.weight_decay}}, as_adam(options), true) {}
AdamW::AdamW(std::vector<ParameterGroup> groups, const AdamWOptions& options)
    : Adam("AdamW", std::move(groups), as_adam(options), true) {}

void Adam::update(const Tensor& parameter, const Tensor& gradient, const Slot& slot, double lr,
                  double weight_decay) const {
  const double t = static_cast<double>(slot.step);
  const double correction1 = 1 - std::pow(options_.beta1, t), correction2 = 1 - std::pow(options_.beta2, t);
  dispatch_float("Adam", parameter.dtype(), [&](auto type) {
    using T = decltype(type);
    const Coefficients<T> at{.beta1 = T(options_.beta1),
                             .beta2 = T(options_.beta2),
                             .eps = T(options_.eps),
                             .take1 = T(1 - options_.beta1),
                             .take2 = T(1 - options_.beta2),
                             .decay = T(decoupled_ ? 0 : weight_decay),
                             .shrink = T(decoupled_ ? 1 - lr * weight_decay : 1),
                             .step_size = T(lr / correction1),
                             .root = T(1 / std::sqrt(correction2))};
    T *p = parameter.mutable_data<T>(), *m = slot.tensors[0].mutable_data<T>(), *v = slot.tensors[1].mutable_data<T>();
    T* largest = options_.amsgrad ? slot.tensors[2].mutable_data<T>() : nullptr;
    const T* g = gradient.data<T>();
    parallel_rows(parameter.numel(), 12, [&](std::int64_t begin, std::int64_t end) {
      adam_update(end - begin, at, p + begin, g + begin, m + begin, v + begin,
                  largest == nullptr ? largest : largest + begin);
    });
  });
}

}  // namespace prenorm::optim
