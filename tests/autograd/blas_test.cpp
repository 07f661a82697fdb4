#include "autograd/blas.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "autograd/check.h"
#include "autograd/parallel.h"

using namespace prenorm;

namespace {

class Threads {
 public:
  explicit Threads(int n) : before_(num_threads()) { set_num_threads(n); }
  ~Threads() { set_num_threads(before_); }

 private:
  int before_;
};

template <class T>
std::vector<T> random_values(int64_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<T> uniform(-1, 1);
  std::vector<T> values(static_cast<std::size_t>(n));
  for (T& value : values) value = uniform(generator);
  return values;
}

template <class T>
constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();

// One product with operands of its own. `extra` widens every stride beyond the length of a row.
template <class T>
struct Case {
  bool trans_a, trans_b;
  int64_t m, n, k, extra = 0;
  T alpha = 1, beta = 0;

  int64_t lda() const { return (trans_a ? m : k) + extra; }
  int64_t ldb() const { return (trans_b ? k : n) + extra; }
  int64_t ldc() const { return n + extra; }
  std::vector<T> a() const { return random_values<T>((trans_a ? k : m) * lda(), 1); }
  std::vector<T> b() const { return random_values<T>((trans_b ? n : k) * ldb(), 2); }
  // NaN where it must not be read: all of C if beta is 0.
  std::vector<T> c() const {
    return beta == 0 ? std::vector<T>(static_cast<std::size_t>(m * ldc()), kNaN<T>) : random_values<T>(m * ldc(), 3);
  }

  std::vector<T> run() const {
    const std::vector<T> av = a(), bv = b();
    std::vector<T> cv = c();
    gemm(trans_a, trans_b, m, n, k, alpha, av.data(), lda(), bv.data(), ldb(), beta, cv.data(), ldc());
    return cv;
  }

  // Largest |result - expected|, in units of the rounding error k terms may add up to; inf if the gaps between rows of
  // C were touched.
  double error(const std::vector<T>& result) const {
    const std::vector<T> av = a(), bv = b(), before = c();
    const auto at = [](const std::vector<T>& v, int64_t i) { return v[static_cast<std::size_t>(i)]; };
    const double unit = static_cast<double>(std::numeric_limits<T>::epsilon()) * static_cast<double>(k + 4);
    double worst = 0;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l) {
          sum += static_cast<double>(at(av, trans_a ? l * lda() + i : i * lda() + l)) *
                 static_cast<double>(at(bv, trans_b ? j * ldb() + l : l * ldb() + j));
        }
        double expected = static_cast<double>(alpha) * sum;
        if (beta != 0) expected += static_cast<double>(beta) * static_cast<double>(at(before, i * ldc() + j));
        const double error = std::abs(static_cast<double>(at(result, i * ldc() + j)) - expected) / unit;
        if (!(error <= worst)) worst = error;  // keeps NaN
      }
      for (int64_t j = n; j < ldc(); ++j) {
        const T was = at(before, i * ldc() + j), is = at(result, i * ldc() + j);
        if (!(was == is || (std::isnan(was) && std::isnan(is)))) return std::numeric_limits<double>::infinity();
      }
    }
    return worst;
  }
};

template <class T>
void check_case(const Case<T>& p) {
  CAPTURE(p.trans_a);
  CAPTURE(p.trans_b);
  CAPTURE(p.m);
  CAPTURE(p.n);
  CAPTURE(p.k);
  CAPTURE(p.extra);
  CAPTURE(p.alpha);
  CAPTURE(p.beta);
  CHECK(p.error(p.run()) <= 2);
}

}  // namespace

