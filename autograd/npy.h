// Single tensors in NumPy's .npy format: what numpy.save writes and numpy.load reads.
//
//   6 bytes   "\x93NUMPY"
//   2 bytes   version: 1.0, 2.0 or 3.0
//   2 bytes   length of the header, little-endian; 4 bytes from version 2 on
//   header    text, padded with spaces and ended by a newline so that the data begin at a multiple of 64 bytes:
//             {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
//   data      without gaps
//
// A file is input from outside: everything it says is checked, and no memory is asked for on its word alone.
#pragma once

#include <filesystem>

#include "autograd/tensor.h"

namespace prenorm {

// Reads float32, float64, int64 and bool, in either byte order, row-major or column-major (Fortran order), of version
// 1 to 3. The tensor is row-major and contiguous. Throws Error, naming file and reason, on a file that cannot be read,
// that is not valid in every detail, or that holds another dtype.
Tensor read_npy(const std::filesystem::path& path);

// Writes a whole file of version 1.0 or, where it throws Error, nothing (autograd/atomic_file.h). A tensor of any
// strides is written in row-major order, values bit for bit.
void write_npy(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace prenorm
