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
  std::size_t capacity_;  // what the allocator gave, at most 1/8 more than asked for
  std::uint64_t version_ = 0;
};

// The allocator behind all storages. Freed buffers are kept, up to a cap, and given out again by best fit. Thread-safe.
namespace memory {

struct Stats {
  std::size_t live = 0;                  // bytes in storages now
  std::size_t peak = 0;                  // the most bytes in storages at any time
  std::size_t cached = 0;                // bytes of freed buffers kept for reuse
  std::uint64_t system_allocations = 0;  // how often the system was asked for a buffer
};

Stats stats();
void reset_peak();
void empty_cache();
void set_cache_cap(std::size_t bytes);  // default: 4 GiB; more than that is given back to the system

}  // namespace memory
}  // namespace prenorm
