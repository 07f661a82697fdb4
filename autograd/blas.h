// Matrix products: the only door to BLAS.
//
// All matrices are row-major. Works with any BLAS (Fortran symbols); OpenBLAS is set to one thread at the first use,
// for good, because its own threads do not scale on small products and spin between calls. Products are cut along the
// rows or columns of C instead, never along the sum, and the pieces run through parallel_for. How a product is cut
// depends on its shape and num_threads() alone, so the same call at the same setting gives the same bits.
#pragma once

#include <cstdint>

namespace prenorm {

// C = alpha op(A) op(B) + beta C, where C is [m, n], op(A) is [m, k] and op(B) is [k, n]. T is float or double.
//
// trans_a: A is stored as [k, m] and op(A) is its transpose, else A is stored as [m, k]; likewise B, [n, k] or [k, n].
// lda, ldb, ldc: elements from one row as stored to the next, at least the length of a row; any of the sizes and
// strides may exceed 32 bits. C must not overlap A or B. With beta == 0 what C held is not read: NaN does not spread.
// k == 0 gives C = beta C. Error: a negative size, or a stride shorter than a row.
template <class T>
void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b,
          int64_t ldb, T beta, T* c, int64_t ldc);

// `batch` products of one shape: the matrices of product i start at a + i * step_a, b + i * step_b and c + i * step_c.
// A step of 0 for A or B uses the same matrix again; the matrices of C must not overlap. Otherwise as gemm.
template <class T>
void batched_gemm(int64_t batch, bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a,
                  int64_t lda, int64_t step_a, const T* b, int64_t ldb, int64_t step_b, T beta, T* c, int64_t ldc,
                  int64_t step_c);

namespace detail {

// The arguments of gemm.
template <class T>
struct Product {
  bool trans_a, trans_b;
  int64_t m, n, k;
  T alpha;
  const T* a;
  int64_t lda;
  const T* b;
  int64_t ldb;
  T beta;
  T* c;
  int64_t ldc;
};

// Runs a product of non-empty matrices on the calling thread, in calls to BLAS whose sizes and strides are at most
// `limit`: the largest 32-bit number, but tests take a small one.
template <class T>
void run_within(const Product<T>& p, int64_t limit);

}  // namespace detail
}  // namespace prenorm
