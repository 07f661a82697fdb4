// Lesson 9: the residual connection.
//
// y = x + F(x). Its derivative is I + J, J that of the branch F: the gradient comes back along the skip as it is, and
// along the branch as J^T g, and both are added. Without the skip it is J^T g alone. One layer makes no great
// difference. Sixteen do: a product of sixteen J shrinks what it is applied to again and again, while (I + J) (I + J) …
// still has the I in it.

#include "autograd/scope.h"
#include "lessons/lesson.h"

using namespace prenorm;
using namespace prenorm::lessons;

constexpr std::int64_t kFeatures = 8, kDepth = 16;

struct Branch {
  Tensor w1, w2;  // F(x) = w2 relu(w1 norm(x))
  Tensor operator()(const Tensor& x) const { return linear(relu(linear(layer_norm(x), w1)), w2); }
  Branch copy() const { return {w1.detach().requires_grad_(), w2.detach().requires_grad_()}; }
};

Tensor weight() {
  return normal({kFeatures, kFeatures}, 0, 1 / std::sqrt(kFeatures), {.dtype = float64, .requires_grad = true});
}

// A bar of 40 signs, cut where the skip's share of |skip| + |branch| ends.
void print_bar(double skip, double branch) {
  const int cut = static_cast<int>(std::lround(40 * skip / (skip + branch)));
  std::printf("  [%s%s]  skip %.4f, branch %.4f\n", std::string(static_cast<std::size_t>(cut), '=').c_str(),
              std::string(static_cast<std::size_t>(40 - cut), '~').c_str(), skip, branch);
}

void show(const Lesson& lesson) {
  manual_seed(0);
  std::vector<Branch> branches;
  for (std::int64_t l = 0; l < kDepth; ++l) branches.push_back({weight(), weight()});
  const Tensor start = randn({1, kFeatures}, {.dtype = float64}), g = randn({1, kFeatures}, {.dtype = float64});

  // One layer: the two parts of the gradient, each on its own.
  const Tensor x = start.detach().requires_grad_();
  const Tensor branch_part = grad({branches[0](x)}, {x}, {g})[0];
  residual_add(x, branches[0](x)).backward(g);
  std::printf("  one layer, g = dL/dy:\n");
  print("I g, along the skip", g);
  print("J^T g, along the branch", branch_part);
  print("their sum", g + branch_part);
  print("dL/dx, by backward", x.grad());

  // Sixteen, with and without: the same weights, each stack with copies of its own.
  view::Recording run;
  const Tensor with = start.detach().requires_grad_(), without = start.detach().requires_grad_();
  Tensors stream{with};
  Tensor plain = without;
  for (std::size_t l = 0; l < kDepth; ++l) {
    const std::string path = "with_skip." + std::to_string(l);
    const Branch branch = branches[l].copy();
    run.name({{path + ".w1", branch.w1}, {path + ".w2", branch.w2}});
    const Scope layer(path);
    stream.push_back(residual_add(stream[l], branch(stream[l])));
    stream.back().retain_grad();
  }
  stream.back().backward(g);
  for (std::size_t l = 0; l < kDepth; ++l) {
    const std::string path = "without." + std::to_string(l);
    const Branch branch = branches[l].copy();
    run.name({{path + ".w1", branch.w1}, {path + ".w2", branch.w2}});
    const Scope layer(path);
    plain = branch(plain);
  }
  plain.backward(g);
  run.name({{"with_skip.x", with}, {"without.x", without}});
  lesson.page(run);

  std::printf("\n  depth %d, |dL/dy| = %.4f at the top:\n", static_cast<int>(kDepth), length(g));
  std::printf("  with the skip     |dL/dx| = %.4f\n", length(with.grad()));
  std::printf("  without           |dL/dx| = %.1e\n\n", length(without.grad()));
  std::printf("  How it splits on the way down, at every fourth layer:\n");
  for (std::size_t l = kDepth; l >= 4; l -= 4) {
    const Tensor skip = stream[l].grad(), total = l == 1 ? with.grad() : stream[l - 1].grad();
    print_bar(length(skip), length(total - skip));
  }
}

int main(int argc, char** argv) {
  return teach(
      argc, argv,
      {.title = "Lesson 9: the residual connection",
       .see = "The derivative is I + J: the gradient passes the skip as it is. At depth 16 it reaches the input "
              "with the skip, and hardly without."},
      show);
}