TEST_CASE_TEMPLATE("gemm agrees with a triple loop for odd sizes and all transposes", T, float, double) {
  const Threads setting(2);
  const int64_t sizes[] = {0, 1, 2, 3, 7, 33, 129};
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      for (const int64_t m : sizes) {
        for (const int64_t n : sizes) {
          for (const int64_t k : sizes) check_case(Case<T>{trans_a, trans_b, m, n, k, (m + n + k) % 3});
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("gemm scales by alpha and beta", T, float, double) {
  for (const T alpha : {T{1}, T{-0.5}, T{0}}) {
    for (const T beta : {T{0}, T{1}, T{2.5}}) {
      for (const int64_t k : {0, 1, 40}) check_case(Case<T>{false, true, 9, 17, k, 2, alpha, beta});
    }
  }
}

TEST_CASE_TEMPLATE("gemm cuts large products right", T, float, double) {
  for (const int threads : {1, 2, 3, 7}) {
    const Threads setting(threads);
    for (const bool trans_a : {false, true}) {
      for (const bool trans_b : {false, true}) {
        check_case(Case<T>{trans_a, trans_b, 515, 67, 64});                  // by rows
        check_case(Case<T>{trans_a, trans_b, 67, 515, 64, 1});               // by columns
        check_case(Case<T>{trans_a, trans_b, 200, 50, 301, 0, T{2}, T{1}});  // into small-kernel pieces
      }
    }
  }
}

TEST_CASE("gemm gives the same bits again, within a parallel region too") {
  for (const int threads : {1, 2, 3}) {
    const Threads setting(threads);
    CAPTURE(threads);
    for (const auto& p : {Case<float>{false, false, 1024, 64, 192}, Case<float>{true, false, 192, 64, 1024},
                          Case<float>{false, true, 300, 301, 77}}) {
      const std::vector<float> first = p.run();
      for (int i = 0; i < 5; ++i) CHECK(p.run() == first);
      std::vector<float> nested[3];
      parallel_for(3, [&](int64_t i) { nested[i] = p.run(); });
      for (const auto& result : nested) CHECK(result == first);
    }
  }
}

TEST_CASE("gemm refuses sizes and strides that cannot be") {
  const std::vector<float> a(64), b(64);
  std::vector<float> c(64);
  const auto run = [&](int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc, bool trans = false) {
    gemm(trans, trans, m, n, k, 1.0f, a.data(), lda, b.data(), ldb, 0.0f, c.data(), ldc);
  };
  CHECK_NOTHROW(run(2, 3, 4, 4, 3, 3));
  CHECK_NOTHROW(run(2, 3, 4, 2, 4, 3, true));
  CHECK_THROWS_WITH_AS(run(2, 3, 4, 3, 3, 3), "gemm: rows of A are 3 elements apart, expected at least their length, 4",
                       Error);
  CHECK_THROWS_AS(run(2, 3, 4, 4, 2, 3), Error);
  CHECK_THROWS_AS(run(2, 3, 4, 4, 3, 2), Error);
  CHECK_THROWS_AS(run(2, 3, 4, 1, 4, 3, true), Error);
  CHECK_THROWS_AS(run(2, 3, 4, 2, 3, 3, true), Error);
  CHECK_THROWS_WITH_AS(run(2, -3, 4, 4, 3, 3), "gemm: got sizes m = 2, n = -3, k = 4, expected none below 0", Error);
}

// Products beyond 32 bits do not fit in a test; the same cuts at a limit of a few elements do.
TEST_CASE_TEMPLATE("products with sizes or strides beyond the limit of BLAS are cut", T, float, double) {
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      for (const int64_t extra : {0, 5}) {
        for (const int64_t limit : {1, 2, 3, 7, 11, 14, 100}) {
          const Case<T> p{trans_a, trans_b, 7, 9, 11, extra, T{0.5}, T{2}};
          const std::vector<T> a = p.a(), b = p.b();
          std::vector<T> c = p.c();
          detail::run_within<T>({trans_a, trans_b, p.m, p.n, p.k, p.alpha, a.data(), p.lda(), b.data(), p.ldb(), p.beta,
                                 c.data(), p.ldc()},
                                limit);
          CAPTURE(trans_a);
          CAPTURE(trans_b);
          CAPTURE(extra);
          CAPTURE(limit);
          CHECK(p.error(c) <= 2);
        }
      }
    }
  }
}

TEST_CASE("a stride beyond 32 bits is no obstacle") {
  constexpr int64_t kFar = int64_t{1} << 40;
  const std::vector<float> a{1, 2}, b{3, 4, 5, 6};
  std::vector<float> c(2);
  gemm(false, false, 1, 2, 2, 1.0f, a.data(), kFar, b.data(), 2, 0.0f, c.data(), kFar);  // one row: no second to reach
  CHECK(c == std::vector<float>{13, 16});
}

TEST_CASE_TEMPLATE("batched_gemm equals one gemm an item", T, float, double) {
  struct Shape {
    int64_t batch, m, n, k;
  };
  for (const int threads : {1, 2, 3}) {
    const Threads setting(threads);
    for (const Shape s : {Shape{0, 4, 4, 4}, Shape{1, 5, 6, 7}, Shape{2, 150, 90, 120}, Shape{5, 90, 64, 200},
                          Shape{128, 32, 32, 16}, Shape{40, 1, 3, 0}, Shape{3, 0, 2, 2}}) {
      for (const bool trans : {false, true}) {
        for (const bool share_a : {false, true}) {
          for (const bool share_b : {false, true}) {
            const int64_t batch = s.batch, m = s.m, n = s.n, k = s.k;
            const int64_t lda = trans ? m : k, ldb = trans ? k : n, ldc = n + 1;
            const int64_t step_a = share_a ? 0 : m * k, step_b = share_b ? 0 : k * n, step_c = m * ldc + 3;
            const std::vector<T> a = random_values<T>(batch * m * k, 4), b = random_values<T>(batch * k * n, 5);
            std::vector<T> c = random_values<T>(batch * step_c, 6), expected = c;
            batched_gemm(batch, trans, trans, m, n, k, T{2}, a.data(), lda, step_a, b.data(), ldb, step_b, T{0.5},
                         c.data(), ldc, step_c);
            for (int64_t i = 0; i < batch; ++i) {
              gemm(trans, trans, m, n, k, T{2}, a.data() + i * step_a, lda, b.data() + i * step_b, ldb, T{0.5},
                   expected.data() + i * step_c, ldc);
            }
            double worst = 0;
            for (std::size_t i = 0; i < c.size(); ++i) {
              worst = std::max(worst, static_cast<double>(std::abs(c[i] - expected[i])));
            }
            CAPTURE(threads);
            CAPTURE(batch);
            CAPTURE(m);
            CHECK(worst <= 4 * std::numeric_limits<T>::epsilon() * static_cast<double>(k));

            std::vector<T> again = random_values<T>(batch * step_c, 6);
            batched_gemm(batch, trans, trans, m, n, k, T{2}, a.data(), lda, step_a, b.data(), ldb, step_b, T{0.5},
                         again.data(), ldc, step_c);
            CHECK(again == c);
          }
        }
      }
    }
  }
}

TEST_CASE("batched_gemm passes errors on") {
  const std::vector<float> a(64);
  std::vector<float> c(64);
  CHECK_THROWS_AS(batched_gemm(4, false, false, 2, 2, 2, 1.0f, a.data(), 1, 4, a.data(), 2, 4, 0.0f, c.data(), 2, 4),
                  Error);
  CHECK_THROWS_WITH_AS(
      batched_gemm(-1, false, false, 2, 2, 2, 1.0f, a.data(), 2, 4, a.data(), 2, 4, 0.0f, c.data(), 2, 4),
      "batched_gemm: got batch -1, expected none below 0", Error);
}
