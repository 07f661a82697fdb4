#include "autograd/storage.h"

#include "autograd/allocator.h"

namespace prenorm {
namespace {

// Never destroyed: tensors with static lifetime may outlive any other static object.
Allocator& allocator() {
  static Allocator& instance = *new Allocator;
  return instance;
}

}  // namespace

std::shared_ptr<Storage> Storage::allocate(std::int64_t bytes) {
  return std::make_shared<Storage>(static_cast<std::size_t>(bytes));
}

Storage::Storage(std::size_t bytes) : data_(allocator().take(bytes)), bytes_(bytes) {}
Storage::~Storage() { allocator().give_back(data_); }

namespace memory {
Stats stats() { return allocator().stats(); }
void reset_peak() { allocator().reset_peak(); }
void empty_cache() { allocator().trim(0); }
void set_cache_cap(std::size_t bytes) { allocator().set_cap(bytes); }
}  // namespace memory

}  // namespace prenorm
