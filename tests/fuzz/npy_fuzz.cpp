// Any bytes as an .npy file: it is refused with an Error that names the file, or what it holds is written and read
// again as the same. Other exceptions, and what the sanitizers see, end the run.

#include <cstdlib>
#include <cstring>

#include "autograd/npy.h"
#include "memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace prenorm;
  static MemoryFile file;
  static const std::string copy = "/dev/shm/npy_fuzz." + std::to_string(::getpid());
  Tensor first;
  try {
    first = read_npy(file.put(data, size));
  } catch (const Error& error) {
    if (std::strstr(error.what(), "read_npy: \"/proc/self/fd/") != error.what()) std::abort();
    return 0;
  }
  write_npy(copy, first);
  const Tensor second = read_npy(copy);
  ::unlink(copy.c_str());
  const auto bytes = static_cast<std::size_t>(first.numel() * size_of(first.dtype()));
  if (first.shape() != second.shape() || first.dtype() != second.dtype()) std::abort();
  if (bytes > 0 && std::memcmp(first.storage()->data(), second.storage()->data(), bytes) != 0) std::abort();
  return 0;
}
