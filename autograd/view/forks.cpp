#include "autograd/view/forks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "autograd/tensor_impl.h"

namespace prenorm::view {
namespace {

struct Use {
  std::int64_t consumer, input;
};

// Of each value, the uses whose backward gave a gradient; oldest first.
std::map<Ref, std::vector<Use>> uses(const Record& record, const Trace& trace) {
  std::map<Ref, std::vector<Use>> uses;
  for (std::int64_t id = 0; id < record.size(); ++id) {
    for (std::size_t i = 0; i < trace[id].gradients.size(); ++i) {
      if (!trace[id].gradients[i].defined()) continue;
      uses[record[id].inputs[i]].push_back({id, static_cast<std::int64_t>(i)});
    }
  }
  return uses;
}

const Tensor& gradient(const Trace& trace, const Use& use) {
  return trace[use.consumer].gradients[static_cast<std::size_t>(use.input)];
}

const Tensor& cotangent(const Trace& trace, const Ref& value) {
  return trace[value.node].cotangents[static_cast<std::size_t>(value.output)];
}

// The nodes that `from` was computed from, back to the node with id `oldest`; it included.
std::set<std::int64_t> ancestors(const Record& record, std::int64_t from, std::int64_t oldest) {
  std::set<std::int64_t> seen{from};
  std::vector<std::int64_t> stack{from};
  while (!stack.empty()) {
    const std::int64_t id = stack.back();
    stack.pop_back();
    for (const Ref& input : record[id].inputs) {
      if (input.node >= oldest && seen.insert(input.node).second) stack.push_back(input.node);
    }
  }
  return seen;
}

// The skip goes straight into a residual sum, the branch comes to the same sum on its other side.
void find_roles(const Record& record, std::vector<ForkPart>& parts) {
  for (ForkPart& skip : parts) {
    if (record[skip.consumer].op() != "residual_add" || skip.input != 0) continue;
    skip.role = "skip";
    const std::int64_t branch = record[skip.consumer].inputs[1].node, oldest = parts[0].consumer;
    const std::set<std::int64_t> inside = ancestors(record, branch, oldest);
    for (ForkPart& part : parts) {
      const bool other_side = part.consumer == skip.consumer && part.input == 1;
      if (part.role.empty() && (other_side || inside.contains(part.consumer))) part.role = "branch";
    }
  }
  const auto rank = [](const ForkPart& part) { return part.role == "skip" ? 0 : part.role == "branch" ? 1 : 2; };
  std::stable_sort(parts.begin(), parts.end(), [&](const ForkPart& a, const ForkPart& b) { return rank(a) < rank(b); });
}

bool has_hook(const RecordedNode& node, std::int64_t output) {
  const Hooks* hooks = node.kind == RecordedNode::Kind::leaf && node.node->is_leaf()
                           ? static_cast<const Leaf&>(*node.node).tensor().impl()->hooks.get()
                           : node.node->find_hooks(output);
  return hooks != nullptr && !hooks->gradient.empty();
}

// A leaf that was used in two states (written to in between), or besides the recording, may have got more than is
// known.
std::set<const Node*> used_elsewhere(const Record& record) {
  std::set<const Node*> seen, elsewhere;
  bool outside = false;
  for (const RecordedNode& node : record.nodes()) {
    if (node.kind != RecordedNode::Kind::leaf) continue;
    outside = outside || !node.node->is_leaf();
    if (!seen.insert(node.node.get()).second) elsewhere.insert(node.node.get());
  }
  return outside ? seen : elsewhere;
}

}  // namespace

double dot_product(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
}
double norm_of(const Tensor& tensor) { return std::sqrt(dot_product(tensor, tensor)); }

std::vector<Fork> find_forks(const Record& record, const Trace& trace) {
  std::vector<Fork> forks;
  for (const auto& [value, list] : uses(record, trace)) {
    if (list.size() < 2 || !cotangent(trace, value).defined()) continue;
    Fork fork{.value = value, .total = cotangent(trace, value), .parts = {}, .cosine = {}};
    for (const Use& use : list) {
      fork.parts.push_back({use.consumer, use.input, "", norm_of(gradient(trace, use)), gradient(trace, use)});
    }
    find_roles(record, fork.parts);
    if (fork.parts.size() == 2 && fork.parts[0].norm > 0 && fork.parts[1].norm > 0) {
      fork.cosine =
          dot_product(fork.parts[0].gradient, fork.parts[1].gradient) / (fork.parts[0].norm * fork.parts[1].norm);
    }
    forks.push_back(std::move(fork));
  }
  return forks;
}

std::vector<Sum> check_sums(const Record& record, const Trace& trace) {
  const std::set<const Node*> elsewhere = used_elsewhere(record);
  std::vector<Sum> sums;
  for (const auto& [value, list] : uses(record, trace)) {
    const Tensor& total = cotangent(trace, value);
    const RecordedNode& node = record[value.node];
    if (!total.defined() || node.kind == RecordedNode::Kind::constant) continue;
    Sum sum{.value = value};
    std::vector<double> difference = total.to_vector<double>();
    double size = 0;
    const auto take = [&](const Tensor& part) {
      const std::vector<double> values = part.to_vector<double>();
      for (std::size_t i = 0; i < values.size(); ++i) difference[i] -= values[i];
      size += norm_of(part);
    };
    for (const Use& use : list) take(gradient(trace, use));
    if (const auto root = trace.roots.find(value); root != trace.roots.end()) take(root->second);
    const double error = std::sqrt(std::inner_product(difference.begin(), difference.end(), difference.begin(), 0.0));
    sum.error = error == 0 ? 0 : error / size;
    // Rounding of a sum of a few parts; an overwritten or missing part is of the size of the parts.
    const double tolerance = total.dtype() == float64 ? 1e-12 : 1e-5;
    sum.known = !has_hook(node, value.output) && !elsewhere.contains(node.node.get()) && std::isfinite(error);
    sum.ok = !sum.known || sum.error <= tolerance;
    sums.push_back(sum);
  }
  return sums;
}

}  // namespace prenorm::view
