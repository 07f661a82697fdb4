// What reader and writer of the safetensors format both know.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

#include "autograd/dtype.h"

namespace prenorm::safetensors {

static_assert(std::endian::native == std::endian::little, "the format is little-endian; bytes are copied as they are");

constexpr std::uint64_t kMaxHeader = 100'000'000;  // the reference implementation's limit, too
constexpr std::string_view kMetadata = "__metadata__";

struct FormatDType {
  std::string_view name;
  DType dtype;
};
constexpr std::array<FormatDType, 4> kDTypes{{{"F32", float32}, {"F64", float64}, {"I64", int64}, {"BOOL", boolean}}};

constexpr std::string_view format_name(DType dtype) {
  for (const FormatDType& known : kDTypes)
    if (known.dtype == dtype) return known.name;
  return {};
}

}  // namespace prenorm::safetensors
