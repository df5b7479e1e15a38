#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "hw/units/quantity.h"
#include "workloads/memory/free_blocks.h"

namespace tessera {

/// PyTorch's caching allocator on one stream (c10/cuda/CUDACachingAllocator.cpp): requests are
/// rounded up to 512 B; those of at most 1 MiB are cut from segments of 2 MiB, those below 10 MiB
/// from segments of 20 MiB, larger ones get a segment of their own rounded up to 2 MiB. Freed
/// blocks merge with free neighbours and are given to the request that they fit best; of a large
/// block more than 1 MiB that is left over is split off. Segments are given back only where the
/// device has no room for another one: then all that are free as a whole.
class CachingAllocator {
 public:
  /// `capacity`: what the device has room for. It may be exceeded: the real allocator would fail.
  explicit CachingAllocator(Bytes capacity = Bytes(std::numeric_limits<std::int64_t>::max()))
      : capacity_(capacity.value()) {}

  using Block = AllocatorBlock;
  using Handle = Block*;

  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  Handle allocate(Bytes request);
  /// It has a block for `request`, or the device has memory for another segment.
  bool has_room_for(Bytes request) const;
  void free(Handle block);
  /// To the device: those that are free as a whole.
  void give_back_free_segments();

  /// Bytes of all segments.
  Bytes reserved() const { return Bytes(reserved_); }
  /// Most that there ever were.
  Bytes peak_reserved() const { return Bytes(peak_reserved_); }
  /// Bytes of blocks in use.
  Bytes allocated() const { return Bytes(allocated_); }

  /// All there are, in use or not, in the order of their addresses.
  std::vector<Block> blocks() const;

 private:
  FreeBlocks& free_like(bool small) { return free_[small ? 1 : 0]; }
  void put(Block* block);
  void take(Block* block);
  void taken(Block* block);
  Block* find(std::int64_t bytes, bool small);
  Block* new_segment(std::int64_t bytes, bool small);
  Block* new_block(const Block& like);
  void split(Block* block, std::int64_t bytes);
  void merge_behind(Block* block);

  std::deque<Block> blocks_;  ///< those in `spare_` are nobody's
  std::vector<Block*> spare_;
  std::vector<Block*> segments_;    ///< first blocks; null: given back
  std::array<FreeBlocks, 2> free_;  ///< of large and small segments
  int free_segments_ = 0;           ///< free as a whole
  std::int64_t capacity_;
  std::int64_t reserved_ = 0, peak_reserved_ = 0, allocated_ = 0;
  std::int64_t addresses_ = 0;  ///< given out
};

}  // namespace tessera
