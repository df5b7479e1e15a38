#pragma once

#include <cstdint>
#include <limits>
#include <list>
#include <set>
#include <tuple>

#include "hw/units/quantity.h"

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

  struct Block {
    std::int64_t bytes = 0;
    std::int64_t address = 0;  ///< counts segments' bytes in the order of their making
    int segment = 0;
    bool small = false;
    bool free = false;
  };
  using Handle = std::list<Block>::iterator;

  Handle allocate(Bytes request);
  void free(Handle block);

  /// Bytes of all segments.
  Bytes reserved() const { return Bytes(reserved_); }
  /// Most that there ever were.
  Bytes peak_reserved() const { return Bytes(peak_reserved_); }
  /// Bytes of blocks in use.
  Bytes allocated() const { return Bytes(allocated_); }

  /// All there are, in use or not, in the order of their addresses.
  const std::list<Block>& blocks() const { return blocks_; }

 private:
  struct Smallest {
    bool operator()(const Handle& a, const Handle& b) const {
      return std::tie(a->small, a->bytes, a->address) < std::tie(b->small, b->bytes, b->address);
    }
  };

  Handle find(std::int64_t bytes, bool small);
  Handle new_segment(std::int64_t bytes, bool small);
  void give_back_free_segments();
  void split(Handle block, std::int64_t bytes);

  std::list<Block> blocks_;  ///< in the order of addresses
  std::set<Handle, Smallest> free_;
  std::int64_t capacity_;
  std::int64_t reserved_ = 0, peak_reserved_ = 0, allocated_ = 0;
  std::int64_t addresses_ = 0;  ///< given out
  int segments_ = 0;
};

}  // namespace tessera
