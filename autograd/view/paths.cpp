#include "autograd/view/paths.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "autograd/view/forks.h"

namespace prenorm::view {
namespace {

bool is_sum(const Record& record, std::int64_t id) { return record[id].op() == "residual_add"; }

// What a stream may pass between two residual sums: post-norm, and dropout on the stream.
bool passes_stream(std::string_view op) {
  constexpr std::array<std::string_view, 8> kOps{"layer_norm", "layer_norm_std", "rms_norm", "reshape", "dropout",
                                                 "to",         "clone",          "permute"};
  return std::find(kOps.begin(), kOps.end(), op) != kOps.end();
}

// The residual sum that the skip of another one comes from; -1 where there is none.
std::int64_t sum_before(const Record& record, std::int64_t id) {
  Ref skip = record[id].inputs[0];
  while (skip.given() && !is_sum(record, skip.node) && passes_stream(record[skip.node].op())) {
    skip = record[skip.node].inputs[0];
  }
  return skip.given() && is_sum(record, skip.node) ? skip.node : -1;
}

// From the newest sums back; a sum belongs to the first stream that finds it.
std::vector<std::vector<std::int64_t>> find_streams(const Record& record, const Trace& trace) {
  std::vector<std::vector<std::int64_t>> streams;
  std::set<std::int64_t> taken;
  for (std::int64_t id = record.size() - 1; id >= 0; --id) {
    if (!is_sum(record, id) || !trace[id].reached || taken.contains(id)) continue;
    std::vector<std::int64_t> stream;
    for (std::int64_t at = id; at >= 0 && !taken.contains(at) && trace[at].reached; at = sum_before(record, at)) {
      if (!trace[at].gradients[0].defined()) break;  // the input itself asked for no gradient
      taken.insert(at);
      stream.push_back(at);
    }
    std::reverse(stream.begin(), stream.end());
    if (!stream.empty()) streams.push_back(std::move(stream));
  }
  std::reverse(streams.begin(), streams.end());
  return streams;
}

// The op nodes between: computed from `bottom`, and used for `top`.
std::set<std::int64_t> between(const Record& record, const Ref& bottom, std::int64_t top) {
  std::set<std::int64_t> above, used{top}, region;
  for (std::int64_t id = bottom.node + 1; id <= top; ++id) {
    for (const Ref& input : record[id].inputs) {
      if (input == bottom || above.contains(input.node)) above.insert(id);
    }
  }
  for (std::int64_t id = top; id > bottom.node; --id) {
    if (!used.contains(id)) continue;
    if (above.contains(id)) region.insert(id);
    for (const Ref& input : record[id].inputs) used.insert(input.node);
  }
  return region;
}

using ByCrossed = std::map<std::size_t, Tensor>;  // v_k by k

void add(ByCrossed& to, std::size_t crossed, const Tensor& gradient) {
  if (!gradient.defined()) return;
  Tensor& total = to[crossed];
  total = sum_of(total, gradient);
}

class Descent {
 public:
  Descent(const Record& record, const Trace& trace, const std::vector<std::int64_t>& stream)
      : record_(record),
        trace_(trace),
        sums_(stream.begin(), stream.end()),
        bottom_(record[stream.front()].inputs[0]),
        region_(between(record, bottom_, stream.back())) {}

  // The v_k at the bottom.
  ByCrossed run() {
    seed();
    for (auto id = region_.rbegin(); id != region_.rend(); ++id) step(*id);
    return values_[bottom_];
  }
  const Ref& bottom() const { return bottom_; }

 private:
  bool inside(const Ref& value) const { return value == bottom_ || region_.contains(value.node); }

  // What comes into the region from outside of it has crossed none of its branches.
  void seed() {
    for (const auto& [value, root] : trace_.roots) {
      if (inside(value)) add(values_[value], 0, root);
    }
    for (std::int64_t id = 0; id < record_.size(); ++id) {
      if (region_.contains(id)) continue;
      for (std::size_t i = 0; i < trace_[id].gradients.size(); ++i) {
        const Ref& value = record_[id].inputs[i];
        if (value.given() && inside(value)) add(values_[value], 0, trace_[id].gradients[i]);
      }
    }
  }

  void step(std::int64_t id) {
    const RecordedNode& node = record_[id];
    std::map<std::size_t, Tensors> by_crossed;  // cotangents
    for (std::size_t output = 0; output < node.outputs.size(); ++output) {
      for (const auto& [crossed, v] : values_[{id, static_cast<std::int64_t>(output)}]) {
        Tensors& cotangents = by_crossed[crossed];
        cotangents.resize(node.outputs.size());
        cotangents[output] = v;
      }
    }
    for (std::size_t output = 0; output < node.outputs.size(); ++output) {
      values_.erase({id, static_cast<std::int64_t>(output)});
    }
    std::vector<bool> wanted;
    for (const Ref& input : node.inputs) wanted.push_back(input.given() && inside(input));
    for (const auto& [crossed, cotangents] : by_crossed) {
      const Tensors gradients = backward_of(node, cotangents, wanted);
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        if (!wanted[i]) continue;
        const bool branch = sums_.contains(id) && i == 1;
        add(values_[node.inputs[i]], crossed + (branch ? 1 : 0), gradients[i]);
      }
    }
  }

  const Record& record_;
  const Trace& trace_;
  std::set<std::int64_t> sums_;
  Ref bottom_;
  std::set<std::int64_t> region_;
  std::map<Ref, ByCrossed> values_;
};

}  // namespace

std::vector<Path> find_paths(const Record& record, const Trace& trace) {
  std::vector<Path> paths;
  for (std::vector<std::int64_t>& stream : find_streams(record, trace)) {
    Descent descent(record, trace, stream);
    const ByCrossed parts = descent.run();
    const Ref bottom = descent.bottom();
    const Tensor& total = trace[bottom.node].cotangents[static_cast<std::size_t>(bottom.output)];
    if (!total.defined() || !(norm_of(total) > 0)) continue;
    Path path;
    path.shares.resize(stream.size() + 1);
    path.norms.resize(stream.size() + 1);
    for (const auto& [crossed, v] : parts) {
      path.shares[crossed] = dot_product(v, total) / dot_product(total, total);
      path.norms[crossed] = norm_of(v);
      path.sum += path.shares[crossed];
    }
    path.stream = std::move(stream);
    paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace prenorm::view
