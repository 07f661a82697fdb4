// Memory from the system in large segments, cut into blocks that are used again.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <vector>

#include "autograd/storage.h"

// GCC's way and Clang's to tell that the address sanitizer looks on.
#ifdef __SANITIZE_ADDRESS__
#define PRENORM_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PRENORM_ADDRESS_SANITIZER
#endif
#endif

namespace prenorm {

// A step of training asks for the same sizes again and again, in the same order. So a freed block stays as it is and is
// taken for the next buffer of about its size; only when there is none, and a segment is used up, free neighbours
// become one and are cut anew. (Merging at once took a fifth more memory: what had merged was cut elsewhere in the next
// step.) Segments lie on huge pages where the system has them: a step goes through all its memory twice, and looking up
// small pages costs 5 to 10 % of its time. A large buffer has a segment of its own, which is never cut. Thread-safe.
class Allocator {
 public:
  static constexpr std::size_t kAlignment = 64;  // a cache line, and the widest vector register
#ifdef PRENORM_ADDRESS_SANITIZER
  static constexpr std::size_t kSegment = 0, kCap = 0;  // so that it sees each use of a freed buffer
#else
  static constexpr std::size_t kSegment = std::size_t{32} << 20, kCap = std::size_t{4} << 30;
#endif

  // Buffers of more than an eighth of `segment` bytes have segments of their own. What is free beyond `cap` bytes goes
  // back to the system, as far as it is whole segments.
  explicit Allocator(std::size_t segment = kSegment, std::size_t cap = kCap) : segment_(segment), cap_(cap) {}
  ~Allocator() { trim(0); }  // what is in use stays
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // Aligned, contents undefined. Throws Error where the system has no memory left.
  void* take(std::size_t bytes);
  void give_back(void* data) noexcept;

  memory::Stats stats() const;
  void reset_peak();
  void set_cap(std::size_t bytes);
  void trim(std::size_t keep);  // until at most `keep` bytes are free, or no segment is

 private:
  // Stands before its data.
  struct alignas(kAlignment) Block {
    std::size_t bytes;                 // of data, a multiple of kAlignment
    Block *before, *after;             // the neighbours in the segment, null at its ends
    Block *previous = {}, *next = {};  // among the free ones of its class
    bool alone;                        // in a segment of its own
    bool free = false;

    void* data() { return this + 1; }
    bool is_segment() const { return before == nullptr && after == nullptr; }
  };
  static_assert(sizeof(Block) == kAlignment);

  // Free blocks by size class: multiples of kAlignment up to 16, then eight classes to each power of two.
  using Classes = std::array<Block*, 16 + 8 * 60>;
  static std::size_t class_of(std::size_t bytes);
  Classes& classes(const Block* block) { return block->alone ? alone_ : shared_; }

  static std::size_t largest_for(std::size_t bytes);
  static Block* find(const Classes& free, std::size_t bytes, std::size_t most);
  Block* take_shared(std::size_t bytes);
  Block* take_alone(std::size_t bytes);
  Block* new_segment(std::size_t size, bool alone);
  void close_fresh();
  void merge_free();
  void cut(Block* block, std::size_t bytes);
  void put(Block* block);
  void remove(Block* block);
  void release_segments(std::size_t keep);

  mutable std::mutex mutex_;
  const std::size_t segment_;
  std::size_t cap_;
  Classes shared_{}, alone_{};
  std::vector<Block*> segments_;  // the first blocks of those that are cut
  Block* fresh_ = nullptr;        // what of the newest was never used; in no class
  memory::Stats stats_;
};

}  // namespace prenorm
