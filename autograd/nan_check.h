// NanCheck finds the operation that made the first NaN or infinity, forward or backward.
//
//   NanCheck check;                        // before the forward pass
//   cross_entropy(model(ids), next).backward();
//
//   Error: nan_check: log in loss gave infinity: output 0, float32 [2, 3], is -inf at [0, 1]; its inputs were finite
//
// It looks at every output of every operation and at every gradient, so a step takes about half as long again. Where a
// run may have infinities by design (a mask of -inf outside attention), look for NaN alone: {.infinity = false}.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "autograd/observer.h"

namespace prenorm {

struct NanCheckOptions {
  bool infinity = true;  // infinities count, too
  bool stop = true;      // throws Error at the first one; otherwise notes it for first(), and the run goes on
};

// Observes this thread from construction to destruction.
class NanCheck final : public Observer {
 public:
  struct Finding {
    std::string op;         // "log"; "leaf" where a leaf's total gradient is the first
    std::string scope;      // the module path it was made under
    bool backward = false;  // in a gradient
    std::string message;    // one sentence with shapes and place
  };

  explicit NanCheck(NanCheckOptions options = {}) : options_(options) {}

  // The first one, if there was any. Nothing after it is looked at.
  const std::optional<Finding>& first() const { return first_; }

  void node_made(const std::shared_ptr<const Node>& node, const Tensors& inputs, const Tensors& outputs) override;
  void backward_called(const std::shared_ptr<const Node>& node, const Tensors& cotangents,
                       const Tensors& gradients) override;
  void unrecorded(std::string_view op, const Tensors& inputs, const Tensors& outputs) override;

 private:
  struct Place;
  std::optional<Place> look(const Tensors& tensors) const;
  void look_forward(std::string_view op, const std::string& scope, const Tensors& inputs, const Tensors& outputs);
  void report(Finding finding);

  NanCheckOptions options_;
  std::optional<Finding> first_;
};

}  // namespace prenorm
