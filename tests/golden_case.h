// A golden file: inputs and parameters to compute with, and what should come out. tests/golden/README.md has the
// format.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/tensor.h"
#include "nn/tiny_lm.h"

namespace prenorm::golden {

using Json = nlohmann::json;

class Case {
 public:
  explicit Case(const std::filesystem::path& file);

  const std::string& kind() const { return kind_; }
  const Json& config() const { return config_; }
  double tolerance() const { return tolerance_; }

  // Tensors of the file; those whose gradient it states require grad. `in` and `param` throw where there is none, the
  // others then return an undefined tensor.
  Tensor in(const std::string& name) const;
  Tensor param(const std::string& name) const;
  Tensor optional_in(const std::string& name) const { return find("in." + name); }
  Tensor optional_param(const std::string& name) const { return find("param." + name); }
  NamedTensors params() const;  // without the prefix

  // Compares an output with the file's: dtype, shape, and abs(got - want) <= tolerance * (1 + abs(want)) for all
  // elements. A tolerance of 0 asks for equal values.
  void out(const std::string& name, const Tensor& got) { out(name, got, tolerance_); }
  void out(const std::string& name, const Tensor& got, double tolerance);

  // Takes gradients of the file's parameters from these instead, for example those of a layer that loaded them.
  void use_params(const NamedTensors& params);
  // Runs backward from all outputs that have a cotangent, and compares the gradient of every input and parameter.
  void backward();

  // What went wrong so far, one line each. Every tensor `out.` and `grad.` that was not compared is a fault, too.
  std::vector<std::string> faults() const;

 private:
  Tensor find(const std::string& name) const;
  void compare(const std::string& name, const Tensor& got, double tolerance);

  std::string kind_;
  Json config_;
  double tolerance_ = 0;
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, Tensor> outputs_;
  std::set<std::string> compared_;
  std::vector<std::string> faults_;
};

// Computes what a file of a kind asks for and hands it to `out` and `backward`.
using Handler = void (*)(Case&);
using Handlers = std::map<std::string, Handler, std::less<>>;

const Handlers& layer_handlers();     // by kind
const Handlers& training_handlers();  // by kind
const Handlers& op_handlers();        // by operation; for files of kind "op"

Shape to_shape(const Json& sizes);
nn::TinyLM make_tiny_lm(const Json& config);

}  // namespace prenorm::golden
