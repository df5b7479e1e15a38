#include "workloads/memory/open_allocations.h"

namespace tessera {

std::size_t OpenAllocations::Hash::operator()(const OpenTensor& key) const {
  constexpr std::uint64_t kPrime = 0x9e3779b97f4a7c15ULL;
  std::uint64_t hash = static_cast<std::uint32_t>(key.block);
  for (const int part : {key.layer, key.micro_batch, key.storage})
    hash = (hash ^ static_cast<std::uint32_t>(part)) * kPrime;
  return static_cast<std::size_t>(hash ^ (hash >> 32));
}

void OpenAllocations::hold(const OpenTensor& key, const Allocation& allocation) {
  const auto [open, is_first] = held_.try_emplace(key, Same{allocation, {}});
  if (!is_first) open->second.others.push_back(allocation);
}

std::optional<Allocation> OpenAllocations::take(const OpenTensor& key) {
  const auto open = held_.find(key);
  if (open == held_.end()) return std::nullopt;
  Same& same = open->second;
  const Allocation taken = same.first;
  if (same.others.empty()) {
    held_.erase(open);
  } else {
    same.first = same.others.front();
    same.others.erase(same.others.begin());
  }
  return taken;
}

const Allocation* OpenAllocations::find(const OpenTensor& key) const {
  const auto open = held_.find(key);
  return open == held_.end() ? nullptr : &open->second.first;
}

void OpenAllocations::pass(const Passage& passage, const PassedAllocation& made) {
  passed_[passage].push_back(made);
}

OpenAllocations::Passed::iterator OpenAllocations::nearest(Passed& open, bool forward, Bytes bytes,
                                                           int position) {
  const auto distance = [&](const PassedAllocation& entry) {
    return forward ? position - entry.position : entry.position - position;
  };
  auto best = open.end();
  for (auto entry = open.begin(); entry != open.end(); ++entry) {
    if (entry->allocation.bytes != bytes || distance(*entry) <= 0) continue;
    if (best == open.end() || distance(*entry) < distance(*best)) best = entry;
  }
  return best;
}

std::optional<PassedAllocation> OpenAllocations::take_passed(const Passage& passage, Bytes bytes,
                                                             int position) {
  Passed& open = passed_[passage];
  const auto best = nearest(open, passage.forward, bytes, position);
  if (best == open.end()) return std::nullopt;
  const PassedAllocation taken = *best;
  open.erase(best);
  return taken;
}

const Allocation* OpenAllocations::find_passed(const Passage& passage, Bytes bytes, int position) {
  Passed& open = passed_[passage];
  const auto best = nearest(open, passage.forward, bytes, position);
  return best == open.end() ? nullptr : &best->allocation;
}

const Allocation* OpenAllocations::find_made(const Passage& passage, Bytes bytes, int position) {
  for (const PassedAllocation& entry : passed_[passage])
    if (entry.position == position && entry.allocation.bytes == bytes) return &entry.allocation;
  return nullptr;
}

}  // namespace tessera
