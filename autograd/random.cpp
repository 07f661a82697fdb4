// Which draws make which number. The rules are those of PyTorch 2 on the CPU, so that a seed gives the same numbers in
// both; where several would do (a remainder instead of a rejection, the order of a pair), the choice is PyTorch's.
//
//   engine       MT19937: words of 32 bits. "u64" is two of them, the first one in the high half.
//   uniform      float32: (u32 mod 2^24) / 2^24, float64: (u64 mod 2^53) / 2^53: as many bits as the type holds.
//   randint      low + u32 mod range below 2^28, low + u64 mod range from there on: the remainder's bias stays
//                < 2^-4 of a value's probability, two draws an element only where one would not do.
//   randperm     Fisher-Yates from the front: entry i changes places with entry i + u32 mod (n - i).
//   normal       Box-Muller, see below: of pairs from one to the next for fewer than 16 elements, else of blocks of 16.
//   dropout      keep where a float64 uniform is below 1 - p, whatever the dtype that will be masked.
//   multinomial  prenorm's own rule: one float64 uniform a row, held against the cumulative sum of its weights.
//
// All functions check before they draw: a call that throws leaves the generator as it was.

#include "autograd/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>
#include <vector>

#include "autograd/check.h"
#include "autograd/observer.h"

namespace prenorm {
namespace {

// The number of elements that decides how normals are drawn, and the size of a block.
constexpr std::int64_t kBlock = 16;

// Uniform in [0, 1).
template <class T>
T draw_unit(Generator& generator);
template <>
float draw_unit<float>(Generator& generator) {
  return static_cast<float>(generator.next32() & ((1U << 24) - 1)) * 0x1p-24F;
}
template <>
double draw_unit<double>(Generator& generator) {
  return generator.uniform();
}

// Sixteen uniforms into sixteen standard normals. If u1 and u2 are uniform in (0, 1], then sqrt(-2 log u1) is the
// length and 2 pi u2 the direction of a point of the plane whose two coordinates are normal and independent (Box,
// Muller 1958). 1 - u is in (0, 1], so that the logarithm is finite.
template <class T>
void normals_from_uniforms(T* block) {
  constexpr std::int64_t half = kBlock / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    const T radius = std::sqrt(T{-2} * std::log(T{1} - block[i]));
    const T angle = T{2} * std::numbers::pi_v<T> * block[i + half];
    block[i] = radius * std::cos(angle);
    block[i + half] = radius * std::sin(angle);
  }
}

template <class T>
void draw_normals(Generator& generator, T* out, std::int64_t count, double mean, double std) {
  if (count < kBlock) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(generator.standard_normal() * std + mean);
    return;
  }
  std::generate_n(out, count, [&] { return draw_unit<T>(generator); });
  for (std::int64_t i = 0; i + kBlock <= count; i += kBlock) normals_from_uniforms(out + i);
  if (count % kBlock != 0) {  // the last block reaches back over the end of the one before and replaces it
    std::generate_n(out + count - kBlock, kBlock, [&] { return draw_unit<T>(generator); });
    normals_from_uniforms(out + count - kBlock);
  }
  const T scale = static_cast<T>(std);
  const T shift = static_cast<T>(mean);
  for (std::int64_t i = 0; i < count; ++i) out[i] = out[i] * scale + shift;
}

}  // namespace

// --- engine ----------------------------------------------------------------------------------------------------------

void Generator::seed(std::uint64_t seed) {
  words_[0] = static_cast<std::uint32_t>(seed);
  for (std::uint32_t i = 1; i < kWords; ++i) {
    const std::uint32_t previous = words_[i - 1];
    words_[i] = 1812433253U * (previous ^ (previous >> 30)) + i;
  }
  used_ = kWords;
  kept_normal_.reset();
}

// The recurrence: word k + 624 = word k + 397 ^ (top bit of word k, low 31 bits of word k + 1) * A, over bits.
void Generator::twist() {
  constexpr std::size_t n = kWords;
  constexpr std::size_t distance = 397;
  for (std::size_t k = 0; k < n; ++k) {
    const std::uint32_t joined = (words_[k] & 0x80000000U) | (words_[(k + 1) % n] & 0x7fffffffU);
    words_[k] = words_[(k + distance) % n] ^ (joined >> 1) ^ ((joined & 1) != 0 ? 0x9908b0dfU : 0U);
  }
  used_ = 0;
}

