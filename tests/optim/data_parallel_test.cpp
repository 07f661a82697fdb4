// Ranks and DataParallel, run by mpirun with 2 and with 4 ranks. Each rank runs all cases; one that fails ends the job.
#define DOCTEST_CONFIG_IMPLEMENT
#include "optim/data_parallel.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "autograd/ops.h"
#include "nn/tiny_lm.h"
#include "optim/adam.h"
#include "optim/clip.h"

using namespace prenorm;

namespace {

optim::Ranks* ranks = nullptr;

Tensor leaf(std::initializer_list<double> values, DType dtype = float32) {
  return Tensor::of(values, {.dtype = dtype, .requires_grad = true});
}

// All ranks have the same values, bit for bit.
void expect_same_values(const Tensor& tensor) {
  std::ostringstream text;
  text << std::hexfloat;
  for (double value : tensor.to_vector<double>()) text << value << '\n';
  CHECK_NOTHROW(ranks->expect_same("values", text.str()));
}

// A batch of 8 rows that all ranks draw alike, and this rank's rows of it.
struct Rows {
  Tensor ids, targets;
};
constexpr std::int64_t kRows = 8, kLength = 6, kVocab = 11;
Rows batch() {
  const Tensor tokens = randint(0, kVocab, {kRows, kLength + 1});
  return {slice(tokens, 1, 0, kLength), slice(tokens, 1, 1, kLength + 1)};
}
Rows rows(const Rows& whole, std::int64_t begin, std::int64_t end) {
  return {slice(whole.ids, 0, begin, end), slice(whole.targets, 0, begin, end)};
}
nn::TinyLM small_model() {
  manual_seed(3);
  return nn::TinyLM(kVocab, {.d_model = 8, .n_heads = 2, .n_layers = 2});
}

// The losses of 50 steps of Adam with clipping. The rows end where `cuts` says; without cuts, of one process.
std::vector<double> losses(const std::vector<std::int64_t>& cuts, std::int64_t bucket_bytes = 1000) {
  const nn::TinyLM model = small_model();
  optim::Adam adam(model.parameters(), {.lr = 1e-2});
  std::optional<optim::DataParallel> parallel;
  std::int64_t begin = 0, end = kRows;
  if (!cuts.empty()) {
    begin = ranks->rank() == 0 ? 0 : cuts[static_cast<std::size_t>(ranks->rank() - 1)];
    end = cuts[static_cast<std::size_t>(ranks->rank())];
    parallel.emplace(*ranks, adam.parameters(), optim::DataParallelOptions{.bucket_bytes = bucket_bytes});
    parallel->set_share(static_cast<double>(end - begin) / kRows);
  }
  std::vector<double> all;
  for (int step = 0; step < 50; ++step) {
    const Rows mine = rows(batch(), begin, end);
    adam.zero_grad();
    double loss = 0;
    if (end > begin) {
      const Tensor mean = cross_entropy(model(mine.ids), mine.targets);
      mean.backward();
      loss = mean.item() * static_cast<double>(end - begin) / kRows;
    }
    if (parallel) {
      parallel->finish();
      ranks->sum({&loss, 1});
    }
    optim::clip_grad_norm_(adam.parameters(), 0.5);
    adam.step();
    all.push_back(loss);
  }
  if (parallel) CHECK_NOTHROW(parallel->expect_equal());
  return all;
}

std::vector<std::int64_t> even_cuts() {
  std::vector<std::int64_t> cuts;
  for (int r = 1; r <= ranks->size(); ++r) cuts.push_back(kRows * r / ranks->size());
  return cuts;
}

}  // namespace

TEST_CASE("rank 0's bytes and values reach all") {
  std::string bytes = ranks->rank() == 0 ? std::string("some\0bytes", 10) : "others, and more of them";
  ranks->broadcast(bytes);
  CHECK(bytes == std::string("some\0bytes", 10));
  const Tensor values = full({3}, ranks->rank()), counts = full({2}, ranks->rank() + 5, int64);
  ranks->broadcast({{"values", values}, {"counts", counts}});
  CHECK(values.to_vector() == std::vector<double>{0, 0, 0});
  CHECK(counts.to_vector<std::int64_t>() == std::vector<std::int64_t>{5, 5});
  std::array<double, 2> sums{1, static_cast<double>(ranks->rank())};
  ranks->sum(sums);
  CHECK(sums[0] == ranks->size());
  CHECK(sums[1] == ranks->size() * (ranks->size() - 1) / 2);
  CHECK(ranks->processors() >= 1);
}

