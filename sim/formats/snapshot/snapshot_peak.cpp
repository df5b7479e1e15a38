// The moment of a snapshot at which most was taken.
#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include "sim/formats/snapshot/memory_snapshot.h"

namespace tessera {
namespace {

/// What is taken, by use, from the end of the events back to the beginning, or forth.
class Ledger {
 public:
  explicit Ledger(const MemorySnapshot& snapshot) : snapshot_(snapshot), used_(kSnapshotUses) {}

  /// Live and reserved ahead of the first event.
  void rewind() {
    for (const SnapshotSegment& segment : snapshot_.segments) {
      reserved_ += segment.bytes;
      for (const SnapshotBlock& block : segment.blocks)
        if (block.active) live_[block.address] = {block.bytes, block.use};
    }
    for (auto event = snapshot_.events.rbegin(); event != snapshot_.events.rend(); ++event)
      undo(*event);
    for (const auto& [address, held] : live_) take(held);
  }
  void apply(const SnapshotEvent& event) {
    if (event.action == SnapshotAction::new_segment) reserved_ += event.bytes;
    if (event.action == SnapshotAction::end_segment) reserved_ -= event.bytes;
    if (event.action == SnapshotAction::take) {
      const Held held{event.bytes, event.use};
      live_[event.address] = held;
      take(held);
    }
    if (event.action == SnapshotAction::give_back) {
      const auto found = live_.find(event.address);
      if (found == live_.end()) return;
      used_[static_cast<std::size_t>(found->second.use)] -= found->second.bytes;
      allocated_ -= found->second.bytes;
      live_.erase(found);
    }
  }
  Bytes allocated() const { return allocated_; }
  Bytes reserved() const { return reserved_; }
  const std::vector<Bytes>& used() const { return used_; }

 private:
  struct Held {
    Bytes bytes;
    SnapshotUse use = SnapshotUse::unknown;
  };
  void take(const Held& held) {
    used_[static_cast<std::size_t>(held.use)] += held.bytes;
    allocated_ += held.bytes;
  }
  /// Who took what is given back without having been taken here is not known.
  void undo(const SnapshotEvent& event) {
    if (event.action == SnapshotAction::take) live_.erase(event.address);
    if (event.action == SnapshotAction::give_back)
      live_[event.address] = {event.bytes, SnapshotUse::unknown};
    if (event.action == SnapshotAction::new_segment) reserved_ -= event.bytes;
    if (event.action == SnapshotAction::end_segment) reserved_ += event.bytes;
  }

  const MemorySnapshot& snapshot_;
  std::map<std::int64_t, Held> live_;
  std::vector<Bytes> used_;
  Bytes allocated_, reserved_;
};

}  // namespace

SnapshotPeak peak_of(const MemorySnapshot& snapshot) {
  Ledger ledger(snapshot);
  ledger.rewind();
  SnapshotPeak peak;
  const auto look = [&] {
    peak.reserved = std::max(peak.reserved, ledger.reserved());
    if (ledger.allocated() <= peak.allocated) return;
    peak.allocated = ledger.allocated();
    peak.of_uses = ledger.used();
  };
  look();
  for (const SnapshotEvent& event : snapshot.events) {
    ledger.apply(event);
    look();
  }
  return peak;
}

}  // namespace tessera
