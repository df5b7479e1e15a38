#include "workloads/memory/caching_allocator.h"

#include <algorithm>
#include <iterator>

#include "workloads/memory/memory_bytes.h"

namespace tessera {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kSmallRequest = kMiB;       ///< kSmallSize
constexpr std::int64_t kSmallSegment = 2 * kMiB;   ///< kSmallBuffer
constexpr std::int64_t kLargeSegment = 20 * kMiB;  ///< kLargeBuffer
constexpr std::int64_t kOwnSegment = 10 * kMiB;    ///< kMinLargeAlloc
constexpr std::int64_t kSegmentUnit = 2 * kMiB;    ///< kRoundLarge
constexpr std::int64_t kMinBlock = 512;

std::int64_t segment_size(std::int64_t bytes) {
  if (bytes <= kSmallRequest) return kSmallSegment;
  if (bytes < kOwnSegment) return kLargeSegment;
  return (bytes + kSegmentUnit - 1) / kSegmentUnit * kSegmentUnit;
}

bool should_split(const CachingAllocator::Block& block, std::int64_t bytes) {
  const std::int64_t rest = block.bytes - bytes;
  return block.small ? rest >= kMinBlock : rest > kSmallRequest;
}

}  // namespace

CachingAllocator::Handle CachingAllocator::find(std::int64_t bytes, bool small) {
  std::list<Block> key{{.bytes = bytes, .address = -1, .small = small}};
  const auto best = free_.lower_bound(key.begin());
  if (best == free_.end() || (*best)->small != small) return blocks_.end();
  const Handle block = *best;
  free_.erase(best);
  return block;
}

CachingAllocator::Handle CachingAllocator::new_segment(std::int64_t bytes, bool small) {
  const std::int64_t size = segment_size(bytes);
  if (reserved_ > capacity_ - size) give_back_free_segments();
  Block block{.bytes = size, .address = addresses_, .segment = segments_++, .small = small};
  addresses_ += size;
  reserved_ += size;
  peak_reserved_ = std::max(peak_reserved_, reserved_);
  return blocks_.insert(blocks_.end(), block);
}

void CachingAllocator::give_back_free_segments() {
  const auto in_segment = [&](Handle other, Handle block) {
    return other != blocks_.end() && other->segment == block->segment;
  };
  for (auto entry = free_.begin(); entry != free_.end();) {
    const Handle block = *entry;
    const bool whole = !in_segment(std::next(block), block) &&
                       (block == blocks_.begin() || !in_segment(std::prev(block), block));
    if (!whole) {
      ++entry;
      continue;
    }
    entry = free_.erase(entry);
    reserved_ -= block->bytes;
    blocks_.erase(block);
  }
}

void CachingAllocator::split(Handle block, std::int64_t bytes) {
  Block rest = *block;
  rest.bytes = block->bytes - bytes;
  rest.address = block->address + bytes;
  rest.free = true;
  block->bytes = bytes;
  free_.insert(blocks_.insert(std::next(block), rest));
}

CachingAllocator::Handle CachingAllocator::allocate(Bytes request) {
  const std::int64_t bytes =
      allocated_size(Bytes(std::max<std::int64_t>(1, request.value()))).value();
  const bool small = bytes <= kSmallRequest;
  Handle block = find(bytes, small);
  if (block == blocks_.end()) block = new_segment(bytes, small);
  block->free = false;
  if (should_split(*block, bytes)) split(block, bytes);
  allocated_ += block->bytes;
  return block;
}

void CachingAllocator::free(Handle block) {
  allocated_ -= block->bytes;
  const auto merges = [&](Handle other) {
    return other != blocks_.end() && other->free && other->segment == block->segment;
  };
  if (const Handle next = std::next(block); merges(next)) {
    free_.erase(next);
    block->bytes += next->bytes;
    blocks_.erase(next);
  }
  if (block != blocks_.begin() && merges(std::prev(block))) {
    const Handle before = std::prev(block);
    free_.erase(before);
    before->bytes += block->bytes;
    blocks_.erase(block);
    block = before;
  }
  block->free = true;
  free_.insert(block);
}

}  // namespace tessera
