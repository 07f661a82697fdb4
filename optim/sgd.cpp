#include "optim/sgd.h"

#include "autograd/parallel.h"
#include "autograd/vectorized.h"

namespace prenorm::optim {
namespace {

template <class T>
struct Coefficients {
  T lr, decay;
  T keep, take;  // m = keep m + take g
  bool nesterov;
  T momentum;
};

template <class T>
PRENORM_VECTORIZED void sgd_update(std::int64_t n, const Coefficients<T>& at, T* p, const T* gradient, T* m) {
  const T lr = at.lr, decay = at.decay, keep = at.keep, take = at.take, momentum = at.momentum;
  const bool nesterov = at.nesterov;
  if (m == nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) p[i] -= lr * (gradient[i] + decay * p[i]);
    return;
  }
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const T g = gradient[i] + decay * p[i];
    m[i] = keep * m[i] + take * g;
    p[i] -= lr * (nesterov ? g + momentum * m[i] : m[i]);
  }
}

}  // namespace

SGD::SGD(std::vector<ParameterGroup> groups, const SGDOptions& options)
    : Optimizer("SGD", std::move(groups),
                options.momentum != 0 ? std::vector<std::string>{"momentum_buffer"} : std::vector<std::string>{}),
      options_(options) {
  check(options.momentum >= 0, "SGD: momentum is not negative, got ", options.momentum);
  check(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
        "SGD: nesterov needs momentum and no dampening");
}
SGD::SGD(const NamedTensors& parameters, const SGDOptions& options)
    : SGD({{parameters, options.lr, options.weight_decay}}, options) {}

void SGD::update(const Tensor& parameter, const Tensor& gradient, const Slot& slot, double lr,
                 double weight_decay) const {
  const bool first = slot.step == 1;
  dispatch_float("SGD", parameter.dtype(), [&](auto type) {
    using T = decltype(type);
    const Coefficients<T> at{.lr = T(lr),
                             .decay = T(weight_decay),
                             .keep = T(first ? 0 : options_.momentum),
                             .take = T(first ? 1 : 1 - options_.dampening),
                             .nesterov = options_.nesterov,
                             .momentum = T(options_.momentum)};
    T* p = parameter.mutable_data<T>();
    T* m = slot.tensors.empty() ? nullptr : slot.tensors[0].mutable_data<T>();
    const T* g = gradient.data<T>();
    parallel_rows(parameter.numel(), 6, [&](std::int64_t begin, std::int64_t end) {
      sgd_update(end - begin, at, p + begin, g + begin, m == nullptr ? m : m + begin);
    });
  });
}

}  // namespace prenorm::optim
