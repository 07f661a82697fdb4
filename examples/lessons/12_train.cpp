// Lesson 12: train the pre-norm model.
//
// All the parts together: TinyLM with four blocks learns that the next token is this one plus 3, modulo 12. Before and
// after, the gradient at the bottom of the stack is taken apart by the number of branches that it crossed on its way
// (x = x + f(x) passes v as v + J^T v; v_k <- v_k + J^T v_(k-1) keeps the parts apart): training moves it to longer
// ways.

#include "lessons/lesson.h"
#include "nn/embedding.h"
#include "nn/tiny_lm.h"
#include "optim/adam.h"

using namespace prenorm;
using namespace prenorm::lessons;

constexpr std::int64_t kVocab = 12, T = 8, kBlocks = 4;
constexpr int kSteps = 150;

Tensor tokens(std::int64_t B) { return mod(randint(0, kVocab, {B, 1}) + 3 * arange(T + 1), kVocab); }
Tensor loss_of(const nn::TinyLM& model, const Tensor& t) {
  return cross_entropy(model(slice(t, 1, 0, T)), slice(t, 1, 1, T + 1));
}

void print_path_lengths(const char* when, const nn::TinyLM& model, const Tensor& t) {
  Tensors x{(model.at("tok")(slice(t, 1, 0, T)) + model.at("pos")(arange(T))).detach().requires_grad_()};
  const auto branch = [&model](std::size_t b, const Tensor& stream) {
    const std::string block = "blocks." + std::to_string(b / 2);
    return b % 2 == 0 ? model.at(block + ".attn")(model.at(block + ".ln1")(stream))
                      : model.at(block + ".ffn")(model.at(block + ".ln2")(stream));
  };
  for (std::size_t b = 0; b < 2 * kBlocks; ++b) x.push_back((x[b] + branch(b, x[b])).detach().requires_grad_());
  const Tensor loss = cross_entropy(model.at("head")(model.at("ln_f")(x.back())), slice(t, 1, 1, T + 1));
  Tensors v = grad({loss}, {x.back()});
  for (std::size_t b = 2 * kBlocks; b-- > 0;) {
    const Tensor added = branch(b, x[b]);
    v.push_back(zeros_like(v[0]));
    for (std::size_t k = v.size() - 1; k >= 1; --k) {
      v[k] = v[k] + grad({added}, {x[b]}, {v[k - 1]}, {.keep_graph = true})[0];
    }
  }
  Tensor whole = zeros_like(v[0]);
  for (const Tensor& part : v) whole = whole + part;
  double crossed = 0, total = 0;
  std::printf("  shares of the gradient by branches crossed, %s:\n   ", when);
  for (std::size_t k = 0; k < v.size(); ++k) {
    const double share = sum(v[k] * whole).item() / sum(whole * whole).item();
    std::printf(" %zu: %.3f", k, share);
    crossed += static_cast<double>(k) * share;
    total += share;
  }
  std::printf("\n    sum %.12f, on average %.2f branches\n", total, crossed);
}

void show(const Lesson& lesson) {
  manual_seed(0);
  const nn::TinyLM model(kVocab, {.d_model = 16, .n_heads = 2, .n_layers = kBlocks, .max_len = T});
  model.to(float64);
  optim::Adam adam(model.parameters(), {.lr = 3e-3});
  const Tensor one = tokens(1);
  print_path_lengths("before", model, one);

  std::vector<std::vector<double>> norms(kBlocks);  // of each block's gradient, every third step
  double first = 0, last = 0;
  for (int step = 1; step <= kSteps; ++step) {
    const Tensor loss = loss_of(model, tokens(16));
    adam.zero_grad();
    loss.backward();
    adam.step();
    last = loss.item();
    if (step == 1) first = last;
    if (step % 3 != 0) continue;
    for (std::int64_t l = 0; l < kBlocks; ++l) {
      double squares = 0;
      for (const NamedTensor& p : model.blocks(l).parameters()) squares += std::pow(length(p.tensor.grad()), 2);
      norms[static_cast<std::size_t>(l)].push_back(std::sqrt(squares));
    }
  }
  std::printf("\n  loss %.4f at the first step, %.4f at step %d (guessing: log 12 = 2.4849)\n\n", first, last, kSteps);
  print_path_lengths("after", model, one);

  double most = 0;
  for (const auto& row : norms) most = std::max(most, *std::max_element(row.begin(), row.end()));
  std::printf("\n  gradient norm by block, step 3 to %d from left to right, @ is %.2f:\n", kSteps, most);
  for (std::size_t l = kBlocks; l-- > 0;) {
    std::printf("    block %zu |", l);
    for (double value : norms[l]) std::printf("%c", shade(value, most));
    std::printf("|\n");
  }
}

int main(int argc, char** argv) {
  return teach(argc, argv,
               {.title = "Lesson 12: train the pre-norm model",
                .see = "The loss falls to nearly nothing, and the gradient takes other ways than at the start."},
               show);
}
