#include "workloads/memory/caching_allocator.h"

#include <algorithm>

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

std::vector<CachingAllocator::Block> CachingAllocator::blocks() const {
  std::vector<Block> all;
  for (const Block* block : segments_)
    for (; block != nullptr; block = block->behind) all.push_back(*block);
  return all;
}

void CachingAllocator::put(Block* block) {
  block->free = true;
  free_segments_ += block->is_whole_segment() ? 1 : 0;
  free_like(block->small).insert(block);
}

void CachingAllocator::taken(Block* block) {
  block->free = false;
  free_segments_ -= block->is_whole_segment() ? 1 : 0;
}

void CachingAllocator::take(Block* block) {
  free_like(block->small).erase(block);
  taken(block);
}

CachingAllocator::Block* CachingAllocator::find(std::int64_t bytes, bool small) {
  Block* const best = free_like(small).take_best(bytes);
  if (best != nullptr) taken(best);
  return best;
}

CachingAllocator::Block* CachingAllocator::new_segment(std::int64_t bytes, bool small) {
  const std::int64_t size = segment_size(bytes);
  if (reserved_ > capacity_ - size) give_back_free_segments();
  Block* const block = new_block({.bytes = size,
                                  .address = addresses_,
                                  .segment = static_cast<int>(segments_.size()),
                                  .small = small});
  segments_.push_back(block);
  addresses_ += size;
  reserved_ += size;
  peak_reserved_ = std::max(peak_reserved_, reserved_);
  return block;
}

void CachingAllocator::give_back_free_segments() {
  if (free_segments_ == 0) return;
  for (FreeBlocks& free : free_) {
    for (Block* const block : free.take_whole_segments()) {
      reserved_ -= block->bytes;
      segments_[static_cast<std::size_t>(block->segment)] = nullptr;
      spare_.push_back(block);
    }
  }
  free_segments_ = 0;
}

CachingAllocator::Block* CachingAllocator::new_block(const Block& like) {
  if (spare_.empty()) return &blocks_.emplace_back(like);
  Block* const block = spare_.back();
  spare_.pop_back();
  *block = like;
  return block;
}

void CachingAllocator::split(Block* block, std::int64_t bytes) {
  Block* const rest = new_block(*block);
  rest->bytes -= bytes;
  rest->address += bytes;
  rest->ahead = block;
  if (rest->behind != nullptr) rest->behind->ahead = rest;
  block->bytes = bytes;
  block->behind = rest;
  put(rest);
}

void CachingAllocator::merge_behind(Block* block) {
  Block* const other = block->behind;
  block->bytes += other->bytes;
  block->behind = other->behind;
  if (block->behind != nullptr) block->behind->ahead = block;
  spare_.push_back(other);
}

CachingAllocator::Handle CachingAllocator::allocate(Bytes request) {
  const std::int64_t bytes =
      allocated_size(Bytes(std::max<std::int64_t>(1, request.value()))).value();
  const bool small = bytes <= kSmallRequest;
  Block* block = find(bytes, small);
  if (block == nullptr) block = new_segment(bytes, small);
  if (should_split(*block, bytes)) split(block, bytes);
  allocated_ += block->bytes;
  return block;
}

bool CachingAllocator::has_room_for(Bytes request) const {
  const std::int64_t bytes = allocated_size(std::max(Bytes(1), request)).value();
  const FreeBlocks& free = free_[bytes <= kSmallRequest ? 1 : 0];
  return free.has(bytes) || reserved_ <= capacity_ - segment_size(bytes);
}

void CachingAllocator::free(Handle block) {
  allocated_ -= block->bytes;
  if (Block* const next = block->behind; next != nullptr && next->free) {
    take(next);
    merge_behind(block);
  }
  if (Block* const before = block->ahead; before != nullptr && before->free) {
    take(before);
    merge_behind(before);
    block = before;
  }
  put(block);
}

}  // namespace tessera
