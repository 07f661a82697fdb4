// What tests of layers share.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "autograd/observer.h"
#include "autograd/ops.h"
#include "autograd/safetensors.h"
#include "nn/gradcheck.h"
#include "nn/module.h"
#include "support.h"

namespace prenorm {

inline std::vector<std::string> paths(const NamedTensors& tensors) {
  std::vector<std::string> result;
  for (const NamedTensor& named : tensors) result.push_back(named.path);
  return result;
}
inline std::set<std::string> path_set(const NamedTensors& tensors) {
  const std::vector<std::string> list = paths(tensors);
  return {list.begin(), list.end()};
}

// The names of the parameters in a file of the reference data, "encoder.padding".
inline std::set<std::string> golden_paths(const std::string& file) {
  std::set<std::string> result;
  const std::string path = std::string(PRENORM_SOURCE_DIR "/tests/golden/").append(file).append(".safetensors");
  for (const NamedTensor& named : read_safetensors(path).tensors) {
    if (named.path.starts_with("param.")) result.insert(named.path.substr(6));
  }
  return result;
}

inline bool same_bits(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  return a.shape() == b.shape() && (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0);
}
inline bool is_finite(const Tensor& x) {
  const std::vector<double> values = x.to_vector<double>();
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

// Which numbers the default generator gives next.
inline std::vector<std::int64_t> generator_state() { return default_generator().state().to_vector<std::int64_t>(); }

// Every parameter of a module has memory of its own, apart from that of `other` too.
inline bool share_no_memory(const nn::Module& module, const nn::Module& other) {
  std::set<const void*> memory;
  std::size_t count = 0;
  for (const nn::Module& each : {module, other}) {
    for (const auto& [path, parameter] : each.parameters()) {
      memory.insert(parameter.storage().get());
      ++count;
    }
  }
  return memory.size() == count;
}

// Notes under which path each op ran.
class Scopes : public Observer {
 public:
  void node_made(const std::shared_ptr<const Node>& node, const Tensors& /*inputs*/,
                 const Tensors& /*outputs*/) override {
    seen_.emplace_back(std::string(node->info().name), node->scope());
  }
  bool has(const std::string& op, const std::string& scope) const {
    return std::find(seen_.begin(), seen_.end(), std::pair(op, scope)) != seen_.end();
  }
  // The scopes of an op, in order.
  std::vector<std::string> of(const std::string& op) const {
    std::vector<std::string> result;
    for (const auto& [name, scope] : seen_) {
      if (name == op) result.push_back(scope);
    }
    return result;
  }

 private:
  std::vector<std::pair<std::string, std::string>> seen_;
};

// The derivatives of a layer are what differences say.
template <class L, class F>
void expect_layer_gradients(const L& layer, const Tensors& inputs, const F& call,
                            const GradcheckOptions& options = {}) {
  const GradcheckReport report = nn::gradcheck(layer, inputs, call, options);
  CHECK_MESSAGE(report.passed, report.message);
}

}  // namespace prenorm
