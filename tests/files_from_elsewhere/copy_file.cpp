// copy_file IN OUT: reads a file with this library and writes what it read, for check.py. The names' endings tell the
// format, .npy or .safetensors.

#include <cstdio>
#include <exception>
#include <string_view>

#include "autograd/npy.h"
#include "autograd/safetensors.h"

int main(int argc, char** argv) {
  using namespace prenorm;
  if (argc != 3) return 2;
  try {
    if (std::string_view(argv[1]).ends_with(".npy")) {
      write_npy(argv[2], read_npy(argv[1]));
    } else {
      const SafetensorsFile file = read_safetensors(argv[1]);
      write_safetensors(argv[2], file.tensors, file.metadata);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
