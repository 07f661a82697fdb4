#include "autograd/blas.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string_view>
#include <type_traits>

#include "autograd/check.h"
#include "autograd/parallel.h"

extern "C" {
// The lengths of the two strings come last, as Fortran compilers pass them; a BLAS written in C ignores them.
void sgemm_(const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k, const float* alpha,
            const float* a, const int* lda, const float* b, const int* ldb, const float* beta, float* c, const int* ldc,
            std::size_t, std::size_t);
void dgemm_(const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k, const double* alpha,
            const double* a, const int* lda, const double* b, const int* ldb, const double* beta, double* c,
            const int* ldc, std::size_t, std::size_t);
// Null when the BLAS is not OpenBLAS.
[[gnu::weak]] void openblas_set_num_threads(int n);
[[gnu::weak]] char* openblas_get_corename();
}

namespace prenorm {
namespace {

using detail::Product;

// A product of at most this many multiplications runs in OpenBLAS's small-matrix kernels, where it has them: they read
// A and B in place, while the others copy both into packed panels first.
constexpr double kSmallKernelWork = 1e6;
// A piece should take some microseconds, or handing it to another thread costs more than it gains.
constexpr double kMinPieceWork = 5e5;
// Above this there are two pieces a thread rather than one: packing costs little against the work, and a thread that
// starts late or is slowed down by another process can take fewer of them.
constexpr double kLargePieceWork = 8e6;

struct Blas {
  bool small_kernels;  // has small-matrix kernels for float that pay: OpenBLAS on cores with AVX-512
};

// The BLAS, set up at the first use.
const Blas& blas() {
  static const Blas blas = [] {
    if (openblas_set_num_threads) openblas_set_num_threads(1);
    const std::string_view core = openblas_get_corename ? openblas_get_corename() : "";
    return Blas{.small_kernels = core == "SkylakeX" || core == "Cooperlake" || core == "SapphireRapids"};
  }();
  return blas;
}

double work(int64_t m, int64_t n, int64_t k) {
  return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

// The part of a product that gives rows [begin, begin + size) of C.
template <class T>
Product<T> rows_of(Product<T> p, int64_t begin, int64_t size) {
  p.a += p.trans_a ? begin : begin * p.lda;
  p.c += begin * p.ldc;
  p.m = size;
  return p;
}

// The part that gives columns [begin, begin + size) of C.
template <class T>
Product<T> columns_of(Product<T> p, int64_t begin, int64_t size) {
  p.b += p.trans_b ? begin * p.ldb : begin;
  p.c += begin;
  p.n = size;
  return p;
}

// The part of the sum over [begin, begin + size); the first part scales C, the others add to it.
template <class T>
Product<T> terms_of(Product<T> p, int64_t begin, int64_t size) {
  p.a += p.trans_a ? begin * p.lda : begin;
  p.b += p.trans_b ? begin : begin * p.ldb;
  p.k = size;
  if (begin > 0) p.beta = 1;
  return p;
}

// One call to BLAS, which is column-major: what it sees in the same memory is C^T = op(B)^T op(A)^T.
template <class T>
void call(const Product<T>& p) {
  const auto fortran_gemm = [] {
    if constexpr (std::is_same_v<T, float>)
      return sgemm_;
    else
      return dgemm_;
  }();
  const int m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
  const int lda = static_cast<int>(p.lda), ldb = static_cast<int>(p.ldb), ldc = static_cast<int>(p.ldc);
  fortran_gemm(p.trans_b ? "T" : "N", p.trans_a ? "T" : "N", &n, &m, &k, &p.alpha, p.b, &ldb, p.a, &lda, &p.beta, p.c,
               &ldc, 1, 1);
}

// C = beta C.
template <class T>
void scale(const Product<T>& p) {
  for (int64_t i = 0; i < p.m; ++i) {
    T* row = p.c + i * p.ldc;
    if (p.beta == 0)
      std::fill_n(row, p.n, T{0});
    else
      std::transform(row, row + p.n, row, [&](T c) { return p.beta * c; });
  }
}

template <class T>
void check_arguments(const Product<T>& p) {
  check(p.m >= 0 && p.n >= 0 && p.k >= 0, "gemm: got sizes m = ", p.m, ", n = ", p.n, ", k = ", p.k,
        ", expected none below 0");
  const auto check_stride = [](char name, int64_t stride, int64_t row) {
    check(stride >= row, "gemm: rows of ", name, " are ", stride, " elements apart, expected at least their length, ",
          row);
  };
  check_stride('A', p.lda, p.trans_a ? p.m : p.k);
  check_stride('B', p.ldb, p.trans_b ? p.k : p.n);
  check_stride('C', p.ldc, p.n);
}

// How a product is cut: along the rows (m) or the columns (n) of C, into pieces of `size`, the last perhaps smaller.
struct Cut {
  bool by_rows;
  int64_t size;
};

template <class T>
Cut cut_for(const Product<T>& p, int threads) {
  const double total = work(p.m, p.n, p.k);
  double pieces = 1;
  if (threads > 1) {
    pieces = std::max(std::min(total / kMinPieceWork, 1.0 * threads), std::min(total / kLargePieceWork, 2.0 * threads));
  }
  // Each piece packs the whole of the other matrix again, so the longer side is cut; between equals, columns cost less.
  bool by_rows = p.m >= 2 * p.n;
  int64_t unit = 16;  // a multiple of the tiles that kernels compute
  // Small-matrix kernels gain 10 to 30 % while the part of B they go over stays in the first cache, and lose beyond
  // that or where B is transposed.
  const bool b_is_small = !p.trans_b && (p.n <= 64 || p.n * p.k <= 12 * 1024);
  if (std::is_same_v<T, float> && blas().small_kernels && b_is_small && total > kSmallKernelWork) {
    constexpr int64_t kTile = 12;
    const int64_t max_rows = static_cast<int64_t>(kSmallKernelWork / work(1, p.n, p.k)) / kTile * kTile;
    if (max_rows > 0) {
      by_rows = true;
      unit = kTile;
      const int64_t least_pieces = (p.m - 1) / max_rows + 1;
      pieces = std::max(pieces, static_cast<double>(least_pieces));
    }
  }
  const int64_t length = by_rows ? p.m : p.n;
  if (pieces < 2) return {by_rows, length};
  return {by_rows, ((length - 1) / static_cast<int64_t>(pieces) / unit + 1) * unit};
}

template <class T>
void run(const Product<T>& p, Cut cut) {
  if (p.m == 0 || p.n == 0) return;
  if (p.k == 0) return scale(p);
  constexpr int64_t kLimit = std::numeric_limits<int>::max();
  const int64_t length = cut.by_rows ? p.m : p.n;
  if (cut.size >= length) return detail::run_within(p, kLimit);
  parallel_for((length - 1) / cut.size + 1, [&](int64_t piece) {
    const int64_t begin = piece * cut.size, size = std::min(cut.size, length - begin);
    detail::run_within(cut.by_rows ? rows_of(p, begin, size) : columns_of(p, begin, size), kLimit);
  });
}

}  // namespace

template <class T>
void detail::run_within(const Product<T>& p, int64_t limit) {
  blas();
  // Where rows as stored are too far apart for BLAS, it gets one at a time, and the stride no longer matters.
  const bool far_a = p.lda > limit, far_b = p.ldb > limit, far_c = p.ldc > limit;
  const int64_t m_step = far_c || (far_a && !p.trans_a) ? 1 : std::min(p.m, limit);
  const int64_t n_step = far_b && p.trans_b ? 1 : std::min(p.n, limit);
  const int64_t k_step = (far_a && p.trans_a) || (far_b && !p.trans_b) ? 1 : std::min(p.k, limit);
  for (int64_t i = 0; i < p.m; i += m_step) {
    const Product<T> rows = rows_of(p, i, std::min(m_step, p.m - i));
    for (int64_t j = 0; j < p.n; j += n_step) {
      const Product<T> tile = columns_of(rows, j, std::min(n_step, p.n - j));
      for (int64_t l = 0; l < p.k; l += k_step) {
        Product<T> part = terms_of(tile, l, std::min(k_step, p.k - l));
        part.lda = std::min(part.lda, limit);
        part.ldb = std::min(part.ldb, limit);
        part.ldc = std::min(part.ldc, limit);
        call(part);
      }
    }
  }
}

template <class T>
void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b,
          int64_t ldb, T beta, T* c, int64_t ldc) {
  const Product<T> p{trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc};
  check_arguments(p);
  run(p, cut_for(p, num_threads()));
}

template <class T>
void batched_gemm(int64_t batch, bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a,
                  int64_t lda, int64_t step_a, const T* b, int64_t ldb, int64_t step_b, T beta, T* c, int64_t ldc,
                  int64_t step_c) {
  check(batch >= 0, "batched_gemm: got batch ", batch, ", expected none below 0");
  const Product<T> first{trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc};
  check_arguments(first);
  const auto run_items = [&](int64_t begin, int64_t end, Cut cut) {
    for (int64_t i = begin; i < end; ++i) {
      Product<T> item = first;
      item.a += i * step_a;
      item.b += i * step_b;
      item.c += i * step_c;
      run(item, cut);
    }
  };
  const int threads = num_threads();
  const double wanted = std::min(static_cast<double>(batch) * work(m, n, k) / kMinPieceWork, 4.0 * threads);
  // Too few items to go round, or too little work: one by one, each cut within if it is large.
  if (batch < threads || wanted < 2) return run_items(0, batch, cut_for(first, threads));
  const int64_t blocks = std::min(batch, static_cast<int64_t>(wanted));
  parallel_for(blocks, [&](int64_t block) {
    const auto [begin, end] = block_range(batch, blocks, block);
    run_items(begin, end, cut_for(first, 1));
  });
}

template void gemm(bool, bool, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t, float,
                   float*, int64_t);
template void gemm(bool, bool, int64_t, int64_t, int64_t, double, const double*, int64_t, const double*, int64_t,
                   double, double*, int64_t);
template void batched_gemm(int64_t, bool, bool, int64_t, int64_t, int64_t, float, const float*, int64_t, int64_t,
                           const float*, int64_t, int64_t, float, float*, int64_t, int64_t);
template void batched_gemm(int64_t, bool, bool, int64_t, int64_t, int64_t, double, const double*, int64_t, int64_t,
                           const double*, int64_t, int64_t, double, double*, int64_t, int64_t);
template void detail::run_within(const Product<float>&, int64_t);
template void detail::run_within(const Product<double>&, int64_t);

}  // namespace prenorm
