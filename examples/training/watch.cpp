#include "training/watch.h"

#include <algorithm>
#include <cmath>

#include "autograd/observer.h"
#include "autograd/ops.h"
#include "optim/clip.h"

namespace prenorm::training {
namespace {

constexpr std::int64_t kMostColumns = 200, kMostTokens = 32;

// "blocks.3" of "blocks.3.attn.qkv.weight", "tok" of "tok.weight".
std::string group_of(const std::string& path) {
  const std::size_t dot = path.find('.');
  return path.rfind("blocks.", 0) == 0 ? path.substr(0, path.find('.', dot + 1)) : path.substr(0, dot);
}

// Keeps the packed q, k and v of every causal attention.
class AttentionInputs final : public Observer {
 public:
  struct Seen {
    std::string scope;
    Tensor qkv;
  };
  std::vector<Seen> seen;

 private:
  void node_made(const std::shared_ptr<const Node>& node, const Tensors& inputs, const Tensors&) override {
    if (node->info().name == "causal_attention_packed") seen.push_back({node->scope(), inputs[0].detach()});
  }
};

// Weights [H, T, T] from packed qkv [1, T, 3 * H * D].
Tensor weights(const Tensor& qkv, std::int64_t H) {
  const NoGrad no_grad;
  const std::int64_t T = qkv.size(1), C = qkv.size(2) / 3;
  const auto heads = [&](std::int64_t part) {
    return transpose(reshape(slice(qkv, 2, part * C, (part + 1) * C), {T, H, C / H}), 0, 1);
  };
  return scaled_dot_product_attention(heads(0), heads(1), heads(2), {}, {.causal = true}).weights;
}

double spread_of(const Tensor& x) {
  const std::vector<double> values = to(x.detach(), float64).to_vector<double>();
  double mean = 0, squares = 0;
  for (double v : values) mean += v / static_cast<double>(values.size());
  for (double v : values) squares += (v - mean) * (v - mean) / static_cast<double>(values.size());
  return std::sqrt(squares);
}

}  // namespace

Watch::Watch(const nn::TinyLM& model, Tensor ids, std::int64_t first, std::int64_t last)
    : model_(model),
      ids_(std::move(ids)),
      first_(first),
      every_(std::max<std::int64_t>((last - first) / kMostColumns + 1, 1)),
      loss_{"loss", {}, {}},
      grad_norm_{"gradient norm", {}, {}} {
  for (const NamedTensor& parameter : model_.parameters()) {
    const std::string group = group_of(parameter.path);
    const auto found = std::find(groups_.begin(), groups_.end(), group);
    if (found == groups_.end()) {
      groups_.push_back(group);
      members_.push_back({parameter});
    } else {
      members_[static_cast<std::size_t>(found - groups_.begin())].push_back(parameter);
    }
  }
  norms_.resize(groups_.size());
  spread_before_ = spread("before");
}

void Watch::gradients(std::int64_t step) {
  if ((step - first_) % every_ != 0) return;
  looked_at_.push_back(step);
  for (std::size_t g = 0; g < groups_.size(); ++g) norms_[g].push_back(optim::grad_norm(members_[g]));
}

void Watch::after_step(const StepReport& report) {
  for (auto [series, value] : {std::pair(&loss_, report.loss), std::pair(&grad_norm_, report.grad_norm)}) {
    series->x.push_back(static_cast<double>(report.step));
    series->y.push_back(value);
  }
}

Series Watch::spread(const std::string& name) const {
  const NoGrad no_grad;
  Series series{name, {}, {}};
  Tensor x = model_.embed(ids_);
  for (std::int64_t depth = 0;; ++depth) {
    series.x.push_back(static_cast<double>(depth));
    series.y.push_back(spread_of(x));
    if (depth == model_.options().n_layers) return series;
    x = model_.blocks(depth)(x);
  }
}

std::vector<std::pair<std::string, Grid>> Watch::attention_maps(std::size_t most) const {
  AttentionInputs inputs;
  const SetGrad grad_mode(true);  // without it there are no nodes to be told of
  model_(slice(slice(ids_, 0, 0, 1), 1, 0, std::min(ids_.size(1), kMostTokens)));
  const std::int64_t H = model_.options().n_heads;
  std::vector<std::pair<std::string, Grid>> maps;
  // The first and the last block, then those between.
  std::vector<AttentionInputs::Seen>& blocks = inputs.seen;
  if (blocks.size() > 2) std::swap(blocks[1], blocks.back());
  for (const AttentionInputs::Seen& block : blocks) {
    const Tensor p = weights(block.qkv, H);
    const std::vector<double> values = to(p, float64).to_vector<double>();
    const auto T = static_cast<std::size_t>(p.size(1));
    for (std::size_t h = 0; h < static_cast<std::size_t>(H) && maps.size() < most; ++h) {
      Grid grid;
      for (std::size_t t = 0; t < T; ++t) grid.rows.push_back(std::to_string(t));
      grid.columns = grid.rows;
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(h * T * T);
      grid.values.assign(begin, begin + static_cast<std::ptrdiff_t>(T * T));
      maps.emplace_back(block.scope + ", head " + std::to_string(h), std::move(grid));
    }
  }
  return maps;
}

void show(const Watch& watch, std::size_t most_maps, Report& report) {
  report.lines("Loss and norm of the whole gradient", "step", {watch.loss(), watch.grad_norm()}, true);
  report.heat_map("Norm of the gradient, by layer", "step", watch.gradient_norms(), true);
  report.lines("Spread of the stream, by depth: standard deviation after so many blocks", "blocks",
               {watch.spread_before(), watch.spread("now")}, false);
  report.square_maps("Attention", watch.attention_maps(most_maps));
}

Grid Watch::gradient_norms() const {
  Grid grid{groups_, {}, {}};
  for (std::int64_t step : looked_at_) grid.columns.push_back(std::to_string(step));
  for (const std::vector<double>& row : norms_) grid.values.insert(grid.values.end(), row.begin(), row.end());
  return grid;
}

}  // namespace prenorm::training
