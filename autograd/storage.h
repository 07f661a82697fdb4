// Memory of tensors: a reference-counted buffer with a version, from an allocator that keeps freed buffers for reuse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace prenorm {

// A buffer. All tensors that view it share it, and with it the version: each write through any of them counts it up,
// so that a node can tell whether a value that it saved is still the one it saw.
class Storage {
 public:
  // 64-byte aligned, contents undefined. Throws Error when the system has no memory left.
  static std::shared_ptr<Storage> allocate(std::int64_t bytes);
  explicit Storage(std::size_t bytes);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  std::uint64_t version() const { return version_; }
  void count_write() { ++version_; }

 private:
  void* data_;
  std::size_t bytes_;
  std::uint64_t version_ = 0;
};

// The allocator behind all storages: autograd/allocator.h. Thread-safe.
namespace memory {

struct Stats {
  std::size_t live = 0;                  // bytes in storages now, up to 1/8 more than asked for where they are large
  std::size_t peak = 0;                  // the most bytes in storages at any time
  std::size_t cached = 0;                // bytes that were asked of the system and are free
  std::uint64_t system_allocations = 0;  // how often the system was asked for memory
};

Stats stats();
void reset_peak();
void empty_cache();                     // back to the system goes what can: whole segments
void set_cache_cap(std::size_t bytes);  // default: 4 GiB; what is free beyond that goes back

}  // namespace memory
}  // namespace prenorm
