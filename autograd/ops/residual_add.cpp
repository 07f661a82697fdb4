// y = x + F(x): the sum of a residual connection (He, Zhang, Ren, Sun 2015, "Deep Residual Learning for Image
// Recognition", equation 1). x is the skip, F(x) the branch. An op of its own so that the two are told apart in a
// graph.
//
//   dL/dx = dy along the skip, whatever the branch does: the gradient of the output arrives below unchanged, and
//   dL/dbranch = dy goes through F on top of it. So through a stack of them the gradient of the last output reaches
//   every layer at full size.

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

struct ResidualAdd final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "residual_add",
                                 .formula = "y = x + branch",
                                 .derivative = "dx = dy; dbranch = dy",
                                 .reference = "He, Zhang, Ren, Sun 2015, Deep Residual Learning, eq. 1",
                                 .file = "autograd/ops/residual_add.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    return {zip("residual_add", in[0], in[1], [](auto x, auto branch) { return x + branch; })};
  }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    dx.add(0, dy[0]);
    dx.add(1, dy[0]);
  }
};

}  // namespace

Tensor residual_add(const Tensor& x, const Tensor& branch) {
  check_same_dtype("residual_add", x, branch);
  check(x.shape() == branch.shape(), "residual_add: the branch returned ", branch.shape(), " for an x of ", x.shape(),
        "; expected the same shape");
  return apply_op<ResidualAdd>({x, branch})[0];
}

}  // namespace prenorm
