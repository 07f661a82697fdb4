// Why parameters have no gradient, and where it was lost.
//
//   GradientWatch watch;                                     // before the forward pass
//   Tensor loss = cross_entropy(model(ids), next);
//   loss.backward();
//   for (const MissingGradient& missing : watch.missing(loss, model.parameters()))
//     std::cout << missing.message << '\n';
//
//   no gradient reached encoder.weight: the output of linear in encoder was detached before mul in decoder
//
// The graph alone cannot tell where a value left it: what was cut off is not in it. So the watch follows values by the
// memory that holds them, through every operation, recorded or not. It sees neither what leaves the tensors (to_vector,
// item, data) nor other threads.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/observer.h"

namespace prenorm {

enum class GradientLost {
  frozen,         // requires_grad is off
  frozen_in_use,  // it was off when the parameter was used
  never_used,     // no operation took the parameter
  grad_mode_off,  // an operation on the way ran under NoGrad
  detached,       // a value on the way was detached
  no_derivative,  // an operation on the way has none: argmax, comparisons, conversion to integers, writing in place
  not_in_loss,    // used, but the loss was not computed from any of it
  not_in_graph,   // without a watch: one of the five above
  no_backward,    // all is connected, but backward was not called on this loss
  gave_none,      // backward ran, but an operation on the way gave its input no gradient
  cleared,        // the gradient arrived and is gone: zero_grad
  not_there,      // without a watch: one of the two above
};
std::string_view name(GradientLost reason);

struct MissingGradient {
  std::string path;  // of the parameter
  GradientLost reason;
  std::string op, scope;  // the operation to look at, where there is one
  std::string message;    // one sentence
};

// Of the parameters those without grad(), each with the reason. From the graph alone.
std::vector<MissingGradient> missing_gradients(const Tensor& loss, const NamedTensors& parameters);

// The same for what ran on this thread while the watch was there, and says where a value was cut off. Keeps a note on
// each operation, no values.
class GradientWatch final : public Observer {
 public:
  std::vector<MissingGradient> missing(const Tensor& loss, const NamedTensors& parameters) const;

  void node_made(const std::shared_ptr<const Node>& node, const Tensors& inputs, const Tensors& outputs) override;
  void unrecorded(std::string_view op, const Tensors& inputs, const Tensors& outputs) override;
  void backward_called(const std::shared_ptr<const Node>& node, const Tensors& cotangents,
                       const Tensors& gradients) override;

 private:
  // A storage by number. Weak handles keep the numbers unique: memory given back and taken again is another storage.
  using Memory = std::int64_t;
  static constexpr Memory kUnknown = -1;
  struct Value {
    Memory memory;
    const void* tensor;  // which handle it was
    bool requires_grad;
  };
  struct Step {
    std::string op, scope;
    std::vector<Value> inputs, outputs;
    bool grad_mode;
  };
  struct Fate;

  void note(std::string_view op, const std::string& scope, const Tensors& inputs, const Tensors& outputs);
  Value value_of(const Tensor& tensor);
  Memory find(const Tensor& tensor) const;
  MissingGradient explain(const Tensor& loss, const NamedTensor& parameter) const;
  MissingGradient explain_in_graph(const Tensor& loss, const NamedTensor& parameter) const;
  Fate follow(const Tensor& parameter, const Tensor& loss) const;
  const Step* maker(Memory memory, std::size_t before) const;

  std::vector<Step> steps_;
  std::map<std::weak_ptr<Storage>, Memory, std::owner_less<>> memories_;
  std::map<std::uint64_t, std::vector<bool>> ran_;  // by sequence: the inputs that were given a gradient
  std::set<Memory> arrived_;                        // leaves whose gradient arrived
};

}  // namespace prenorm
