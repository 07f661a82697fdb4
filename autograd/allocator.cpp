#include "autograd/allocator.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <new>

#include "autograd/check.h"

namespace prenorm {
namespace {

std::size_t round_up(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

// From and to the system: multiples of system_unit() bytes.
#ifdef PRENORM_ADDRESS_SANITIZER
void* from_system(std::size_t bytes) {
  return ::operator new (bytes, std::align_val_t{Allocator::kAlignment}, std::nothrow);
}
void to_system(void* data, std::size_t /*bytes*/) { ::operator delete (data, std::align_val_t{Allocator::kAlignment}); }
std::size_t system_unit() { return Allocator::kAlignment; }  // not more, or an overrun of the buffer would be hidden
#else
void* from_system(std::size_t bytes) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const std::size_t slack = bytes >= kHugePage ? kHugePage : 0;  // to begin where a huge page can
  if (bytes > std::numeric_limits<std::size_t>::max() - slack) return nullptr;
  void* const mapped = mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  if (slack == 0) return mapped;
  char* const begin = static_cast<char*>(mapped);
  const std::size_t skipped =
      round_up(reinterpret_cast<std::uintptr_t>(begin), kHugePage) - reinterpret_cast<std::uintptr_t>(begin);
  if (skipped > 0) munmap(begin, skipped);
  if (skipped < slack) munmap(begin + skipped + bytes, slack - skipped);
#ifdef MADV_HUGEPAGE
  madvise(begin + skipped, bytes, MADV_HUGEPAGE);  // where it is refused, small pages do as well
#endif
  return begin + skipped;
}
void to_system(void* data, std::size_t bytes) { munmap(data, bytes); }
std::size_t system_unit() {
  static const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return page;
}
#endif

}  // namespace

std::size_t Allocator::class_of(std::size_t bytes) {
  const std::size_t units = bytes / kAlignment;
  if (units < 16) return units;
  const int power = std::bit_width(units) - 1;
  return 16 + static_cast<std::size_t>(power - 4) * 8 + ((units >> (power - 3)) & 7);
}

// The smallest block of at least `bytes` and at most `most` bytes, or one that is larger by less than an eighth: of
// each class so many are looked at.
Allocator::Block* Allocator::find(const Classes& free, std::size_t bytes, std::size_t most) {
  constexpr int kLooks = 16;
  const std::size_t last = class_of(most);
  for (std::size_t c = class_of(bytes); c <= last; ++c) {
    Block* best = nullptr;
    int looks = 0;
    for (Block* block = free[c]; block != nullptr && looks < kLooks; block = block->next, ++looks) {
      if (block->bytes == bytes) return block;
      if (block->bytes < bytes || block->bytes > most) continue;
      if (best == nullptr || block->bytes < best->bytes) best = block;
    }
    if (best != nullptr) return best;
  }
  return nullptr;
}

// A block that is a segment, in no class.
Allocator::Block* Allocator::new_segment(std::size_t size, bool alone) {
  if (!alone) segments_.reserve(segments_.size() + 1);  // before there is anything to lose
  void* memory = from_system(size);
  if (memory == nullptr) {
    release_segments(0);
    memory = from_system(size);
  }
  if (memory == nullptr) return nullptr;
  ++stats_.system_allocations;
  Block* const block =
      new (memory) Block{.bytes = size - sizeof(Block), .before = nullptr, .after = nullptr, .alone = alone};
  if (!alone) segments_.push_back(block);
  stats_.cached += block->bytes;
  return block;
}

// Leaves the block `bytes`, and makes a block of what is over, if it is enough for one: the new fresh one if it was cut
// from that, else a free one.
void Allocator::cut(Block* block, std::size_t bytes) {
  const bool was_fresh = block == fresh_;
  if (was_fresh) fresh_ = nullptr;
  if (block->bytes - bytes < sizeof(Block) + kAlignment) return;
  char* const end = static_cast<char*>(block->data()) + bytes;
  Block* const rest = new (end)
      Block{.bytes = block->bytes - bytes - sizeof(Block), .before = block, .after = block->after, .alone = false};
  if (block->after != nullptr) block->after->before = rest;
  block->after = rest;
  block->bytes = bytes;
  stats_.cached -= sizeof(Block);
  was_fresh ? void(fresh_ = rest) : put(rest);
}

void Allocator::close_fresh() {
  if (fresh_ != nullptr) put(fresh_);
  fresh_ = nullptr;
}

void Allocator::merge_free() {
  for (Block* block : segments_) {
    while (block->after != nullptr) {
      Block* const second = block->after;
      if (!block->free || !second->free) {
        block = second;
        continue;
      }
      remove(block);
      remove(second);
      block->bytes += sizeof(Block) + second->bytes;
      block->after = second->after;
      if (block->after != nullptr) block->after->before = block;
      stats_.cached += sizeof(Block);
      put(block);
    }
  }
}

void Allocator::put(Block* block) {
  Block*& first = classes(block)[class_of(block->bytes)];
  block->free = true;
  block->previous = nullptr;
  block->next = first;
  if (first != nullptr) first->previous = block;
  first = block;
}

void Allocator::remove(Block* block) {
  (block->previous != nullptr ? block->previous->next : classes(block)[class_of(block->bytes)]) = block->next;
  if (block->next != nullptr) block->next->previous = block->previous;
  block->free = false;
}

// A block that is not cut may be larger than what is asked for by an eighth of itself.
std::size_t Allocator::largest_for(std::size_t bytes) { return bytes / 7 * 8; }

Allocator::Block* Allocator::take_alone(std::size_t bytes) {
  if (Block* const block = find(alone_, bytes, largest_for(bytes)); block != nullptr) {
    remove(block);
    return block;
  }
  return new_segment(round_up(bytes + sizeof(Block), system_unit()), true);
}

Allocator::Block* Allocator::take_shared(std::size_t bytes) {
  if (Block* const block = find(shared_, bytes, largest_for(bytes)); block != nullptr) {
    remove(block);
    return block;
  }
  if (fresh_ == nullptr || fresh_->bytes < bytes) {
    close_fresh();
    merge_free();
    if (Block* const block = find(shared_, bytes, segment_); block != nullptr) {
      remove(block);
      cut(block, bytes);
      return block;
    }
    fresh_ = new_segment(segment_, false);
    if (fresh_ == nullptr) return nullptr;
  }
  Block* const block = fresh_;
  cut(block, bytes);
  return block;
}

void* Allocator::take(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  Block* block = nullptr;
  if (bytes <= std::numeric_limits<std::size_t>::max() / 2) {
    const std::size_t size = std::max(round_up(bytes, kAlignment), kAlignment);
    block = size > segment_ / 8 ? take_alone(size) : take_shared(size);
  }
  check(block != nullptr, "storage: no memory for ", bytes, " bytes; tensors hold ", stats_.live, " bytes now");
  stats_.cached -= block->bytes;
  stats_.live += block->bytes;
  stats_.peak = std::max(stats_.peak, stats_.live);
  return block->data();
}

void Allocator::give_back(void* data) noexcept {
  const std::lock_guard lock(mutex_);
  Block* const block = static_cast<Block*>(data) - 1;
  stats_.live -= block->bytes;
  stats_.cached += block->bytes;
  put(block);
  if (stats_.cached > cap_) release_segments(cap_);
}

// The largest ones first.
void Allocator::release_segments(std::size_t keep) {
  close_fresh();
  merge_free();
  for (Classes* const free : {&alone_, &shared_}) {
    for (std::size_t c = free->size(); c-- > 0;) {
      for (Block *block = (*free)[c], *next = nullptr; block != nullptr && stats_.cached > keep; block = next) {
        next = block->next;
        if (!block->is_segment()) continue;
        remove(block);
        stats_.cached -= block->bytes;
        std::erase(segments_, block);
        to_system(block, sizeof(Block) + block->bytes);
      }
    }
  }
}

memory::Stats Allocator::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void Allocator::reset_peak() {
  const std::lock_guard lock(mutex_);
  stats_.peak = stats_.live;
}

void Allocator::set_cap(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  cap_ = bytes;
  release_segments(bytes);
}

void Allocator::trim(std::size_t keep) {
  const std::lock_guard lock(mutex_);
  release_segments(keep);
}

}  // namespace prenorm
