// What the tests of the viewer share: a run's export, parsed.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/node.h"
#include "autograd/ops.h"
#include "autograd/view/recording.h"
#include "support.h"

namespace prenorm::view {

using Json = nlohmann::json;
using Ids = std::vector<std::int64_t>;

inline Json parse(const Recording& run, const Options& options = {}) { return Json::parse(run.json(options)); }

inline double number(const Json& value) {
  if (value == "nan") return NAN;
  if (value == "inf") return INFINITY;
  if (value == "-inf") return -INFINITY;
  return value.get<double>();
}

// The values of a tensor that was written in full.
inline std::vector<double> values(const Json& tensor) {
  REQUIRE(tensor.is_object());
  REQUIRE(tensor.contains("values"));
  std::vector<double> out;
  for (const Json& value : tensor["values"]) out.push_back(number(value));
  return out;
}

inline Ids ids_of(const Json& run, std::string_view op) {
  Ids ids;
  for (const Json& node : run["nodes"]) {
    if (node["op"] == op) ids.push_back(node["id"]);
  }
  return ids;
}
inline const Json& only(const Json& run, std::string_view op) {
  const Ids ids = ids_of(run, op);
  REQUIRE(ids.size() == 1);
  return run["nodes"][static_cast<std::size_t>(ids[0])];
}
inline const Json& named(const Json& run, std::string_view name) {
  for (const Json& node : run["nodes"]) {
    if (node["name"] == name) return node;
  }
  FAIL("no node is called ", std::string(name));
  return run["nodes"][0];
}

inline Ids with_verdict(const Json& run, std::string_view verdict) {
  Ids ids;
  for (const Json& node : run["nodes"]) {
    if (node["verdict"] == verdict) ids.push_back(node["id"]);
  }
  return ids;
}

// y = a * b + a, with a deliberately wrong backward, defined outside the library.
struct WrongProduct final : Node {
  explicit WrongProduct(double factor, bool forgets = false) : factor(factor), forgets(forgets) {}
  const double factor;
  const bool forgets;

  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "wrong_product",
                                 .formula = "y = a b + a",
                                 .derivative = "da = dy (b + 1); db = dy a",
                                 .reference = "",
                                 .file = "elsewhere/wrong_product.cpp"};
    return info;
  }
  Tensors forward(const Tensors& in) const override { return {in[0] * in[1] + in[0]}; }
  Saves saves() const override { return {.inputs = {0, 1}}; }
  void backward(const Tensors& dy, GradientSink& dx) const override {
    if (!forgets) dx.add(0, factor * dy[0] * (input(1) + 1.0));
    dx.add(1, dy[0] * input(0));
  }
};
inline Tensor wrong_product(const Tensor& a, const Tensor& b, double factor, bool forgets = false) {
  return apply_op<WrongProduct>({a, b}, factor, forgets)[0];
}

}  // namespace prenorm::view
