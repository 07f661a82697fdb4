// y = a @ b: y[.., i, j] = sum_k a[.., i, k] b[.., k, j], batch dimensions broadcast.
//
//   a[i, k] meets b[k, j] in every y[i, j] of its row:  da[i, k] = sum_j dy[i, j] b[k, j], so da = dy b^T.
//   b[k, j] meets a[i, k] in every y[i, j] of its column: db[k, j] = sum_i a[i, k] dy[i, j], so db = a^T dy.
//   A matrix that was used for several batch entries collects from all of them (sum_to).

#include "autograd/blas.h"
#include "autograd/node.h"
#include "autograd/ops/pointwise.h"

namespace prenorm {
namespace {

// A tensor whose last two dimensions BLAS can read as a matrix: as it is where one of them steps by 1, else a copy.
struct Matrices {
  explicit Matrices(const Tensor& x) : tensor(x) {
    if (fits(-2, -1)) {
      leading = tensor.strides()[tensor.dims() - 2];
    } else if (fits(-1, -2)) {
      transposed = true;
      leading = tensor.strides()[tensor.dims() - 1];
    } else {
      tensor = dense(x);
      leading = tensor.size(-1);
    }
    leading = std::max(leading, tensor.size(transposed ? -2 : -1));  // a single row may have any stride
    batch = tensor.view(Shape(tensor.shape().begin(), tensor.shape().end() - 2),
                        Strides(tensor.strides().begin(), tensor.strides().end() - 2));
  }

  Tensor tensor;
  bool transposed = false;
  std::int64_t leading = 0;
  Tensor batch;  // the first elements of all matrices

 private:
  bool fits(std::int64_t rows, std::int64_t columns) const {
    const auto stride = [&](std::int64_t d) { return tensor.strides()[tensor.dims() + d]; };
    return (stride(columns) == 1 || tensor.size(columns) <= 1) &&
           (stride(rows) >= tensor.size(columns) || tensor.size(rows) <= 1);
  }
};

template <class T>
Tensor product(const Tensor& a, const Tensor& b) {
  const Shape batch = broadcast_shapes("matmul", Shape(a.shape().begin(), a.shape().end() - 2),
                                       Shape(b.shape().begin(), b.shape().end() - 2));
  const std::int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1);
  Shape shape = batch;
  shape.push_back(m);
  shape.push_back(n);
  Tensor y = Tensor::empty(shape, a.dtype());  // before operands are copied: a shape that overflows costs no memory
  if (y.numel() == 0) return y;
  const Matrices left(a), right(b);
  const Broadcast loop(batch, left.batch, right.batch);
  for (std::int64_t row = 0; row < loop.rows; ++row) {
    const auto [offset_a, offset_b] = loop.at(row);
    batched_gemm<T>(loop.n, left.transposed, right.transposed, m, n, k, T{1}, left.tensor.data<T>() + offset_a,
                    left.leading, loop.stride_a, right.tensor.data<T>() + offset_b, right.leading, loop.stride_b, T{0},
                    y.mutable_data<T>() + row * loop.n * m * n, n, m * n);
  }
  return y;
}

struct MatMul final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{.name = "matmul",
                                 .formula = "y = a @ b",
                                 .derivative = "da = dy @ b^T; db = a^T @ dy",
                                 .reference = "",
                                 .file = "autograd/ops/matmul.cpp"};
    return info;
  }

  Tensors forward(const Tensors& in) const override {
    return {dispatch_float("matmul", in[0].dtype(), [&](auto t) { return product<decltype(t)>(in[0], in[1]); })};
  }

  Saves saves() const override { return factors(); }

  void backward(const Tensors& dy, GradientSink& dx) const override {
    if (dx.needs(0)) dx.add(0, sum_to(matmul(dy[0], transpose(input(1), -2, -1)), input_shape(0)));
    if (!dx.needs(1)) return;
    const Shape& b = input_shape(1);
    if (b.dims() == 2) {  // one matrix for the whole batch: one product over all rows instead of a sum of products
      const std::int64_t R = numel(Shape(dy[0].shape().begin(), dy[0].shape().end() - 1));
      const Tensor rows = reshape(input(0), {R, b[0]}), dy_rows = reshape(dy[0], {R, b[1]});
      dx.add(1, matmul(transpose(rows, 0, 1), dy_rows));
    } else {
      dx.add(1, sum_to(matmul(transpose(input(0), -2, -1), dy[0]), b));
    }
  }
};

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  check_same_dtype("matmul", a, b);
  check(a.dims() >= 1 && b.dims() >= 1, "matmul: operands need a dimension to sum over, got ", a.shape(), " @ ",
        b.shape());
  // A vector on the left is one row, on the right one column; that dimension vanishes again from the result.
  const Tensor left = a.dims() == 1 ? unsqueeze(a, 0) : a;
  const Tensor right = b.dims() == 1 ? unsqueeze(b, 1) : b;
  check(left.size(-1) == right.size(-2), "matmul: inner sizes differ: ", a.shape(), " @ ", b.shape(), ", expected ",
        left.size(-1), " rows on the right");
  Tensor y = apply_op<MatMul>({left, right})[0];
  if (b.dims() == 1) y = squeeze(y, -1);
  if (a.dims() == 1) y = squeeze(y, b.dims() == 1 ? -1 : -2);
  return y;
}

}  // namespace prenorm
