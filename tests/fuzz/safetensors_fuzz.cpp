// Any bytes as a safetensors file: it is refused with an Error that names the file, or what it holds is written and
// read again as the same. Other exceptions, and what the sanitizers see, end the run.

#include <cstdlib>
#include <cstring>

#include "autograd/safetensors.h"
#include "memory_file.h"

namespace {

using namespace prenorm;

void require(bool ok) {
  if (!ok) std::abort();
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  const auto bytes = static_cast<std::size_t>(a.numel() * size_of(a.dtype()));
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (bytes == 0 || std::memcmp(a.storage()->data(), b.storage()->data(), bytes) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static MemoryFile file;
  static const std::string copy = "/dev/shm/safetensors_fuzz." + std::to_string(::getpid());
  SafetensorsFile first;
  try {
    first = read_safetensors(file.put(data, size));
  } catch (const Error& error) {
    require(std::strstr(error.what(), "read_safetensors: \"/proc/self/fd/") == error.what());
    return 0;
  }
  write_safetensors(copy, first.tensors, first.metadata);
  const SafetensorsFile second = read_safetensors(copy);
  ::unlink(copy.c_str());
  require(second.metadata == first.metadata && second.tensors.size() == first.tensors.size());
  for (const NamedTensor& named : first.tensors) require(same_bytes(named.tensor, second.find(named.path)));
  return 0;
}