TEST_CASE("ranks that differ are told which and where") {
  const std::string last = std::to_string(ranks->size() - 1);
  const std::string text = ranks->rank() == ranks->size() - 1 ? "a\nc\n" : "a\nb\n";
  CHECK_THROWS_WITH_AS(ranks->expect_same("options", text),
                       ("rank " + last + " has other options than rank 0: 'c', there 'b'").c_str(), optim::CommonError);
  const Tensor tensor = zeros({ranks->rank() == 0 ? 2 : 3});
  CHECK_THROWS_WITH_AS(ranks->broadcast({{"w", tensor}}),
                       "rank 1 has other tensors than rank 0: 'w [3] float32', there 'w [2] float32'",
                       optim::CommonError);
  CHECK_THROWS_AS(optim::DataParallel(*ranks, {{"w", zeros({ranks->rank() == 0 ? 2 : 3})}}), optim::CommonError);
}

TEST_CASE("parameters begin as rank 0's, gradients become the mean") {
  const Tensor w = leaf({1.0 + ranks->rank(), 2}), v = leaf({3.0 * ranks->rank()}, float64), frozen = zeros({2});
  frozen.mutable_data<float>()[0] = static_cast<float>(ranks->rank());
  optim::DataParallel parallel(*ranks, {{"w", w}, {"v", v}, {"frozen", frozen}});
  CHECK(w.to_vector() == std::vector<double>{1, 2});
  CHECK(v.to_vector() == std::vector<double>{0});
  CHECK(frozen.to_vector() == std::vector<double>{0, 0});

  for (int step = 0; step < 3; ++step) {
    w.set_grad({});
    v.set_grad({});
    const double mine = step + ranks->rank();
    (sum(w) * mine + sum(to(v, float32)) * (10 * mine)).backward();
    parallel.finish();
    const double mean = step + (ranks->size() - 1) / 2.0;
    CHECK(w.grad().to_vector() == std::vector<double>{mean, mean});
    CHECK(v.grad().to_vector() == std::vector<double>{10 * mean});
  }
  CHECK(parallel.statistics().buckets == 6);  // a bucket has one dtype
}

TEST_CASE("all-reduce begins while backward runs, in reverse order, in buckets of the size asked for") {
  const Tensor a = leaf({1, 1}), b = leaf({2, 2}), c = leaf({3, 3});
  // 8 bytes each: c and b make a bucket, a the last one.
  optim::DataParallel parallel(*ranks, {{"a", a}, {"b", b}, {"c", c}}, {.bucket_bytes = 16});
  std::vector<std::int64_t> begun;  // when each gradient had become final
  std::vector<std::function<void()>> watches;
  for (const Tensor& tensor : {a, b, c}) {
    watches.push_back(tensor.register_post_accumulate_hook(
        [&](const Tensor&) { begun.push_back(parallel.statistics().begun_early); }));
  }
  Tensor x = a * 1.0;
  x = x * b;
  x = x * c;
  sum(x).backward();  // c, b, a
  CHECK(begun == std::vector<std::int64_t>{0, 1, 2});
  CHECK(parallel.statistics().buckets == 2);
  parallel.finish();
  CHECK(a.grad().to_vector() == std::vector<double>{6, 6});
  CHECK(c.grad().to_vector() == std::vector<double>{2, 2});
  for (const auto& stop : watches) stop();
}

TEST_CASE("a gradient that some ranks lack counts as zeros; one that all lack stays absent") {
  const Tensor some = leaf({1, 1}), none = leaf({1, 1}), all = leaf({1, 1});
  // Each in a bucket of its own: rank 0 begins them in the order in which the others can, too.
  optim::DataParallel parallel(*ranks, {{"all", all}, {"none", none}, {"some", some}}, {.bucket_bytes = 1});
  for (int step = 0; step < 2; ++step) {
    for (const Tensor& tensor : {some, none, all}) tensor.set_grad({});
    Tensor loss = sum(all);
    if (ranks->rank() == 1) loss = loss + sum(some) * 4.0;
    loss.backward();
    parallel.finish();
    CHECK(all.grad().to_vector() == std::vector<double>{1, 1});
    CHECK_FALSE(none.grad().defined());
    CHECK(some.grad().to_vector() == std::vector<double>(2, 4.0 / ranks->size()));
  }
  // Without any backward at all.
  for (const Tensor& tensor : {some, none, all}) tensor.set_grad({});
  parallel.finish();
  for (const Tensor& tensor : {some, none, all}) CHECK_FALSE(tensor.grad().defined());
}

