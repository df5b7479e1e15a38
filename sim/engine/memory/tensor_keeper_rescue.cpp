#include <algorithm>

#include "sim/engine/memory/tensor_keeper.h"

namespace tessera {

/// Without a rescue two operands can take each other's room for ever. In one, what is made again is
/// never dropped but copied out: each rerun leaves one absent tensor fewer, and the working set of
/// a single op fits any limit that can be met at all.
bool TensorKeeper::is_stuck() const {
  return host_.limit().swap && rerun_ == kNone && running_ == kNone && !store_.copies();
}

bool TensorKeeper::turns_in_circles() const {
  constexpr int kMost = 2;
  const auto often = [](const auto& id_and_count) { return id_and_count.second > kMost; };
  return host_.limit().swap &&
         (std::ranges::any_of(reruns_of_, often) || std::ranges::any_of(returns_of_, often));
}

std::int32_t TensorKeeper::first_to_run(std::int32_t op) const {
  for (const std::int32_t tensor : uses_.read_by(op)) {
    if (store_.is_here(tensor) || store_.host_copy(tensor) == TensorStore::HostCopy::complete)
      continue;
    const std::int32_t maker = uses_.maker(tensor);
    return uses_.can_rerun(maker) ? first_to_run(maker) : kNone;
  }
  return op;
}

bool TensorKeeper::provide_alone(std::int32_t op) {
  const std::int32_t next = first_to_run(op);
  if (next == kNone) return false;
  const auto operands = uses_.read_by(next);
  protected_.assign(operands.begin(), operands.end());
  Bytes needed = host_.taken_by(next);
  for (const std::int32_t tensor : operands) {
    store_.stay(tensor);
    if (!store_.is_here(tensor)) needed += store_.bytes(tensor);
  }
  while (needed - room() - store_.leaving() > Bytes(0) && evict_one(false)) {
  }
  if (needed > room()) {
    shortages_[op] = {host_.rank, op, needed, needed - room()};
    return false;
  }
  shortages_.erase(op);
  bool ready = true;
  for (const std::int32_t tensor : operands) {
    if (!store_.is_here(tensor)) come_back(tensor);
    ready = ready && store_.is_ready(tensor);
  }
  if (ready && next != op) rerun_ = next;
  return ready && next == op;
}

}  // namespace tessera
