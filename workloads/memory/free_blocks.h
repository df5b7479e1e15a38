#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace tessera {

/// A part of a segment of an allocator.
struct AllocatorBlock {
  std::int64_t bytes = 0;
  std::int64_t address = 0;  ///< counts segments' bytes in the order of their making
  int segment = 0;
  bool small = false;
  bool free = false;
  AllocatorBlock* ahead = nullptr;   ///< in the segment; null: its first block
  AllocatorBlock* behind = nullptr;  ///< null: its last

  bool is_whole_segment() const { return ahead == nullptr && behind == nullptr; }
};

/// Free blocks of an allocator by size, then address. There are far fewer sizes than blocks, and
/// blocks come and go by the ten thousand: sizes lie in one sorted array, and the list of a size
/// that has no block any more serves the next size.
class FreeBlocks {
 public:
  void insert(AllocatorBlock* block);
  void erase(const AllocatorBlock* block);
  /// Whether there is one of at least `bytes`.
  bool has(std::int64_t bytes) const { return first_from(bytes) != sizes_.end(); }
  /// Removes the smallest one of at least `bytes`, of those the one with the lowest address. Null:
  /// there is none.
  AllocatorBlock* take_best(std::int64_t bytes);
  /// Removes those that are segments as a whole.
  std::vector<AllocatorBlock*> take_whole_segments();

 private:
  struct Entry {
    std::int64_t address = 0;
    AllocatorBlock* block = nullptr;
  };
  using SameSize = std::vector<Entry>;  ///< the lowest address last
  struct Size {
    std::int64_t bytes = 0;
    SameSize* blocks = nullptr;
  };
  using Sizes = std::vector<Size>;

  Sizes::const_iterator first_from(std::int64_t bytes) const;
  static SameSize::iterator place_of(const AllocatorBlock* block, SameSize& same);
  void drop(Sizes::const_iterator size);

  Sizes sizes_;  ///< of which there are blocks, ascending
  std::deque<SameSize> lists_;
  std::vector<SameSize*> spare_;
};

}  // namespace tessera
