// What a step cannot do without, and nothing else: its matrix products, or for a norm its memory traffic.
//
//   bound WORKLOAD THREADS blas|split       see serve.h
//
// blas: with OpenBLAS's own threads. split: rows split over our threads, each calling single-threaded OpenBLAS. The
// smaller of the two is the bound. A norm moves five tensors (x, y; x, dy, dx), at the rate of memcpy between two
// buffers of 64 MiB.
#include <cblas.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "autograd/check.h"
#include "autograd/parallel.h"
#include "tests/bench/serve.h"
#include "tests/bench/workloads.h"

namespace prenorm::bench {
namespace {

class Products {
 public:
  Products(int threads, bool split) : threads_(threads), split_(split) {
    openblas_set_num_threads(split ? 1 : threads);
  }

  // y = x W^T, dx = dy W, dW = dy^T x.
  void linear(int rows, int in, int out) {
    gemm(rows, out, in, CblasNoTrans, CblasTrans);
    gemm(rows, in, out, CblasNoTrans, CblasNoTrans);
    gemm(out, in, rows, CblasTrans, CblasNoTrans);
  }

  // q k^T and p v of each head, forward and twice that backward.
  void attention(int heads, int T, int D) {
    parallel_for(threads_, [&](std::int64_t thread) {
      float *s = c_.data() + (thread << 20), *y = s + T * T;
      const auto [begin, end] = block_range(heads, threads_, thread);
      for (std::int64_t h = begin; h < end; ++h) {
        const float *q = a_.data() + h * T * D, *k = b_.data() + h * T * D;
        for (int round = 0; round < 3; ++round) {
          cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, T, T, D, 1, q, D, k, D, 0, s, T);
          cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, T, D, T, 1, s, T, k, D, 0, y, D);
        }
      }
    });
  }

 private:
  void gemm(int m, int n, int k, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb) {
    const int lda = ta == CblasNoTrans ? k : m, ldb = tb == CblasNoTrans ? n : k;
    const auto rows = [&](std::int64_t from, std::int64_t to) {
      const float* a = a_.data() + (ta == CblasNoTrans ? from * k : from);
      if (to > from)
        cblas_sgemm(CblasRowMajor, ta, tb, static_cast<int>(to - from), n, k, 1, a, lda, b_.data(), ldb, 0,
                    c_.data() + from * n, n);
    };
    if (!split_) return rows(0, m);
    parallel_for(threads_, [&](std::int64_t thread) {
      const auto [begin, end] = block_range(m, threads_, thread);
      rows(begin, end);
    });
  }

  int threads_;
  bool split_;
  std::vector<float> a_ = std::vector<float>(64 << 20, 0.01f), b_ = a_, c_ = std::vector<float>(64 << 20);
};

struct Sizes {
  const char* name;
  int L, B, T, C, F, H, V;
};

Step products(const std::string& workload, int threads, bool split) {
  static constexpr Sizes all[] = {{"tiny", 12, 32, 32, 64, 256, 4, 50},
                                  {"char", 4, 4, 64, 128, 512, 4, 97},
                                  {"encoder", 6, 8, 32, 512, 2048, 8, 0},
                                  {"gpt2", 12, 4, 64, 768, 3072, 12, 50257}};
  for (const Sizes& s : all) {
    if (workload != s.name) continue;
    return [s, p = std::make_shared<Products>(threads, split)]() -> std::optional<double> {
      const int rows = s.B * s.T;
      for (int layer = 0; layer < s.L; ++layer) {
        p->linear(rows, s.C, 3 * s.C);
        p->linear(rows, s.C, s.C);
        p->linear(rows, s.C, s.F);
        p->linear(rows, s.F, s.C);
        p->attention(s.B * s.H, s.T, s.C / s.H);
      }
      if (s.V != 0) p->linear(rows, s.C, s.V);
      return std::nullopt;
    };
  }
  fail("there is no bound for ", workload);
}

constexpr std::size_t kBuffer = 64ul << 20;

Step copy(int threads) {
  return [=, from = std::vector<char>(kBuffer, 1), to = std::vector<char>(kBuffer, 2)]() mutable {
    parallel_for(threads, [&](std::int64_t thread) {
      const auto [begin, end] = block_range(kBuffer, threads, thread);
      std::memcpy(to.data() + begin, from.data() + begin, end - begin);
    });
    return std::optional<double>();
  };
}

}  // namespace
}  // namespace prenorm::bench

int main(int argc, char** argv) try {
  using namespace prenorm;
  const std::string how = argc == 4 ? argv[3] : "";
  if (how != "blas" && how != "split") {
    std::fprintf(stderr, "usage: bound WORKLOAD THREADS blas|split\n");
    return 2;
  }
  const std::string workload = argv[1];
  const int threads = std::atoi(argv[2]);
  set_num_threads(threads);
  if (workload.find("norm") == std::string::npos) {
    bench::serve(bench::products(workload, threads, how == "split"), 2, how);
  } else {
    constexpr double kTraffic = 5.0 * 32 * 100 * 768 * sizeof(float), kCopied = 2.0 * bench::kBuffer;  // read, written
    bench::serve(bench::copy(threads), 2, how, kTraffic / kCopied);
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "bound: %s\n", error.what());
  return 2;
}
