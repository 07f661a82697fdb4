// y = sum of x over dims.
//
//   Every element of x counts once in its sum, so its gradient is that sum's: dx = dy, repeated along the reduced dims.

#include "autograd/node.h"
#include "autograd/ops/reduce.h"

namespace prenorm {
namespace {

struct Sum final : Node {
  Sum(const Dims& dims, bool keepdim) : dims(dims), keepdim(keepdim) {}
  const Dims dims;
  const bool keepdim;

  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "sum",
                                 .formula = "y = sum(x, dims)",
                                 .derivative = "dx = expand(dy, x)",
                                 .reference = "",
                                 .file = "autograd/ops/sum.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    const Tensor& x = in[0];
    const Reduced reduced("sum", x.shape(), dims);
    return {dispatch_number("sum", x.dtype(), [&](auto t) {
      using T = decltype(t);
      const bool over_leading =
          reduced.rows > 1 && x.is_contiguous() && !reduced.order.empty() && reduced.order.back() < reduced.order[0];
      if (!over_leading)
        return reduce_as<T>(x, reduced, keepdim, [](const T* row, std::int64_t n) { return row_sum(row, n); });
      // Sums of columns, as for the gradient of a bias: no need to transpose.
      Tensor y = Tensor::empty(reduced.shape(keepdim), x.dtype());
      column_sums(x.data<T>(), reduced.n, reduced.rows, y.mutable_data<T>(), false);
      return y;
    })};
  }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    const Shape kept = Reduced("sum", input_shape(0), dims).keepdim_shape;
    dx.add(0, expand(reshape(dy[0], kept), input_shape(0)));
  }
};

}  // namespace

Tensor sum(const Tensor& x, const Dims& dims, bool keepdim) { return apply_op<Sum>({x}, dims, keepdim)[0]; }

}  // namespace prenorm
