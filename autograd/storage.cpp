#include "autograd/storage.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <new>

#include "autograd/check.h"

namespace prenorm {
namespace {

constexpr std::size_t kAlignment = 64;  // a cache line, and the widest vector register

class Allocator {
 public:
  // Returns a buffer of at least `bytes` and sets `bytes` to its size.
  void* take(std::size_t& bytes) {
    bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    const std::lock_guard lock(mutex_);
    // Best fit: the smallest free buffer that is large enough, unless more than 1/8 of it would lie idle.
    const auto fit = free_.lower_bound(bytes);
    void* data = nullptr;
    if (fit != free_.end() && fit->first - bytes <= fit->first / 8) {
      bytes = fit->first;
      data = fit->second;
      free_.erase(fit);
      stats_.cached -= bytes;
    } else {
      data = from_system(bytes);
    }
    stats_.live += bytes;
    stats_.peak = std::max(stats_.peak, stats_.live);
    return data;
  }

  void give_back(void* data, std::size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    stats_.live -= bytes;
    try {
      if (stats_.cached + bytes <= cap_) {
        free_.emplace(bytes, data);
        stats_.cached += bytes;
        return;
      }
    } catch (const std::bad_alloc&) {  // no memory for the map's own entry: hand the buffer to the system
    }
    ::operator delete (data, std::align_val_t{kAlignment});
  }

  memory::Stats stats() {
    const std::lock_guard lock(mutex_);
    return stats_;
  }
  void reset_peak() {
    const std::lock_guard lock(mutex_);
    stats_.peak = stats_.live;
  }
  void empty_cache() {
    const std::lock_guard lock(mutex_);
    trim(0);
  }
  void set_cap(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    cap_ = bytes;
    trim(bytes);
  }

 private:
  void* from_system(std::size_t bytes) {
    void* data = ::operator new (bytes, std::align_val_t{kAlignment}, std::nothrow);
    if (data == nullptr) {
      trim(0);
      data = ::operator new (bytes, std::align_val_t{kAlignment}, std::nothrow);
    }
    check(data != nullptr, "storage: no memory for ", bytes, " bytes; tensors hold ", stats_.live, " bytes now");
    ++stats_.system_allocations;
    return data;
  }

  void trim(std::size_t keep) {
    while (stats_.cached > keep) {
      const auto largest = std::prev(free_.end());
      stats_.cached -= largest->first;
      ::operator delete (largest->second, std::align_val_t{kAlignment});
      free_.erase(largest);
    }
  }

  std::mutex mutex_;
  std::multimap<std::size_t, void*> free_;
#ifdef __SANITIZE_ADDRESS__
  std::size_t cap_ = 0;  // so that the sanitizer sees each use of a freed buffer
#else
  std::size_t cap_ = std::size_t{4} << 30;
#endif
  memory::Stats stats_;
};

// Never destroyed: tensors with static lifetime may outlive any other static object.
Allocator& allocator() {
  static Allocator& instance = *new Allocator;
  return instance;
}

}  // namespace

std::shared_ptr<Storage> Storage::allocate(std::int64_t bytes) {
  return std::make_shared<Storage>(static_cast<std::size_t>(bytes));
}

Storage::Storage(std::size_t bytes) : bytes_(bytes), capacity_(bytes) { data_ = allocator().take(capacity_); }
Storage::~Storage() { allocator().give_back(data_, capacity_); }

namespace memory {
Stats stats() { return allocator().stats(); }
void reset_peak() { allocator().reset_peak(); }
void empty_cache() { allocator().empty_cache(); }
void set_cache_cap(std::size_t bytes) { allocator().set_cap(bytes); }
}  // namespace memory

}  // namespace prenorm
