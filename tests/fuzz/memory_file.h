// A file of given bytes that needs no disk, for readers that take a path.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

// Made once; each put() replaces what it holds.
class MemoryFile {
 public:
  MemoryFile() : number_(::memfd_create("fuzz", 0)), path_("/proc/self/fd/" + std::to_string(number_)) {
    if (number_ < 0) std::abort();
  }
  ~MemoryFile() { ::close(number_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  const std::string& put(const std::uint8_t* data, std::size_t size) {
    if (::ftruncate(number_, 0) != 0) std::abort();
    for (std::size_t done = 0; done < size;) {
      const ssize_t written = ::pwrite(number_, data + done, size - done, static_cast<off_t>(done));
      if (written <= 0) std::abort();
      done += static_cast<std::size_t>(written);
    }
    return path_;
  }

 private:
  int number_;
  std::string path_;
};
