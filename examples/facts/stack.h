// The Transformer stack of the facts: small, without biases, in float64. Its 2L branches are attention and feed-forward
// in turn; the arrangement says where the norm stands around each.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "autograd/ops.h"

namespace prenorm::facts {

constexpr std::int64_t kFeatures = 64;  // d and d_ff
constexpr std::int64_t kLength = 8;     // T
constexpr std::int64_t kVocab = 32;     // V
constexpr std::uint64_t kSeeds = 6;     // 0 … 5
constexpr std::array<std::int64_t, 4> kDepths{2, 4, 8, 16};
constexpr const char* kStack =
    "float64, d = d_ff = 64, T = 8, V = 32, one causal head, ReLU, weights from N(0, 1/d), no biases, gamma 1, beta 0, "
    "standard LayerNorm with eps 1e-5, x0 from N(0, 1), random targets, mean cross-entropy, a final norm in the "
    "pre-norm "
    "stack only; seeds 0 to 5. DeepNorm: norm(alpha x + f(x)), alpha = (2L)^(1/4), value, output and feed-forward "
    "weights times (8L)^(-1/4).";

enum class Arrangement {
  pre,        // x + f(norm(x)), and a norm after the last
  post,       // norm(x + f(x))
  deep_norm,  // norm(alpha x + f(x)), alpha = (2L)^(1/4); value, output and feed-forward weights times (8L)^(-1/4)
              // (Wang et al. 2022, DeepNet: Scaling Transformers to 1,000 Layers)
};

// One block's weights, each [d, d].
struct BlockWeights {
  Tensor query, key, value, output;  // attention
  Tensor w1, w2;                     // feed-forward
};

class Stack {
 public:
  // The same seed and depth give the same draws whatever the arrangement: only a wire is moved.
  Stack(Arrangement arrangement, std::int64_t depth, std::uint64_t seed);

  std::int64_t depth() const { return static_cast<std::int64_t>(blocks_.size()); }
  const std::vector<BlockWeights>& blocks() const { return blocks_; }
  const Tensor& x0() const { return x0_; }  // [T, d]

  // What the branch (0 … 2L - 1) adds to a stream of x [T, d]; pre-norm included.
  Tensor branch(std::int64_t index, const Tensor& x) const;
  // The stream after 0, 1, … 2L branches, each [T, d].
  Tensors streams() const;
  // What the head sees: the last stream, in the pre-norm stack through the final norm.
  Tensor output(const Tensor& last_stream) const;
  Tensor loss(const Tensor& output) const;

  // The same stack with each weight W moved by share * N(0, W's variance). Draws from the default generator.
  Stack with_noise(double share) const;

 private:
  Arrangement arrangement_;
  std::vector<BlockWeights> blocks_;
  Tensor x0_, head_, targets_;
};

// What a number comes to over seeds 0 … count - 1.
struct Seeds {
  double mean = 0, geometric_mean = 0, smallest = 0, largest = 0;
};
Seeds over_seeds(const std::function<double(std::uint64_t seed)>& measure, std::uint64_t count = kSeeds);

double squared_norm(const Tensor& x);
double dot(const Tensor& a, const Tensor& b);

}  // namespace prenorm::facts
