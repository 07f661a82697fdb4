// See backprop: a record of a run, and the page it can be stepped through on.
//
//   view::Recording run;                                   // before the forward pass
//   run.name(model.parameters());
//   cross_entropy(model(ids), next).backward();
//   run.write_html("step.html", {.title = "one step"});    // one file, to be opened in a browser
//
// Everything this thread computes with recorded ops from construction on is recorded: each node with its inputs,
// outputs, module path, and, after backward, its cotangents and gradients. Values are copied, so that what is written
// in place later (parameters, by an optimiser) shows as it was. The copies take about as much memory as the forward and
// the backward pass; record a step or two, not a training run.
//
// What is written holds besides
// - a finite difference beside each gradient: each recorded node's forward is run again in float64 with one of its
//   inputs changed, against its recorded cotangents. So a wrong backward shows at its own node and nowhere else. Small
//   inputs are checked element by element, large ones along a random direction (of a generator of its own);
// - how the gradient of a value used more than once adds up, with skip and branch of residual sums told apart;
// - the three parts of LayerNorm's gradient;
// - the share of the gradient that crossed k branches of a residual stack.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograd/observer.h"

namespace prenorm::view {

class Record;

// A deliberately wrong backward, to see where it shows: the export redoes the backward pass from the recorded nodes.
struct BreakIt {
  std::string op = {};     // the first recorded node of this op that backward reached…
  std::int64_t node = -1;  // …or this node, by its id in the export
  // "sign", "factor 1.01" (any number), "nothing is passed on"; "= for +=": the parts that arrive at the node's value
  // overwrite each other instead of adding up; for norms "the mean part is not taken away", "the x_hat part is not
  // taken away", "it is not divided by sigma".
  std::string fault = {};
};

struct Options {
  std::string title = "run";
  std::string note = {};    // a paragraph above the graph
  NamedTensors names = {};  // tensors to call by name, besides those given to name()
  bool checks = true;       // false: no finite differences
  std::optional<BreakIt> break_it = {};
};

class Recording final : public Observer {
 public:
  Recording();
  ~Recording() override;

  // Calls a tensor by a name, "x" or "blocks.0.ln1.gamma". What stands before the last dot is its scope.
  void name(const Tensor& tensor, std::string name);
  void name(const NamedTensors& tensors);

  std::int64_t size() const;  // nodes so far, with leaves and constants

  // Each throws Error where nothing was recorded, a fault is unknown, or the file cannot be written; a file is replaced
  // as a whole or not at all. Writing changes nothing: it may be done again, or in between.
  void write_html(const std::filesystem::path& path, const Options& options = {}) const;
  void write_json(const std::filesystem::path& path, const Options& options = {}) const;
  std::string json(const Options& options = {}) const;
  // For Graphviz: the recorded graph alone.
  void write_dot(const std::filesystem::path& path) const;
  std::string dot() const;

  // The faults that can be planted at an op, "leaf" included.
  static std::vector<std::string> faults(std::string_view op);

 private:
  void node_made(const std::shared_ptr<const Node>& node, const Tensors& inputs, const Tensors& outputs) override;
  void backward_began(const std::vector<Edge>& outputs, const Tensors& cotangents,
                      const std::vector<Edge>& inputs) override;
  void backward_called(const std::shared_ptr<const Node>& node, const Tensors& cotangents,
                       const Tensors& gradients) override;

  std::unique_ptr<Record> record_;
};

}  // namespace prenorm::view
