// All operations on tensors: free functions, each with its forward, backward and derivation in autograd/ops/<name>.cpp.
//
// Common rules
// - "…" stands for any leading dimensions. Dimension numbers may be negative.
// - Tensors that meet must have the same dtype; nothing is promoted silently. Errors name the op and show the shapes.
// - "view" marks results that share storage with their input.
// - Scalars next to tensors take the tensor's dtype.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <ostream>
#include <vector>

#include "autograd/random.h"
#include "autograd/tensor.h"

namespace prenorm {

using Dims = Shape;  // a list of dimension numbers

// --- creation: no derivative ---

Tensor zeros(const Shape& shape, DType dtype = float32);
Tensor ones(const Shape& shape, DType dtype = float32);
Tensor full(const Shape& shape, double value, DType dtype = float32);
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);
Tensor full_like(const Tensor& x, double value);
// [ceil((end - start) / step)]: start, start + step, … below end.
Tensor arange(double start, double end, double step = 1, DType dtype = int64);
inline Tensor arange(double end) { return arange(0, end); }
// rand, randn, randint, randperm, uniform, normal, multinomial: autograd/random.h

// --- in place: never recorded; throw on a tensor that requires grad unless under NoGrad ---

// Return x. Writing counts up the version that all views of the storage share.
const Tensor& fill_(const Tensor& x, double value);
const Tensor& copy_(const Tensor& x, const Tensor& from);                // from broadcasts to x; converts dtype
const Tensor& add_(const Tensor& x, const Tensor& y, double scale = 1);  // x += scale * y, y broadcasts to x
const Tensor& mul_(const Tensor& x, double factor);                      // x *= factor

// --- pointwise ---

// Binary ones broadcast by NumPy's rule. add, sub, mul also take int64.
Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);
Tensor pow(const Tensor& base, const Tensor& exponent);
Tensor pow(const Tensor& base, double exponent);
Tensor neg(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor sqrt(const Tensor& x);  // gradient 0 at 0
Tensor abs(const Tensor& x);   // gradient 0 at 0
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor relu(const Tensor& x);  // gradient 0 at 0
enum class Gelu { exact, tanh };
Tensor gelu(const Tensor& x, Gelu form = Gelu::exact);
// condition: bool. Where it is true `a`, elsewhere `b`; all three broadcast.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
// x with `value` where mask (bool) is true; the two broadcast.
Tensor masked_fill(const Tensor& x, const Tensor& mask, double value);
// x * mask / (1 - p), mask (bool, shape of x) as drawn by dropout_mask; identity where not training. p in [0, 1].
Tensor dropout(const Tensor& x, double p, bool training = true);
Tensor to(const Tensor& x, DType dtype);  // between float types with derivative; the same handle if nothing changes
// x + branch, the sum of a residual connection: an op of its own, so that skip and branch are told apart in the graph.
Tensor residual_add(const Tensor& x, const Tensor& branch);

// --- reductions: over `dims`, all if none are given; reduced dims vanish unless keepdim ---

Tensor sum(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor mean(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
// sum (x - mean)^2 / max(n - correction, 0). correction 1: unbiased, 0: biased.
Tensor var(const Tensor& x, const Dims& dims = {}, int correction = 1, bool keepdim = false);
Tensor std(const Tensor& x, const Dims& dims = {}, int correction = 1, bool keepdim = false);  // gradient 0 at 0
Tensor norm(const Tensor& x, const Dims& dims = {}, bool keepdim = false);  // 2-norm; gradient 0 at 0
struct MaxResult {
  Tensor values;
  Tensor indices;  // int64; the first of equal ones, which alone gets the gradient
};
MaxResult max(const Tensor& x, std::int64_t dim, bool keepdim = false);
Tensor max(const Tensor& x);  // of all elements
// Sums over the dimensions that broadcasting `shape` to x's shape added or stretched. The derivative of expand.
Tensor sum_to(const Tensor& x, const Shape& shape);

// --- shape ---

Tensor reshape(const Tensor& x, const Shape& shape);                      // view where possible; one size may be -1
Tensor transpose(const Tensor& x, std::int64_t dim0, std::int64_t dim1);  // view
Tensor permute(const Tensor& x, const Dims& dims);                        // view
Tensor unsqueeze(const Tensor& x, std::int64_t dim);                      // view
Tensor squeeze(const Tensor& x, std::int64_t dim);                        // view; only a size of 1 vanishes
Tensor expand(const Tensor& x, const Shape& shape);                       // view; -1 keeps a size
// Elements start, start + step, … below end along `dim`. start and end may be negative or beyond; view.
Tensor slice(const Tensor& x, std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step = 1);
Tensor select(const Tensor& x, std::int64_t dim, std::int64_t index);  // one element along dim, which vanishes; view
Tensor concat(const Tensors& parts, std::int64_t dim = 0);
Tensors split(const Tensor& x, const std::vector<std::int64_t>& sizes, std::int64_t dim = 0);  // views
Tensors chunk(const Tensor& x, std::int64_t chunks, std::int64_t dim = 0);  // views, of equal size but for the last
Tensor clone(const Tensor& x);                                              // a contiguous copy
Tensor contiguous(const Tensor& x);                                         // x itself where it is contiguous
Tensor triu(const Tensor& x, std::int64_t diagonal = 0);  // zero below the diagonal of the last two dims
Tensor tril(const Tensor& x, std::int64_t diagonal = 0);  // zero above it

// --- products ---

// [..., m, k] @ [..., k, n] -> [..., m, n]; batch dims broadcast; 1-D operands as in NumPy.
Tensor matmul(const Tensor& a, const Tensor& b);
// x [..., in] @ weight^T + bias -> [..., out]; weight [out, in]; bias [out] or undefined.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

// --- normalisation: over the last dimension or dimensions ---

// The two LayerNorms differ, and learners trip over it:
// standard (Ba et al. 2016, PyTorch): gamma * (x - mean) / sqrt(var + eps) + beta, var with n; over the last
// gamma.dims() or `normalized_shape` dimensions. gamma, beta of that shape, or undefined.
Tensor layer_norm(const Tensor& x, const Tensor& gamma = {}, const Tensor& beta = {}, double eps = 1e-5);
Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& gamma, const Tensor& beta, double eps);
// unbiased (the Annotated Transformer): a_2 * (x - mean) / (std + eps) + b_2, std with n - 1; last dimension, n >= 2.
Tensor layer_norm_std(const Tensor& x, const Tensor& a_2 = {}, const Tensor& b_2 = {}, double eps = 1e-6);
// x / sqrt(mean(x^2) + eps) * weight; over the last weight.dims() or `normalized_shape` dimensions.
Tensor rms_norm(const Tensor& x, const Tensor& weight = {}, double eps = 1e-6);
Tensor rms_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, double eps);
// x [N, C] or [N, C, L], statistics per channel over all other dims: of the batch, or as given (running, evaluation).
struct BatchNormResult {
  Tensor y;
  Tensor mean;  // [C], detached
  Tensor var;   // [C], biased, detached
};
BatchNormResult batch_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5);
Tensor batch_norm_with(const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& weight = {},
                       const Tensor& bias = {}, double eps = 1e-5);

