#include "autograd/random.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "autograd/check.h"
#include "autograd/ops.h"

namespace prenorm {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// The generator's state without the kept normal: equal ones give the same words from here on.
std::vector<std::int64_t> position(const Generator& generator) {
  std::vector<std::int64_t> state = generator.state().to_vector<std::int64_t>();
  state.resize(Generator::kWords + 1);
  return state;
}

// Whether `draw` takes this many words from the default generator.
bool takes_words(int words, const std::function<void()>& draw) {
  manual_seed(7);
  draw();
  Generator counted(7);
  for (int i = 0; i < words; ++i) counted.next32();
  return position(default_generator()) == position(counted);
}

bool throws_and_draws_nothing(const std::function<void()>& call) {
  const std::vector<std::int64_t> before = default_generator().state().to_vector<std::int64_t>();
  try {
    call();
  } catch (const Error&) {
    return default_generator().state().to_vector<std::int64_t>() == before;
  }
  return false;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double std_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

TEST_CASE("the engine is the standard library's mt19937") {
  for (std::uint32_t seed : {0U, 1U, 5489U, 4294967295U}) {
    Generator ours(seed);
    std::mt19937 theirs(seed);
    for (int i = 0; i < 2000; ++i) REQUIRE(ours.next32() == theirs());
  }
  CHECK(Generator().next32() == std::mt19937()());
}

TEST_CASE("only the low 32 bits of a seed count") {
  CHECK(Generator((std::uint64_t{9} << 32) + 5).next32() == Generator(5).next32());
}

TEST_CASE("64 bits are two words, the first one high") {
  Generator words(3);
  const std::uint64_t high = words.next32();
  const std::uint64_t low = words.next32();
  CHECK(Generator(3).next64() == (high << 32 | low));
}

TEST_CASE("seeding again starts again and drops a kept normal") {
  manual_seed(4);
  const double first = randn({1}).item();
  const double second = randn({1}).item();  // the kept one
  CHECK(first != second);
  manual_seed(4);
  CHECK(randn({1}).item() == first);
  manual_seed(4);
  CHECK(randn({1}).item() == first);
}

TEST_CASE("the first numbers of seed 0 are the well-known ones") {
  manual_seed(0);
  CHECK(rand({1}).item() == doctest::Approx(0.4963).epsilon(1e-4));
  manual_seed(0);
  CHECK(randn({3}).to_vector()[2] == doctest::Approx(-2.1788).epsilon(1e-4));
}

TEST_CASE("uniforms lie in [0, 1) and fill the bits of their dtype") {
  manual_seed(1);
  for (double value : rand({10000}).to_vector()) {
    REQUIRE(value >= 0);
    REQUIRE(value < 1);
    REQUIRE(value * 0x1p24 == std::floor(value * 0x1p24));
  }
  const std::vector<double> wide = rand({10000}, {.dtype = float64}).to_vector();
  CHECK(mean_of(wide) == doctest::Approx(0.5).epsilon(0.02));
  CHECK(*std::max_element(wide.begin(), wide.end()) < 1);
  CHECK(std::any_of(wide.begin(), wide.end(), [](double v) { return v * 0x1p24 != std::floor(v * 0x1p24); }));
}

TEST_CASE("bounds are multiplied and added with one rounding") {
  manual_seed(2);
  const std::vector<float> values = uniform({10000}, -0.3, 0.8).to_vector<float>();
  const float low = -0.3F;
  const float range = 0.8F - low;
  Generator words(2);
  int rounded_twice = 0;
  for (float value : values) {
    const float unit = static_cast<float>(words.next32() % (1U << 24)) / 0x1p24F;
    REQUIRE(value == std::fma(unit, range, low));
    volatile float product = unit * range;
    if (value != product + low) ++rounded_twice;
  }
  CHECK(rounded_twice > 0);
}

TEST_CASE("uniform takes equal bounds, as for a layer without inputs") {
  for (double value : uniform({20}, -0.0, 0.0).to_vector()) CHECK(value == 0);
}

TEST_CASE("how many words a call takes depends on the number of elements") {
  for (DType dtype : {float32, float64}) {
    CAPTURE(dtype);
    const int words = dtype == float32 ? 1 : 2;
    for (int n : {0, 1, 15, 16, 17}) CHECK(takes_words(words * n, [&] { rand({n}, {.dtype = dtype}); }));
    // Below 16 in pairs of float64 uniforms, whatever the dtype; from 16 on in blocks.
    CHECK(takes_words(0, [&] { randn({0}, {.dtype = dtype}); }));
    CHECK(takes_words(4, [&] { randn({1}, {.dtype = dtype}); }));
    CHECK(takes_words(8 * 4, [&] { randn({15}, {.dtype = dtype}); }));
    CHECK(takes_words(words * 16, [&] { randn({16}, {.dtype = dtype}); }));
    CHECK(takes_words(words * (17 + 16), [&] { randn({17}, {.dtype = dtype}); }));
    CHECK(takes_words(words * 32, [&] { randn({2, 16}, {.dtype = dtype}); }));
  }
}

TEST_CASE("normals are the same in any shape of as many elements") {
  for (int n : {6, 24}) {
    manual_seed(5);
    const std::vector<double> flat = randn({n}).to_vector();
    manual_seed(5);
    CHECK(randn({2, n / 2}).to_vector() == flat);
    manual_seed(5);
    CHECK(randn({1, n, 1}).to_vector() == flat);
  }
}

TEST_CASE("17 normals: one of the first block, then a block of its own") {
  manual_seed(6);
  const std::vector<double> sixteen = randn({16}).to_vector();
  rand({1});
  const std::vector<double> next_sixteen = randn({16}).to_vector();
  manual_seed(6);
  const std::vector<double> seventeen = randn({17}).to_vector();
  CHECK(seventeen[0] == sixteen[0]);
  CHECK(std::vector<double>(seventeen.begin() + 1, seventeen.end()) == next_sixteen);
}

TEST_CASE("a block's normals are the coordinates of points given by length and direction") {
  manual_seed(6);
  const std::vector<double> u = rand({16}, {.dtype = float64}).to_vector();
  manual_seed(6);
  const std::vector<double> normals = randn({16}, {.dtype = float64}).to_vector();
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(std::hypot(normals[i], normals[i + 8]) == doctest::Approx(std::sqrt(-2 * std::log(1 - u[i]))));
    CHECK(std::tan(2 * std::acos(-1.0) * u[i + 8]) == doctest::Approx(normals[i + 8] / normals[i]));
  }
}

TEST_CASE("a kept normal waits through calls that do not take it, for any dtype, mean and std") {
  manual_seed(8);
  const std::vector<double> pair = randn({2}, {.dtype = float64}).to_vector();
  manual_seed(8);
  CHECK(randn({1}, {.dtype = float64}).item() == pair[0]);
  randn({16});
  rand({3});
  randn({0});
  CHECK(normal({1}, 10, 2).item<float>() == static_cast<float>(pair[1] * 2 + 10));
}

TEST_CASE("normals have their mean and std") {
  manual_seed(9);
  for (DType dtype : {float32, float64}) {
    const std::vector<double> values = normal({100000}, 3, 0.5, {.dtype = dtype}).to_vector();
    CHECK(mean_of(values) == doctest::Approx(3).epsilon(0.005));
    CHECK(std_of(values) == doctest::Approx(0.5).epsilon(0.02));
  }
  std::vector<double> one_by_one(10000);
  for (double& value : one_by_one) value = default_generator().standard_normal();
  CHECK(std::abs(mean_of(one_by_one)) < 0.05);
  CHECK(std_of(one_by_one) == doctest::Approx(1).epsilon(0.05));
  for (double value : normal({20}, 1.5, 0).to_vector()) CHECK(value == 1.5);
}

TEST_CASE("normals stay finite for every word the engine may give") {
  // 1 - u is at least 2^-24 or 2^-53; the largest radius follows from it.
  manual_seed(10);
  for (double value : randn({1 << 20}).to_vector()) REQUIRE(std::abs(value) <= std::sqrt(48 * std::log(2.0)) + 1e-5);
}

TEST_CASE("randint") {
  manual_seed(11);
  std::vector<int> counts(6);
  for (std::int64_t value : randint(-2, 4, {10, 600}).to_vector<std::int64_t>()) {
    REQUIRE(value >= -2);
    REQUIRE(value < 4);
    ++counts[static_cast<std::size_t>(value + 2)];
  }
  for (int count : counts) CHECK(count == doctest::Approx(1000).epsilon(0.15));
  for (std::int64_t value : randint(5, 6, {10}).to_vector<std::int64_t>()) CHECK(value == 5);
  CHECK(randint(0, 9, {0}).numel() == 0);
  CHECK(randint(0, 9, {}).shape() == Shape{});

  CHECK(takes_words(3, [] { randint(0, (1 << 28) - 1, {3}); }));
  CHECK(takes_words(6, [] { randint(0, 1 << 28, {3}); }));
}

TEST_CASE("randint over all of int64 overflows nowhere") {
  constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();
  manual_seed(12);
  const std::vector<std::int64_t> values = randint(lowest, highest, {1000}).to_vector<std::int64_t>();
  CHECK(*std::min_element(values.begin(), values.end()) < lowest / 2);
  CHECK(*std::max_element(values.begin(), values.end()) > highest / 2);
}

TEST_CASE("randperm") {
  for (int n : {0, 1, 2, 15, 16, 17, 1000}) {
    manual_seed(13);
    std::vector<std::int64_t> values = randperm(n).to_vector<std::int64_t>();
    std::vector<std::int64_t> expected(static_cast<std::size_t>(n));
    std::iota(expected.begin(), expected.end(), 0);
    if (n == 1000) CHECK(values != expected);
    std::sort(values.begin(), values.end());
    CHECK(values == expected);
    CHECK(takes_words(std::max(n - 1, 0), [&] { randperm(n); }));
  }
}

TEST_CASE("dropout_mask") {
  manual_seed(14);
  CHECK(mean_of(dropout_mask({100, 1000}, 0.1).to_vector()) == doctest::Approx(0.9).epsilon(0.01));
  manual_seed(15);
  const std::vector<double> kept = dropout_mask({17}, 0.5).to_vector();
  manual_seed(15);
  const std::vector<double> units = rand({17}, {.dtype = float64}).to_vector();
  for (std::size_t i = 0; i < kept.size(); ++i) CHECK(kept[i] == (units[i] < 0.5 ? 1 : 0));

  CHECK(takes_words(0, [] { CHECK(mean_of(dropout_mask({20}, 0).to_vector()) == 1); }));
  CHECK(takes_words(0, [] { CHECK(mean_of(dropout_mask({20}, 1).to_vector()) == 0); }));
  CHECK(dropout_mask({0, 3}, 0.5).shape() == Shape{0, 3});
}

TEST_CASE("multinomial draws in proportion, and never what has no weight") {
  manual_seed(16);
  const Tensor rows = expand(Tensor::of({0, 1, 0, 3, 0}), {4000, 5});
  std::vector<int> counts(5);
  for (std::int64_t index : multinomial(rows).to_vector<std::int64_t>()) ++counts[static_cast<std::size_t>(index)];
  CHECK(counts[0] + counts[2] + counts[4] == 0);
  CHECK(counts[1] == doctest::Approx(1000).epsilon(0.1));
  CHECK(counts[3] == doctest::Approx(3000).epsilon(0.1));

  CHECK(multinomial(Tensor::of({2.5})).shape() == Shape{});
  CHECK(multinomial(Tensor::of({2.5})).item<std::int64_t>() == 0);
  CHECK(multinomial(zeros({0, 3})).shape() == Shape{0});
  CHECK(multinomial(ones({2, 3, 4}, float64)).shape() == Shape{2, 3});
  CHECK(takes_words(2 * 6, [] { multinomial(ones({2, 3, 4})); }));
}

TEST_CASE("multinomial passes over leading zeros even where the uniform is exactly 0") {
  std::vector<std::int64_t> state(Generator::kStateSize);
  state[2] = 1;  // the words before it, 0 and 0, come out as 0 and 0
  default_generator().set_state(Tensor::of(state, {Generator::kStateSize}, {.dtype = int64}));
  CHECK(rand({1}).item() == 0);
  default_generator().set_state(Tensor::of(state, {Generator::kStateSize}, {.dtype = int64}));
  CHECK(multinomial(Tensor::of({0, 0, 2, 1})).item<std::int64_t>() == 2);
}

TEST_CASE("multinomial stays before trailing zeros even where rounding reaches the sum of the weights") {
  manual_seed(21);
  const double least = std::numeric_limits<double>::denorm_min();  // 0.6 * least rounds to least
  const Tensor rows = expand(Tensor::of({0, least, 0}, {3}, {.dtype = float64}), {100, 3});
  for (std::int64_t index : multinomial(rows).to_vector<std::int64_t>()) CHECK(index == 1);
}

TEST_CASE("requires_grad is handed on") {
  CHECK(rand({2}, {.requires_grad = true}).requires_grad());
  CHECK(normal({2}, 0, 1, {.dtype = float64, .requires_grad = true}).requires_grad());
  CHECK_FALSE(randn({2}).requires_grad());
}

TEST_CASE("a saved state goes on where it was saved, with and without a kept normal") {
  for (int normals : {0, 1, 2}) {
    CAPTURE(normals);
    manual_seed(17);
    rand({1000});
    randn({normals});
    const Tensor state = default_generator().state();
    const auto draw = [] {
      std::vector<double> drawn = randn({3}, {.dtype = float64}).to_vector();
      for (const Tensor& more : {rand({700}), randn({17}), randint(0, 100, {5})}) {
        for (double value : more.to_vector()) drawn.push_back(value);
      }
      return drawn;
    };
    const std::vector<double> expected = draw();
    CHECK(draw() != expected);
    default_generator().set_state(state);
    CHECK(default_generator().state().to_vector() == state.to_vector());
    CHECK(draw() == expected);
  }
}

TEST_CASE("a state can be taken before the first draw and after the last word of a round") {
  for (int draws : {0, 623, 624, 625}) {
    Generator generator(18);
    for (int i = 0; i < draws; ++i) generator.next32();
    Generator restored;
    restored.set_state(generator.state());
    for (int i = 0; i < 1000; ++i) REQUIRE(restored.next32() == generator.next32());
  }
}

TEST_CASE("a state that no generator can be in is refused") {
  manual_seed(19);
  randn({1});
  const std::vector<std::int64_t> good = default_generator().state().to_vector<std::int64_t>();
  const auto refuses = [](const Tensor& state) {
    return throws_and_draws_nothing([&] { default_generator().set_state(state); });
  };
  const auto refuses_with = [&](std::size_t index, std::int64_t value) {
    std::vector<std::int64_t> bad = good;
    bad[index] = value;
    return refuses(Tensor::of(bad, {Generator::kStateSize}, {.dtype = int64}));
  };
  CHECK(refuses(Tensor()));
  CHECK(refuses(zeros({Generator::kStateSize - 1}, int64)));
  CHECK(refuses(zeros({1, Generator::kStateSize}, int64)));
  CHECK(refuses(zeros({Generator::kStateSize}, float64)));
  CHECK(refuses(zeros({Generator::kStateSize}, int64)));
  CHECK(refuses_with(0, -1));
  CHECK(refuses_with(623, std::int64_t{1} << 32));
  CHECK(refuses_with(624, -1));
  CHECK(refuses_with(624, 625));
  CHECK(refuses_with(625, 0));  // a kept normal that is not marked
  CHECK(refuses_with(625, 2));
  CHECK(refuses_with(626, std::bit_cast<std::int64_t>(kNan)));
  CHECK(refuses_with(626, std::bit_cast<std::int64_t>(kInf)));
  CHECK_FALSE(refuses_with(624, 624));
}

TEST_CASE("bad input throws and draws nothing") {
  manual_seed(20);
  for (const std::function<void()>& call : std::vector<std::function<void()>>{
           [] {
             rand({2, -1});
           },
           [] {
             rand({std::int64_t{1} << 40, std::int64_t{1} << 40});
           },
           [] { rand({2}, {.dtype = int64}); },
           [] { uniform({2}, 1, 0); },
           [] { uniform({2}, kNan, 1); },
           [] { uniform({2}, 0, kInf); },
           [] { uniform({2}, 0, 1e300); },                           // not a float32
           [] { uniform({2}, -1e308, 1e308, {.dtype = float64}); },  // the range is not a float64
           [] { randn({-3}); },
           [] { randn({2}, {.dtype = boolean}); },
           [] { normal({2}, 0, -1); },
           [] { normal({2}, 0, kNan); },
           [] { normal({2}, kInf, 1); },
           [] { randint(3, 3, {2}); },
           [] { randint(4, 3, {2}); },
           [] { randint(0, 3, {-2}); },
           [] { randperm(-1); },
           [] { dropout_mask({2}, -0.1); },
           [] { dropout_mask({2}, 1.1); },
           [] { dropout_mask({2}, kNan); },
           [] { dropout_mask({-2}, 0.5); },
           [] { multinomial(Tensor::scalar(1)); },
           [] {
             multinomial(ones({3, 0}));
           },
           [] { multinomial(ones({3}, int64)); },
           [] {
             multinomial(Tensor::of({1, 1, 0, 0}, {2, 2}));
           },  // the second row, after a good one
           [] {
             multinomial(Tensor::of({1, -1, 3}));
           },
           [] {
             multinomial(Tensor::of({1, kNan}));
           },
           [] {
             multinomial(Tensor::of({1, kInf}));
           },
       }) {
    CHECK(throws_and_draws_nothing(call));
  }
}

}  // namespace
}  // namespace prenorm
