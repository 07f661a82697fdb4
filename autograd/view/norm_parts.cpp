#include "autograd/view/norm_parts.h"

#include "autograd/ops.h"

namespace prenorm::view {
namespace {

Tensor wide(const Tensor& tensor) { return tensor.defined() ? to(tensor, float64) : tensor; }

// layer_norm_std keeps its eps to itself. On a row with std s and one element d off its mean, x_hat = d / (s + eps).
double eps_of_layer_norm_std(const RecordedNode& node, std::int64_t n) {
  std::vector<double> row(static_cast<std::size_t>(n), 0.0);
  row[0] = 1;
  const Tensor x = Tensor::of(row, {1, n}, {.dtype = float64});
  const double x_hat = node.node->forward({x, {}, {}})[0].to_vector()[0];
  return (1 - 1 / static_cast<double>(n)) / x_hat - std(x).item();
}

}  // namespace

bool is_norm(std::string_view op) { return op == "layer_norm" || op == "layer_norm_std" || op == "rms_norm"; }

std::optional<NormParts> norm_parts(const RecordedNode& node, const Tensors& cotangents) {
  if (!node.is_of_library() || !cotangents[0].defined()) return std::nullopt;
  const NoGrad no_grad;
  const std::string_view op = node.op();
  const Tensor x = wide(node.input_values[0]), gamma = wide(node.input_values[1]), dy = wide(cotangents[0]);
  NormParts parts;
  parts.incoming = gamma.defined() ? gamma * dy : dy;
  const Tensor& g = parts.incoming;
  const std::int64_t n = x.size(-1);
  if (x.numel() == 0) return std::nullopt;
  if (op != "rms_norm") parts.mean_part = expand(mean(g, {-1}, true), g.shape());
  Tensor x_hat, along;
  if (op == "layer_norm_std") {
    const Tensor d = x - mean(x, {-1}, true), s = std(x, {-1}, 1, true);
    parts.sigma = s + eps_of_layer_norm_std(node, n);
    x_hat = d / parts.sigma;
    // The op's own factor: d std / dx = d / ((n - 1) std), and 0 on a constant row, where x_hat is 0 too.
    const Tensor divisor = static_cast<double>(n - 1) * masked_fill(s, eq(s, zeros_like(s)), 1);
    along = sum(g * d, {-1}, true) / divisor;
  } else {
    parts.sigma = unsqueeze(1.0 / wide(node.outputs[2]), -1);
    x_hat = (op == "rms_norm" ? x : x - mean(x, {-1}, true)) / parts.sigma;
    along = mean(g * x_hat, {-1}, true);
  }
  parts.x_hat_part = x_hat * along;
  parts.passed = (parts.mean_part.defined() ? g - parts.mean_part : g) - parts.x_hat_part;
  parts.sigma = squeeze(parts.sigma, -1);
  return parts;
}

}  // namespace prenorm::view
