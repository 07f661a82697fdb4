// Lesson 11: pre-norm and post-norm.
//
//   pre:  x = x + f(norm(x))      post:  x = norm(x + f(x))
//
// One wire is moved; the weights are the same. In the pre-norm stack nothing stands in the stream: it grows with every
// block, and the final norm divides by what it has grown to, about sqrt(L). So deep stacks send small gradients to each
// block (Xiong et al. 2020: as 1 / sqrt(L), a slope of -1/2 on logarithmic scales). The post-norm stack is normalised
// after each sum; its last block gets the same gradient at any depth (slope 0), large when training begins. Xiong et
// al. see in that why it needs warm-up; `examples/run facts --only warm_up` tries it.

#include "autograd/scope.h"
#include "lessons/lesson.h"

using namespace prenorm;
using namespace prenorm::lessons;

struct Setting {
  std::int64_t d, T, V, depth;
  bool pre;
};

struct Run {
  Tensor loss;
  NamedTensors inputs;  // the last one is the last block's W2
};

Run stack(const Setting& s, std::uint64_t seed) {
  manual_seed(seed);
  const auto weight = [&s](std::int64_t rows) {
    return normal({rows, s.d}, 0, 1 / std::sqrt(s.d), {.dtype = float64, .requires_grad = true});
  };
  const std::string order = s.pre ? "pre." : "post.";
  NamedTensors w;
  for (std::int64_t l = 0; l < s.depth; ++l) {
    for (const char* name : {".attn.query", ".attn.key", ".attn.value", ".attn.output", ".ffn.w1", ".ffn.w2"}) {
      w.push_back({order + "block." + std::to_string(l) + name, weight(s.d)});
    }
  }
  const Tensor x0 = randn({s.T, s.d}, {.dtype = float64, .requires_grad = true});
  const Tensor head = weight(s.V), targets = randint(0, s.V, {s.T});
  Tensor x = x0;

  const auto around = [&s](const Tensor& stream, auto&& branch) {
    return s.pre ? residual_add(stream, branch(layer_norm(stream))) : layer_norm(residual_add(stream, branch(stream)));
  };
  for (std::size_t l = 0; l < static_cast<std::size_t>(s.depth); ++l) {
    const auto block = [&w, l](std::size_t i) { return w[6 * l + i].tensor; };
    const Scope scope("block." + std::to_string(l));
    x = around(x, [&block](const Tensor& h) {
      const Scope attention("attn");
      const Tensor q = linear(h, block(0)), k = linear(h, block(1)), v = linear(h, block(2));
      return linear(scaled_dot_product_attention(q, k, v, {}, {.causal = true}).y, block(3));
    });
    x = around(x, [&block](const Tensor& h) {
      const Scope feed_forward("ffn");
      return linear(relu(linear(h, block(4))), block(5));
    });
  }
  const Tensor loss = cross_entropy(linear(s.pre ? layer_norm(x) : x, head), targets);
  w.insert(w.begin(), {{order + "x0", x0}, {order + "head", head}});
  return {loss, w};
}

// Prints the gradient by depth; returns the slope of its logarithm against log L, by least squares.
double slope(bool pre) {
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (const std::int64_t depth : {2, 4, 8, 16}) {
    double mean = 0;
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      const Run run = stack({.d = 64, .T = 8, .V = 32, .depth = depth, .pre = pre}, seed);
      mean += length(grad({run.loss}, {run.inputs.back().tensor})[0]) / 6;
    }
    std::printf("  %4s-norm, L = %2d: |dL/dW2| of the last block %.3f  %s\n", pre ? "pre" : "post",
                static_cast<int>(depth), mean, std::string(static_cast<std::size_t>(20 * mean), '#').c_str());
    const double x = std::log(depth), y = std::log(mean);
    sx += x, sy += y, sxx += x * x, sxy += x * y;
  }
  return (4 * sxy - sx * sy) / (4 * sxx - sx * sx);
}

void show(const Lesson& lesson) {
  const double pre = slope(true);
  std::printf("  slope %.2f\n\n", pre);
  const double post = slope(false);
  std::printf("  slope %.2f\n", post);

  view::Recording run;  // both orders, in small
  for (const bool order : {true, false}) {
    const Scope scope(order ? "pre" : "post");
    const Run one = stack({.d = 8, .T = 4, .V = 6, .depth = 2, .pre = order}, /*seed=*/0);
    one.loss.backward();
    run.name(one.inputs);
  }
  lesson.page(run,
              {.note = "The same small stack twice, with the norm before and after each branch. Look where the norms "
                       "stand: beside the stream, or in it."});
}

int main(int argc, char** argv) {
  return teach(argc, argv,
               {.title = "Lesson 11: pre-norm and post-norm",
                .see = "One wire moved, the same weights: the last block's gradient falls with depth in the pre-norm "
                       "stack and does not in the post-norm stack."},
               show);
}