std::uint32_t Generator::next32() {
  if (used_ == kWords) twist();
  std::uint32_t word = words_[static_cast<std::size_t>(used_++)];
  word ^= word >> 11;  // tempering: spreads the bits of a word
  word ^= (word << 7) & 0x9d2c5680U;
  word ^= (word << 15) & 0xefc60000U;
  return word ^ (word >> 18);
}

std::uint64_t Generator::next64() {
  const std::uint64_t high = next32();
  return high << 32 | next32();
}

double Generator::uniform() { return static_cast<double>(next64() & ((std::uint64_t{1} << 53) - 1)) * 0x1p-53; }

double Generator::standard_normal() {
  if (kept_normal_) return *std::exchange(kept_normal_, std::nullopt);
  const double angle = 2 * std::numbers::pi * uniform();
  const double radius = std::sqrt(-2 * std::log1p(-uniform()));
  kept_normal_ = radius * std::sin(angle);
  return radius * std::cos(angle);
}

// --- state -----------------------------------------------------------------------------------------------------------

Tensor Generator::state() const {
  Tensor state = Tensor::empty({kStateSize}, int64);
  std::int64_t* out = std::copy(words_.begin(), words_.end(), state.mutable_data<std::int64_t>());
  out[0] = used_;
  out[1] = kept_normal_.has_value() ? 1 : 0;
  out[2] = std::bit_cast<std::int64_t>(kept_normal_.value_or(0.0));
  return state;
}

void Generator::set_state(const Tensor& state) {
  check(state.defined() && state.dtype() == int64 && state.shape() == Shape{kStateSize}, "set_state: expected int64 [",
        kStateSize, "], got ", state.defined() ? name(state.dtype()) : "an undefined tensor", ' ',
        state.defined() ? state.shape() : Shape{});
  const std::vector<std::int64_t> values = state.to_vector<std::int64_t>();
  const auto words_end = values.begin() + kWords;
  const bool words_fit = std::all_of(values.begin(), words_end, [](std::int64_t word) {
    return word >= 0 && word <= std::numeric_limits<std::uint32_t>::max();
  });
  check(words_fit, "set_state: the first ", kWords, " values must be words of 32 bits");
  check(std::any_of(values.begin(), words_end, [](std::int64_t word) { return word != 0; }),
        "set_state: all words are zero, and so would be all numbers drawn from them");
  const std::int64_t used = words_end[0];
  const std::int64_t has_normal = words_end[1];
  const double normal = std::bit_cast<double>(words_end[2]);
  check(used >= 0 && used <= kWords, "set_state: ", used, " words used, expected 0 to ", kWords);
  check(has_normal == 1 ? std::isfinite(normal) : has_normal == 0 && words_end[2] == 0,
        "set_state: the kept normal must be a finite number marked with 1, or 0 marked with 0; got ", normal,
        " marked with ", has_normal);

  std::transform(values.begin(), words_end, words_.begin(),
                 [](std::int64_t word) { return static_cast<std::uint32_t>(word); });
  used_ = used;
  kept_normal_ = has_normal == 1 ? std::optional(normal) : std::nullopt;
}

Generator& default_generator() {
  static Generator generator;
  return generator;
}

void manual_seed(std::uint64_t seed) { default_generator().seed(seed); }

// --- tensors of random numbers ---

Tensor uniform(const Shape& shape, double low, double high, RandomOptions options) {
  dispatch_float("uniform", options.dtype, [&](auto t) {
    using T = decltype(t);
    check(low <= high && std::isfinite(static_cast<T>(high) - static_cast<T>(low)), "uniform: from ", low, " to ", high,
          "; expected finite bounds of ", options.dtype, ", the lower one first");
  });
  Tensor out = Tensor::empty(shape, options.dtype);
  dispatch_float("uniform", options.dtype, [&](auto t) {
    using T = decltype(t);
    const T base = static_cast<T>(low);
    const T range = static_cast<T>(high) - base;
    // One rounding, as PyTorch's kernels do on every processor of the last ten years.
    std::generate_n(out.mutable_data<T>(), out.numel(),
                    [&] { return std::fma(draw_unit<T>(default_generator()), range, base); });
  });
  return out.requires_grad_(options.requires_grad);
}

