// Files of named tensors and text, in the safetensors format: checkpoints, and data made by other programs.
//
//   8 bytes   length of the header, little-endian
//   header    JSON, padded with spaces to a multiple of 8 bytes:
//             {"__metadata__": {"key": "text"}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …}
//   data      little-endian, row-major, without gaps; offsets count from the end of the header
//
// A file is input from outside: everything it says is checked, and no memory is asked for on its word alone.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "autograd/tensor.h"

namespace prenorm {

using SafetensorsMetadata = std::map<std::string, std::string>;

struct SafetensorsFile {
  NamedTensors tensors;  // in the order of the header; contiguous, each with storage of its own
  SafetensorsMetadata metadata;

  // Undefined where the file has no tensor of that name.
  Tensor find(std::string_view name) const;
};

// Reads a whole file. Throws Error, naming file, tensor and reason, on a file that cannot be read, that is not valid in
// every detail, or that holds dtypes other than F32, F64, I64 and BOOL.
SafetensorsFile read_safetensors(const std::filesystem::path& path);

// Writes a whole file or, where it throws Error, nothing: a reader sees the old file or the new one, also when the
// process is killed or the machine stops (autograd/atomic_file.h). When it returns, the file is on the disk. Tensors of
// any strides are written in row-major order, values bit for bit.
void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const SafetensorsMetadata& metadata = {});

}  // namespace prenorm
