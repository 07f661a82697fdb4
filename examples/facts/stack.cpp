#include "facts/stack.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/random.h"

namespace prenorm::facts {
namespace {

Tensor weight(std::int64_t rows, double scale = 1) {
  const double std = scale / std::sqrt(static_cast<double>(kFeatures));
  return normal({rows, kFeatures}, 0, std, {.dtype = float64, .requires_grad = true});
}

double fourth_root(double value) { return std::sqrt(std::sqrt(value)); }

}  // namespace

Stack::Stack(Arrangement arrangement, std::int64_t depth, std::uint64_t seed) : arrangement_(arrangement) {
  manual_seed(seed);
  const double small = arrangement == Arrangement::deep_norm ? 1 / fourth_root(8 * static_cast<double>(depth)) : 1;
  for (std::int64_t l = 0; l < depth; ++l) {
    BlockWeights block;
    block.query = weight(kFeatures);
    block.key = weight(kFeatures);
    block.value = weight(kFeatures, small);
    block.output = weight(kFeatures, small);
    block.w1 = weight(kFeatures, small);
    block.w2 = weight(kFeatures, small);
    blocks_.push_back(block);
  }
  x0_ = randn({kLength, kFeatures}, {.dtype = float64});
  head_ = weight(kVocab);
  targets_ = randint(0, kVocab, {kLength});
}

Tensor Stack::branch(std::int64_t index, const Tensor& x) const {
  const BlockWeights& w = blocks_[static_cast<std::size_t>(index / 2)];
  const Tensor h = arrangement_ == Arrangement::pre ? layer_norm(x) : x;
  if (index % 2 == 1) return linear(relu(linear(h, w.w1)), w.w2);
  const Tensor attended = scaled_dot_product_attention(linear(h, w.query), linear(h, w.key), linear(h, w.value),
                                                       /*mask=*/{}, {.causal = true})
                              .y;
  return linear(attended, w.output);
}

Tensors Stack::streams() const {
  const double alpha = fourth_root(2 * static_cast<double>(depth()));
  Tensors x{x0_};
  for (std::int64_t b = 0; b < 2 * depth(); ++b) {
    const Tensor added = branch(b, x.back());
    switch (arrangement_) {
      case Arrangement::pre:
        x.push_back(residual_add(x.back(), added));
        break;
      case Arrangement::post:
        x.push_back(layer_norm(residual_add(x.back(), added)));
        break;
      case Arrangement::deep_norm:
        x.push_back(layer_norm(residual_add(alpha * x.back(), added)));
        break;
    }
  }
  return x;
}

Tensor Stack::output(const Tensor& last_stream) const {
  return arrangement_ == Arrangement::pre ? layer_norm(last_stream) : last_stream;
}

Tensor Stack::loss(const Tensor& output) const { return cross_entropy(linear(output, head_), targets_); }

Stack Stack::with_noise(double share) const {
  Stack moved = *this;
  const auto move = [share](Tensor& weight) {
    const double std = share * std::sqrt(squared_norm(weight) / static_cast<double>(weight.numel()));
    weight = weight.detach() + normal(weight.shape(), 0, std, {.dtype = float64});
  };
  for (BlockWeights& block : moved.blocks_) {
    for (Tensor* weight : {&block.query, &block.key, &block.value, &block.output, &block.w1, &block.w2}) move(*weight);
  }
  move(moved.head_);
  return moved;
}

Seeds over_seeds(const std::function<double(std::uint64_t seed)>& measure, std::uint64_t count) {
  Seeds result{.smallest = std::numeric_limits<double>::infinity(), .largest = -result.smallest};
  double sum = 0, sum_of_logs = 0;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    const double value = measure(seed);
    sum += value;
    sum_of_logs += std::log(value);
    result.smallest = std::min(result.smallest, value);
    result.largest = std::max(result.largest, value);
  }
  result.mean = sum / static_cast<double>(count);
  result.geometric_mean = std::exp(sum_of_logs / static_cast<double>(count));
  return result;
}

double squared_norm(const Tensor& x) { return dot(x, x); }
double dot(const Tensor& a, const Tensor& b) { return sum(a.detach() * b.detach()).item(); }

}  // namespace prenorm::facts
