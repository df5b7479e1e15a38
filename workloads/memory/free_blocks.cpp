#include "workloads/memory/free_blocks.h"

#include <algorithm>
#include <functional>

namespace tessera {

FreeBlocks::Sizes::const_iterator FreeBlocks::first_from(std::int64_t bytes) const {
  return std::ranges::lower_bound(sizes_, bytes, {}, &Size::bytes);
}

FreeBlocks::SameSize::iterator FreeBlocks::place_of(const AllocatorBlock* block, SameSize& same) {
  return std::ranges::lower_bound(same, block->address, std::ranges::greater{}, &Entry::address);
}

void FreeBlocks::insert(AllocatorBlock* block) {
  auto size = first_from(block->bytes);
  if (size == sizes_.end() || size->bytes != block->bytes) {
    if (spare_.empty()) spare_.push_back(&lists_.emplace_back());
    size = sizes_.insert(size, {block->bytes, spare_.back()});
    spare_.pop_back();
  }
  size->blocks->insert(place_of(block, *size->blocks), {block->address, block});
}

void FreeBlocks::erase(const AllocatorBlock* block) {
  const auto size = first_from(block->bytes);
  size->blocks->erase(place_of(block, *size->blocks));
  drop(size);
}

AllocatorBlock* FreeBlocks::take_best(std::int64_t bytes) {
  const auto size = first_from(bytes);
  if (size == sizes_.end()) return nullptr;
  AllocatorBlock* const best = size->blocks->back().block;
  size->blocks->pop_back();
  drop(size);
  return best;
}

void FreeBlocks::drop(Sizes::const_iterator size) {
  if (!size->blocks->empty()) return;
  spare_.push_back(size->blocks);
  sizes_.erase(size);
}

std::vector<AllocatorBlock*> FreeBlocks::take_whole_segments() {
  std::vector<AllocatorBlock*> taken;
  for (const Size& size : sizes_)
    for (const Entry& entry : *size.blocks)
      if (entry.block->is_whole_segment()) taken.push_back(entry.block);
  for (const AllocatorBlock* block : taken) erase(block);
  return taken;
}

}  // namespace tessera
