// What the residual connection does to values and to gradients.

#include <cmath>
#include <iterator>
#include <string>

#include "autograd/ops.h"
#include "autograd/random.h"
#include "demos/report.h"
#include "nn/feed_forward.h"
#include "nn/residual.h"

namespace prenorm::demos {
namespace {

void zero_sublayer(Report& report) {
  report.say("A sublayer that adds nothing changes nothing: the input passes the residual connection as it is.");
  manual_seed(0);
  const nn::SublayerConnection residual(8);
  const Tensor x = randn({2, 3, 8});
  const Tensor y = residual(x, [](const Tensor& h) { return zeros_like(h); });
  report.expect("largest difference of output and input", "0", exactly_zero(largest_difference(y, x)));
}

void residual_stack(Report& report) {
  report.say(
      "20 feed-forwards of 64/256 one after another let the signal die; inside SublayerConnections the same 20 keep it "
      "alive.");
  constexpr int kDepth = 20;
  manual_seed(0);
  std::vector<nn::PositionwiseFeedForward> layers;
  for (int i = 0; i < kDepth; ++i) layers.emplace_back(64, 256, /*dropout=*/0);
  const nn::SublayerConnection residual(64, {.dropout = 0});  // a fresh one is like another
  const Tensor x = randn({1, 5, 64});

  Tensor plain = x, with_residual = x;
  for (const nn::PositionwiseFeedForward& layer : layers) {
    plain = layer(plain);
    with_residual = residual(with_residual, layer);
  }
  report.expect("std of the output, plain", "4.59e-02", scientific(std(plain).item()));
  report.expect("std of the output, with residuals", "1.50e+00", scientific(std(with_residual).item()));
}

// x_(l+1) = x_l + F_l(x_l), so dL/dx_l = dL/dx_(l+1) + J_l^T dL/dx_(l+1), J_l the Jacobian of the branch F_l.
void residual_gradient(Report& report) {
  report.say(
      "Through a residual stack the gradient arrives in two parts: dL/dx_L as it is, along the skips, and what the "
      "branches "
      "add. Here L is the sum of the outputs, dL/dx_L = 1, so that dL/dx_0 = dL/dx_L * (1 + branch part) reads 1 + "
      "branch "
      "part. The branch part is computed on its own, branch by branch.");
  constexpr std::size_t kDepth = 4;
  manual_seed(0);
  std::vector<nn::PositionwiseFeedForward> layers;
  for (std::size_t l = 0; l < kDepth; ++l) {
    layers.emplace_back(8, 32, /*dropout=*/0);
    layers.back().to(float64);
  }
  const nn::SublayerConnection residual(8, {.dropout = 0});
  residual.to(float64);
  const nn::LayerNorm norm = residual.at("norm").as<nn::LayerNorm>();

  Tensors x{randn({2, 8}, {.dtype = float64, .requires_grad = true})};  // x_0 … x_L
  for (const nn::PositionwiseFeedForward& layer : layers) x.push_back(residual(x.back(), layer));
  sum(x.back()).backward();
  const Tensor whole = x[0].grad();

  const Tensor skip = ones_like(whole);
  Tensor branches = zeros_like(whole);
  for (std::size_t l = kDepth; l-- > 0;) {
    const Tensor input = x[l].detach().requires_grad_();
    branches = branches + grad({layers[l](norm(input))}, {input}, {skip + branches})[0];
  }

  const std::vector<double> total = whole.to_vector(), branch = branches.to_vector();
  const char* const sums[] = {"1 + 0.4811 = 1.4811", "1 - 0.0893 = 0.9107", "1 - 0.0015 = 0.9985"};
  for (std::size_t i = 0; i < std::size(sums); ++i) {
    report.expect(
        "dL/dx_0[0, " + std::to_string(i) + "] = skip + branches", sums[i],
        "1" + std::string(branch[i] < 0 ? " - " : " + ") + fixed(std::abs(branch[i]), 4) + " = " + fixed(total[i], 4));
  }
  report.expect("the sums hold to 1e-12 in all 16 elements", "yes",
                yes_no(largest_difference(whole, skip + branches) < 1e-12));
}

}  // namespace

std::vector<Demo> residual_demos() {
  return {{"zero_sublayer", "a sublayer of zeros leaves the input as it is", zero_sublayer},
          {"residual_stack", "20 layers deep, with and without residuals", residual_stack},
          {"residual_gradient", "the gradient of a residual stack as two numbers that add up", residual_gradient}};
}

}  // namespace prenorm::demos