TEST_CASE("several backwards for one average") {
  const Tensor w = leaf({1, 1});
  optim::DataParallel parallel(*ranks, {{"w", w}});
  parallel.pause();
  sum(w * (1.0 + ranks->rank())).backward();
  parallel.resume();
  CHECK(parallel.statistics().buckets == 0);
  sum(w * 2.0).backward();
  CHECK(parallel.statistics().buckets == 1);
  // What would not be part of the average any more is an error.
  CHECK_THROWS_WITH_AS(sum(w).backward(),
                       "DataParallel: the gradient of 'w' has changed after its averaging began; finish() each "
                       "backward, or pause() for all but the last",
                       Error);
  parallel.pause();
  CHECK_THROWS_AS(sum(w).backward(), Error);
  parallel.resume();
  CHECK_THROWS_AS(parallel.set_share(0.5), Error);
  parallel.finish();
  const double mean = 3 + (ranks->size() - 1) / 2.0;
  CHECK(w.grad().to_vector() == std::vector<double>{mean, mean});
}

TEST_CASE("shares that do not add up to 1, and weights that part") {
  const Tensor w = leaf({1, 1});
  optim::DataParallel parallel(*ranks, {{"w", w}});
  parallel.set_share(0.1);
  sum(w).backward();
  CHECK_THROWS_WITH_AS(
      parallel.finish(),
      ("DataParallel: the shares of the ranks add up to 0." + std::to_string(ranks->size()) + ", expected 1").c_str(),
      optim::CommonError);
  CHECK_THROWS_AS(parallel.set_share(1.5), Error);
  CHECK_THROWS_AS(parallel.set_share(NAN), Error);
  CHECK_NOTHROW(parallel.expect_equal());
  if (ranks->rank() == 1) w.mutable_data<float>()[1] = std::nextafter(1.0F, 2.0F);
  CHECK_THROWS_AS(parallel.expect_equal(), optim::CommonError);
}

TEST_CASE("training: as one process to 1e-5, the same bits from run to run") {
  const std::vector<double> alone = losses({});
  const std::vector<double> together = losses(even_cuts());
  for (std::size_t i = 0; i < alone.size(); ++i) CHECK(std::abs(together[i] - alone[i]) < 1e-5);
  CHECK(alone.back() < alone.front() - 0.1);
  CHECK(losses(even_cuts()) == together);
  // With all gradients in one bucket.
  const std::vector<double> one_bucket = losses(even_cuts(), 1 << 20);
  for (std::size_t i = 0; i < alone.size(); ++i) CHECK(std::abs(one_bucket[i] - alone[i]) < 1e-5);

  // Rows that are not spread evenly; the last rank of four has none.
  const std::vector<double> uneven =
      losses(ranks->size() == 2 ? std::vector<std::int64_t>{3, 8} : std::vector<std::int64_t>{1, 6, 8, 8});
  for (std::size_t i = 0; i < alone.size(); ++i) CHECK(std::abs(uneven[i] - alone[i]) < 1e-5);
}

TEST_CASE("sums of many elements have the same bits on all ranks and each time") {
  Generator generator(static_cast<std::uint64_t>(ranks->rank()) + 1);
  for (std::int64_t n : {5, 1000, 70'000, 500'000}) {
    std::vector<double> values(static_cast<std::size_t>(n));
    for (double& value : values) value = generator.standard_normal();
    const Tensor gradient = Tensor::of(values, {n}), w = zeros({n}).requires_grad_();
    optim::DataParallel parallel(*ranks, {{"w", w}});
    std::vector<double> first;
    for (int round = 0; round < 5; ++round) {
      w.set_grad({});
      sum(w * gradient).backward();
      parallel.finish();
      if (round == 0) first = w.grad().to_vector();
      CHECK(w.grad().to_vector() == first);
    }
    if (n <= 70'000) expect_same_values(w.grad());
  }
}

int main(int argc, char** argv) {
  try {
    optim::Ranks all;
    ranks = &all;
    if (all.size() < 2) {
      std::cerr << "to be run by mpirun with at least 2 ranks\n";
      return 1;
    }
    // The other ranks would wait for one that went on without what it failed to do.
    doctest::Context context(argc, argv);
    context.setOption("abort-after", 1);
    std::ostringstream output;
    context.setCout(&output);
    const int result = context.run();
    if (all.rank() == 0 || result != 0) std::cout << output.str() << std::flush;
    if (result != 0) all.abort("its tests failed");
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