// --- probabilities and losses ---

Tensor softmax(const Tensor& x, std::int64_t dim = -1);  // a row of -inf alone gives NaN, as in PyTorch
Tensor log_softmax(const Tensor& x, std::int64_t dim = -1);
enum class Reduction { none, sum, mean, batchmean };
struct CrossEntropyOptions {
  Reduction reduction = Reduction::mean;          // mean: over the rows not ignored; NaN where all are
  std::optional<std::int64_t> ignore_index = {};  // any number, also a real class or a negative one
  double label_smoothing = 0;                     // in [0, 1]
};
// logits [..., C], target (int64) [...]: -(1 - s) log p[target] - s mean(log p), p = softmax(logits).
Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options = {});
// The same from log-probabilities, without smoothing.
Tensor nll_loss(const Tensor& log_probs, const Tensor& target, const CrossEntropyOptions& options = {});
// target * (log target - input), terms with target 0 count 0; or exp(t) * (t - input) with log_target. mean is over all
// elements, batchmean the sum over the first dimension's size. No gradient for target.
Tensor kl_div(const Tensor& log_probs, const Tensor& target, Reduction reduction = Reduction::mean,
              bool log_target = false);

// --- lookup and attention ---

// Rows of weight [V, D] by ids (int64, any shape) -> [..., D]. Ids outside [0, V) throw.
Tensor embedding(const Tensor& ids, const Tensor& weight);
struct AttentionOptions {
  bool causal = false;               // key j only where j <= query i; needs Tq == Tk
  double masked_score = -INFINITY;   // what masked scores become; -1e9 as in the Annotated Transformer
  std::optional<double> scale = {};  // default 1 / sqrt(D)
};
struct AttentionResult {
  Tensor y;        // [..., Tq, Dv]
  Tensor weights;  // [..., Tq, Tk], detached
};
// softmax(q k^T * scale, masked) v. q [..., Tq, D], k [..., Tk, D], v [..., Tk, Dv]; mask (bool, true: may look)
// broadcasts to [..., Tq, Tk]. A row with no key to look at gives 0 under -inf, the mean of v under -1e9.
AttentionResult scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask = {},
                                             const AttentionOptions& options = {});
// The same for causal self-attention over packed heads: qkv [B, T, 3 * H * D] -> [B, T, H * D].
Tensor causal_attention_packed(const Tensor& qkv, std::int64_t heads);

// --- without derivative ---

Tensor eq(const Tensor& a, const Tensor& b);  // bool, broadcast
Tensor ne(const Tensor& a, const Tensor& b);
Tensor lt(const Tensor& a, const Tensor& b);
Tensor le(const Tensor& a, const Tensor& b);
Tensor gt(const Tensor& a, const Tensor& b);
Tensor ge(const Tensor& a, const Tensor& b);
Tensor logical_not(const Tensor& x);
Tensor mod(const Tensor& a, std::int64_t divisor);  // int64; the result has the divisor's sign
Tensor argmax(const Tensor& x, std::int64_t dim = -1, bool keepdim = false);  // the first of equal ones
bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8);

// --- operators ---

Tensor operator+(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a, const Tensor& b);
Tensor operator*(const Tensor& a, const Tensor& b);
Tensor operator/(const Tensor& a, const Tensor& b);
Tensor operator+(const Tensor& a, double b);
Tensor operator-(const Tensor& a, double b);
Tensor operator*(const Tensor& a, double b);
Tensor operator/(const Tensor& a, double b);
Tensor operator+(double a, const Tensor& b);
Tensor operator-(double a, const Tensor& b);
Tensor operator*(double a, const Tensor& b);
Tensor operator/(double a, const Tensor& b);
Tensor operator-(const Tensor& x);
// Values in brackets, shape and dtype; large tensors shortened.
std::ostream& operator<<(std::ostream& out, const Tensor& x);

}  // namespace prenorm
