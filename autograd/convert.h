// One number as another dtype, defined for every value.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

namespace prenorm {

// Floating-point numbers lose their fraction on the way to int64; NaN and what int64 cannot hold become its lowest
// value, where C++ leaves it open (and processors differ). Numbers become bool by x != 0, so NaN is true.
template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<To, std::int64_t> && std::is_floating_point_v<From>) {
    constexpr From limit = static_cast<From>(std::uint64_t{1} << 63);  // 2^63, exact in both types
    if (!(value >= -limit && value < limit)) return std::numeric_limits<std::int64_t>::min();
  }
  return static_cast<To>(value);
}

}  // namespace prenorm
