// Lesson 12: train the pre-norm model.
//
// All the parts together: TinyLM with three blocks learns that the next token is this one plus 3, modulo 12. Before and
// after, the gradient at the bottom of the stack is taken apart by the number of branches that it crossed on its way
// (x = x + f(x) passes v as v + J^T v; v_k <- v_k + J^T v_(k-1) keeps the parts apart): training moves it to longer
// ways.

#include "lessons/lesson.h"
#include "nn/embedding.h"
#include "nn/tiny_lm.h"
#include "optim/adam.h"
#include "optim/clip.h"

using namespace prenorm;
using namespace prenorm::lessons;

constexpr std::int64_t kVocab = 12, T = 8, kBlocks = 3;
constexpr int kSteps = 150;

Tensor tokens(std::int64_t B) { return mod(randint(0, kVocab, {B, 1}) + 3 * arange(T + 1), kVocab); }
Tensor loss_of(const nn::TinyLM& model, const Tensor& t) {
  const std::int64_t length = t.size(1) - 1;
  return cross_entropy(model(slice(t, 1, 0, length)), slice(t, 1, 1, length + 1));
}

// What branch 0, 1, 2, … of the stack adds to the stream: attention and feed-forward of each block in turn.
Tensor branch(const nn::TinyLM& model, std::size_t index, const Tensor& stream) {
  const std::string block = "blocks." + std::to_string(index / 2) + ".";
  return index % 2 == 0 ? model.at(block + "attn")(model.at(block + "ln1")(stream))
                        : model.at(block + "ffn")(model.at(block + "ln2")(stream));
}

// The stream before each branch and after the last, cut apart.
Tensors streams(const nn::TinyLM& model, const Tensor& ids) {
  Tensors x{(model.at("tok")(ids) + model.at("pos")(arange(T))).detach().requires_grad_()};
  for (std::size_t b = 0; b < 2 * kBlocks; ++b) x.push_back((x[b] + branch(model, b, x[b])).detach().requires_grad_());
  return x;
}

void print_path_lengths(const char* when, const nn::TinyLM& model, const Tensor& t) {
  const Tensors x = streams(model, slice(t, 1, 0, T));
  const Tensor loss = cross_entropy(model.at("head")(model.at("ln_f")(x.back())), slice(t, 1, 1, T + 1));
  Tensors v = grad({loss}, {x.back()});
  for (std::size_t b = 2 * kBlocks; b-- > 0;) {
    const Tensor added = branch(model, b, x[b]);
    v.push_back(zeros_like(v[0]));
    for (std::size_t k = v.size() - 1; k >= 1; --k) {
      v[k] = v[k] + grad({added}, {x[b]}, {v[k - 1]}, {.keep_graph = true})[0];
    }
  }
  Tensor whole = zeros_like(v[0]);
  for (const Tensor& part : v) whole = whole + part;
  double crossed = 0;
  std::printf("  share of the gradient by branches crossed, %s:\n   ", when);
  for (std::size_t k = 0; k < v.size(); ++k) {
    const double share = sum(v[k] * whole).item() / sum(whole * whole).item();
    std::printf(" %zu: %.3f", k, share);
    crossed += static_cast<double>(k) * share;
  }
  std::printf("\n    on average %.2f branches\n", crossed);
}

// Of the last block's first head: who looks at whom.
void print_attention(const nn::TinyLM& model, const Tensor& ids) {
  const std::string block = "blocks." + std::to_string(kBlocks - 1);
  const Tensor x = streams(model, ids)[2 * kBlocks - 2];
  const Tensor qkv = model.at(block + ".attn.qkv")(model.at(block + ".ln1")(x));
  const Tensors heads = split(select(qkv, 0, 0), {8, 8, 8, 8, 8, 8}, 1);  // q, k, v of two heads each
  const Tensor weights = scaled_dot_product_attention(heads[0], heads[2], heads[4], {}, {.causal = true}).weights;
  std::vector<std::vector<double>> rows;
  for (std::int64_t t = 0; t < T; ++t) rows.push_back(select(weights, 0, t).to_vector());
  std::printf("\n  attention of the last block's first head, a row a position:\n");
  heat_map("at", rows);
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
    for (std::size_t l = 0; l < kBlocks; ++l) {
      norms[l].push_back(optim::grad_norm(model.blocks(static_cast<std::int64_t>(l)).parameters()));
    }
  }
  std::printf("\n  loss %.4f at the first step, %.4f at step %d (guessing: log 12 = 2.4849)\n\n", first, last, kSteps);
  print_path_lengths("after", model, one);
  std::printf("\n  gradient norm by block, from step 3 on the left to step %d:\n", kSteps);
  heat_map("block", norms, 1);
  print_attention(model, slice(one, 1, 0, T));

  view::Recording run;
  run.name(model.parameters());
  model.zero_grad();
  loss_of(model, slice(one, 1, 0, 4)).backward();
  lesson.page(run, {.note = "The trained model, forward and backward once, on three tokens."});
}

int main(int argc, char** argv) {
  return teach(argc, argv,
               {.title = "Lesson 12: train the pre-norm model",
                .see = "The loss falls to nearly nothing, and the gradient takes other ways than at the start."},
               show);
}