Tensor normal(const Shape& shape, double mean, double std, RandomOptions options) {
  check(std::isfinite(mean) && std::isfinite(std) && std >= 0, "normal: mean ", mean, " and std ", std,
        "; expected finite numbers, std not negative");
  check(is_float(options.dtype), "normal: expected float32 or float64, got ", options.dtype);
  Tensor out = Tensor::empty(shape, options.dtype);
  dispatch_float("normal", options.dtype, [&](auto t) {
    draw_normals(default_generator(), out.mutable_data<decltype(t)>(), out.numel(), mean, std);
  });
  return out.requires_grad_(options.requires_grad);
}

Tensor rand(const Shape& shape, RandomOptions options) { return uniform(shape, 0, 1, options); }
Tensor randn(const Shape& shape, RandomOptions options) { return normal(shape, 0, 1, options); }

Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape) {
  check(low < high, "randint: no integer is at least ", low, " and below ", high);
  Tensor out = Tensor::empty(shape, int64);
  // Without a sign, since the range from the smallest to the largest int64 overflows.
  const std::uint64_t base = static_cast<std::uint64_t>(low);
  const std::uint64_t range = static_cast<std::uint64_t>(high) - base;
  const bool one_word = range < std::uint64_t{1} << 28;
  std::generate_n(out.mutable_data<std::int64_t>(), out.numel(), [&] {
    const std::uint64_t drawn = one_word ? default_generator().next32() : default_generator().next64();
    return static_cast<std::int64_t>(base + drawn % range);
  });
  return out;
}

Tensor randperm(std::int64_t n) {
  check(n >= 0, "randperm: there are no permutations of ", n, " numbers");
  Tensor out = Tensor::empty({n}, int64);
  std::int64_t* values = out.mutable_data<std::int64_t>();
  std::iota(values, values + n, 0);
  for (std::int64_t i = 0; i + 1 < n; ++i) {
    const std::int64_t step = default_generator().next32() % (n - i);
    std::swap(values[i], values[i + step]);
  }
  return out;
}

Tensor dropout_mask(const Shape& shape, double p) {
  check(p >= 0 && p <= 1, "dropout_mask: a probability is between 0 and 1, got p = ", p);
  Tensor out = Tensor::empty(shape, boolean);
  bool* keep = out.mutable_data<bool>();
  if (p == 0 || p == 1) {
    std::fill_n(keep, out.numel(), p == 0);
  } else {
    std::generate_n(keep, out.numel(), [&] { return default_generator().uniform() < 1 - p; });
  }
  return out;
}

Tensor multinomial(const Tensor& weights) {
  check(is_float(weights.dtype()) && weights.dims() > 0 && weights.shape().back() > 0,
        "multinomial: expected float weights [..., n] with n > 0, got ", weights.dtype(), ' ', weights.shape());
  const std::int64_t n = weights.shape().back();
  const std::vector<double> values = weights.to_vector();

  std::vector<double> totals;
  for (auto row = values.begin(); row != values.end(); row += n) {
    const auto bad = std::find_if_not(row, row + n, [](double weight) { return weight >= 0; });
    check(bad == row + n, "multinomial: weights are not negative, got ", bad == row + n ? 0 : *bad, " at index ",
          bad - row, " of row ", totals.size());
    totals.push_back(std::accumulate(row, row + n, 0.0));
    check(totals.back() > 0 && std::isfinite(totals.back()), "multinomial: the weights of row ", totals.size() - 1,
          " must have a finite sum above 0, got ", totals.back());
  }

  Tensor out = Tensor::empty(Shape(weights.shape().begin(), weights.shape().end() - 1), int64);
  std::int64_t* chosen = out.mutable_data<std::int64_t>();
  for (std::size_t row = 0; row < totals.size(); ++row) {
    const double* row_values = values.data() + static_cast<std::int64_t>(row) * n;
    const double target = default_generator().uniform() * totals[row];
    // The first index whose cumulative sum exceeds the target: its weight is not zero. Among the smallest numbers there
    // are, the product may round up to the total itself; then it is the last index that has a weight.
    double sum = 0;
    for (std::int64_t i = 0; i < n && sum <= target; ++i) {
      if (row_values[i] > 0) chosen[row] = i;
      sum += row_values[i];
    }
  }
  if (Observer::any_for_unrecorded()) Observer::tell_unrecorded("multinomial", {weights}, {out});
  return out;
}

}  // namespace prenorm
