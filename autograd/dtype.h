// Element types, known at run time. Maths never promotes one to another silently; `to(x, dtype)` converts.
#pragma once

#include <cstdint>
#include <ostream>
#include <string_view>
#include <type_traits>

#include "autograd/check.h"

namespace prenorm {

enum class DType : std::uint8_t { float32, float64, int64, boolean };

inline constexpr DType float32 = DType::float32;  // training
inline constexpr DType float64 = DType::float64;  // checks
inline constexpr DType int64 = DType::int64;      // token ids
inline constexpr DType boolean = DType::boolean;  // masks; one byte, 0 or 1

inline std::string_view name(DType dtype) {
  constexpr std::string_view names[] = {"float32", "float64", "int64", "bool"};
  return names[static_cast<int>(dtype)];
}
inline std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name(dtype); }

inline std::int64_t size_of(DType dtype) {
  constexpr std::int64_t sizes[] = {4, 8, 8, 1};
  return sizes[static_cast<int>(dtype)];
}
inline bool is_float(DType dtype) { return dtype == float32 || dtype == float64; }

template <class T>
constexpr DType dtype_of() {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, std::int64_t> ||
                    std::is_same_v<T, bool>,
                "tensors hold float, double, std::int64_t or bool");
  if constexpr (std::is_same_v<T, float>) return float32;
  if constexpr (std::is_same_v<T, double>) return float64;
  if constexpr (std::is_same_v<T, std::int64_t>) return int64;
  return boolean;
}

// Calls f(T{}) with the C++ type of `dtype`:
//   dispatch_float("exp", x.dtype(), [&](auto t) { using T = decltype(t); … })
template <class F>
decltype(auto) dispatch_float(std::string_view op, DType dtype, F&& f) {
  if (dtype == float32) return f(float{});
  check(dtype == float64, op, ": expected float32 or float64, got ", dtype);
  return f(double{});
}

// The same for numbers: float32, float64 and int64.
template <class F>
decltype(auto) dispatch_number(std::string_view op, DType dtype, F&& f) {
  if (dtype == int64) return f(std::int64_t{});
  check(dtype != boolean, op, ": expected a tensor of numbers, got bool");
  return dispatch_float(op, dtype, f);
}

// The same for all four.
template <class F>
decltype(auto) dispatch(DType dtype, F&& f) {
  if (dtype == boolean) return f(bool{});
  return dispatch_number("dispatch", dtype, f);
}

}  // namespace prenorm
