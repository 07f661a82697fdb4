// PRENORM_VECTORIZED marks a row kernel that is compiled for several vector widths; the best one for the processor is
// chosen when the program is loaded, so one binary runs everywhere and uses AVX-512 where there is any.
//
//   template <class T>
//   PRENORM_VECTORIZED void scale(int64_t n, T factor, const T* x, T* y) {
//   #pragma omp simd
//     for (int64_t i = 0; i < n; ++i) y[i] = factor * x[i];
//   }
//
// It goes on free functions and function templates that hold the loop themselves: a lambda or a function called from
// the loop is compiled wide only if it is inlined (those of vec_math.h are). Loops over floating-point numbers need
// `#pragma omp simd`, with reduction(+ : sum) where they add up. Call such a function on a whole row or block, as the
// call goes through a pointer. The versions may differ in the last bits (the wide ones use fused multiply-adds), but
// one machine always takes the same one.
#pragma once

// GCC on x86-64 Linux only: Clang 14 takes no clones on templates. Not under ThreadSanitizer, whose instrumentation
// runs in the function that chooses, before its runtime is ready; AddressSanitizer and UBSan are fine.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define PRENORM_VECTORIZED __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define PRENORM_VECTORIZED
#endif
