// Random numbers: the ones that PyTorch's CPU generator gives for the same seed, bit for bit where they are integers or
// uniform, so that a ported script starts from the same weights.
//
// Engine: MT19937 (Matsumoto, Nishimura 1998). Which draws a call makes depends on the number of elements only, in
// row-major order; see random.cpp for each rule.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "autograd/tensor.h"

namespace prenorm {

class Generator {
 public:
  explicit Generator(std::uint64_t seed = 5489) { this->seed(seed); }
  void seed(std::uint64_t seed);  // its low 32 bits; drops a kept normal

  std::uint32_t next32();
  std::uint64_t next64();    // two outputs, the first one in the high half
  double uniform();          // float64 in [0, 1), 53 bits
  double standard_normal();  // one at a time, Box-Muller; keeps the second of each pair

  // Everything that decides the following draws, as int64 [kStateSize]; for checkpoints.
  static constexpr std::int64_t kWords = 624;
  static constexpr std::int64_t kStateSize = kWords + 3;
  Tensor state() const;
  // Throws on what no state() gives, and then changes nothing.
  void set_state(const Tensor& state);

 private:
  void twist();

  std::array<std::uint32_t, kWords> words_{};
  std::int64_t used_ = kWords;  // words of this round that were given out
  std::optional<double> kept_normal_;
};

// The generator that the functions below and all layers draw from. One a process; draws from several threads at once
// are not allowed.
Generator& default_generator();
void manual_seed(std::uint64_t seed);  // of the default generator

struct RandomOptions {
  DType dtype = float32;
  bool requires_grad = false;
};
Tensor uniform(const Shape& shape, double low, double high, RandomOptions options = {});  // [low, high)
Tensor normal(const Shape& shape, double mean, double std, RandomOptions options = {});
Tensor rand(const Shape& shape, RandomOptions options = {});              // uniform in [0, 1)
Tensor randn(const Shape& shape, RandomOptions options = {});             // standard normal
Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape);  // int64 in [low, high)
Tensor randperm(std::int64_t n);                                          // int64 [n], a permutation of 0 … n - 1
// Keeps each element with probability 1 - p: bool. Nothing is drawn at p = 0 or 1.
Tensor dropout_mask(const Shape& shape, double p);
// One index a row of `weights` [..., n] (not negative, not all zero), drawn in proportion: int64 [...].
Tensor multinomial(const Tensor& weights);

}  // namespace prenorm
