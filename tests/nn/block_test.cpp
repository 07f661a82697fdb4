#include "nn/block.h"

#include <string>
#include <vector>

#include "autograd/node.h"
#include "autograd/random.h"
#include "nn/gradcheck.h"
#include "support.h"

namespace prenorm::nn {
namespace {

using Doubles = std::vector<double>;

std::vector<BlockOptions> all_switches() {
  std::vector<BlockOptions> all;
  for (const Norm norm : {Norm::unbiased, Norm::standard, Norm::rms, Norm::none}) {
    for (const Order order : {Order::pre, Order::post}) {
      for (const bool residual : {true, false}) {
        for (const bool causal : {true, false}) {
          all.push_back({.use_residual = residual, .norm = norm, .order = order, .causal = causal, .expansion = 1});
        }
      }
    }
  }
  return all;
}
std::string described(const BlockOptions& options) {
  return "norm " + std::to_string(static_cast<int>(options.norm)) + (options.order == Order::pre ? " pre" : " post") +
         (options.use_residual ? " residual" : "") + (options.causal ? " causal" : "");
}

TEST_CASE("a block is attention, then a feed-forward, each with its norm and residual where the switches say") {
  manual_seed(1);
  const Tensor x = randn({2, 5, 4});
  for (const BlockOptions& options : all_switches()) {
    const Block block(4, 2, options);
    const Module attn = block.at("attn"), ffn = block.at("ffn"), ln1 = block.at("ln1"), ln2 = block.at("ln2");
    CAPTURE(described(options));
    Tensor y = x;
    if (options.order == Order::pre) {
      y = options.use_residual ? y + attn(ln1(y)) : attn(ln1(y));
      y = options.use_residual ? y + ffn(ln2(y)) : ffn(ln2(y));
    } else {
      y = ln1(options.use_residual ? y + attn(y) : attn(y));
      y = ln2(options.use_residual ? y + ffn(y) : ffn(y));
    }
    CHECK(block(x).to_vector() == y.to_vector());
  }
}

TEST_CASE("children and parameters are listed attention, feed-forward, norms") {
  const Block block(4, 2);
  std::string all;
  for (const auto& [path, parameter] : block.parameters()) all += path + " ";
  CHECK(all ==
        "attn.qkv.weight attn.qkv.bias attn.out.weight attn.out.bias ffn.w1.weight ffn.w1.bias ffn.w2.weight "
        "ffn.w2.bias ln1.gamma ln1.beta ln2.gamma ln2.beta ");
  CHECK(block.parameter_count() == 4 * 12 + 12 + 4 * 4 + 4 + 4 * 16 + 16 + 16 * 4 + 4 + 4 * 4);
  CHECK(Block(4, 2, {.norm = Norm::none}).parameters().size() == 8);
}

TEST_CASE("the residual sum is an op of its own") {
  const Block block(4, 2), bare(4, 2, {.use_residual = false});
  const Tensor y = block(randn({1, 2, 4}));
  CHECK(y.node()->info().name == "residual_add");
  CHECK(y.node()->edges()[0].node->info().name == "residual_add");  // the skip leads to the one before
  CHECK(y.node()->edges()[1].node->scope() == "ffn.w2");            // the branch into the feed-forward
  CHECK(bare(randn({1, 2, 4})).node()->scope() == "ffn.w2");
}

TEST_CASE("dropout acts on what each branch adds, in training only") {
  const Block block(4, 2, {.dropout = 0.5}), all(4, 2, {.dropout = 1});
  const Tensor x = randn({2, 3, 4});
  CHECK(all(x).to_vector() == x.to_vector());  // both branches are dropped whole
  manual_seed(1);
  const Tensor y = block(x);
  CHECK(block(x).to_vector() != y.to_vector());
  manual_seed(1);
  CHECK(block(x).to_vector() == y.to_vector());
  block.eval();
  const Doubles state = default_generator().state().to_vector();
  const Tensor z = block(x);
  CHECK(block(x).to_vector() == z.to_vector());
  CHECK(default_generator().state().to_vector() == state);
}

TEST_CASE("sizes and options that make no block are errors") {
  expect_error([] { Block(6, 4); }, {"d_model 6", "4 heads"});
  expect_error([] { Block(4, 2, {.dropout = 1.5}); }, {"Block", "[0, 1]", "1.5"});
  expect_error([] { Block(4, 2, {.expansion = 0}); }, {"expansion 0"});
}

TEST_CASE("differences agree for a block in all its switches") {
  for (const BlockOptions& options : all_switches()) {
    const GradcheckReport report = gradcheck(Block(4, 2, options), {randn64({1, 3, 4})}, {.order = 1});
    CHECK_MESSAGE(report.passed, described(options), ": ", report.message);
  }
}

TEST_CASE("differences agree to order 2 for the usual block") {
  const GradcheckReport report = gradcheck(Block(4, 2, {.expansion = 1}), {randn64({1, 3, 4})});
  CHECK_MESSAGE(report.passed, report.message);
}

}  // namespace
}  // namespace prenorm::nn
