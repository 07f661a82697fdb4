// triu keeps the elements on and above a diagonal of the last two dimensions, tril those on and below it; the others
// become 0. diagonal 0 is the main one, 1 the one above, -1 the one below. Masks (bool) too.
//
//   What was kept is y, so its gradient is dy; the others have no part in y: dx = triu(dy), dx = tril(dy).

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

struct Triangle final : Node {
  Triangle(bool upper, std::int64_t diagonal) : upper(upper), diagonal(diagonal) {}
  const bool upper;
  const std::int64_t diagonal;

  const OpInfo& info() const override {
    static constexpr OpInfo triu{.name = "triu",
                                 .formula = "y[i, j] = x[i, j] where j - i >= diagonal, else 0",
                                 .derivative = "dx = triu(dy)",
                                 .reference = "",
                                 .file = "autograd/ops/triu.cpp"};
    static constexpr OpInfo tril{.name = "tril",
                                 .formula = "y[i, j] = x[i, j] where j - i <= diagonal, else 0",
                                 .derivative = "dx = tril(dy)",
                                 .reference = "",
                                 .file = "autograd/ops/triu.cpp"};
    return upper ? triu : tril;
  }

  Tensors forward(const Tensors& in) const override {
    const Tensor x = dense(in[0]);
    Tensor y = Tensor::empty(x.shape(), x.dtype());
    const std::int64_t rows = x.size(-2), columns = x.size(-1);
    dispatch(x.dtype(), [&](auto t) {
      using T = decltype(t);
      const T* from = x.data<T>();
      T* to = y.mutable_data<T>();
      for (std::int64_t r = 0; columns > 0 && r < x.numel() / columns; ++r, from += columns, to += columns) {
        const std::int64_t i = r % rows;
        for (std::int64_t j = 0; j < columns; ++j) {
          to[j] = (upper ? j - i >= diagonal : j - i <= diagonal) ? from[j] : T{0};
        }
      }
    });
    return {y};
  }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    dx.add(0, upper ? triu(dy[0], diagonal) : tril(dy[0], diagonal));
  }
};

Tensor triangle(const Tensor& x, bool upper, std::int64_t diagonal) {
  check(x.dims() >= 2, upper ? "triu" : "tril", ": expected [..., rows, columns], got ", x.shape());
  return apply_op<Triangle>({x}, upper, diagonal)[0];
}

}  // namespace

Tensor triu(const Tensor& x, std::int64_t diagonal) { return triangle(x, true, diagonal); }
Tensor tril(const Tensor& x, std::int64_t diagonal) { return triangle(x, false, diagonal); }

}  // namespace prenorm
