#include "sim/collectives/rings/ring_search.h"

#include <algorithm>
#include <cassert>
#include <compare>
#include <limits>

namespace tessera {
namespace {

/// Lists every cycle through all GPUs once: it starts at GPU 0 and the other direction is left
/// out.
class RingLister {
 public:
  explicit RingLister(const LaneMatrix& lanes)
      : lanes_(lanes), visited_(static_cast<std::size_t>(lanes.gpus())), order_{0} {
    visited_[0] = true;
  }

  std::vector<RingOrder> list() {
    extend();
    return std::move(rings_);
  }

 private:
  void extend() {
    if (order_.size() == visited_.size()) {
      if (closes() && order_[1] <= order_.back()) rings_.push_back(order_);
      return;
    }
    for (int next = 1; next < lanes_.gpus(); ++next) {
      const auto index = static_cast<std::size_t>(next);
      if (visited_[index] || lanes_.lanes(order_.back(), next) == 0) continue;
      visited_[index] = true;
      order_.push_back(next);
      extend();
      order_.pop_back();
      visited_[index] = false;
    }
  }

  bool closes() const { return lanes_.lanes(order_.back(), order_.front()) > 0; }

  const LaneMatrix& lanes_;
  std::vector<bool> visited_;
  RingOrder order_;
  std::vector<RingOrder> rings_;
};

template <class Visit>
void for_each_lane(const RingOrder& ring, Visit visit) {
  // Two GPUs: the ring goes and returns over the two directions of one lane.
  const std::size_t hops = ring.size() == 2 ? 1 : ring.size();
  for (std::size_t i = 0; i < hops; ++i) visit(ring[i], ring[(i + 1) % ring.size()]);
}

/// Free lanes of a ring: those of its narrowest bundle decide, their sum keeps the rest balanced.
struct Width {
  int narrowest = std::numeric_limits<int>::max();
  int total = 0;
  auto operator<=>(const Width&) const = default;
};

Width width_of(const RingOrder& ring, const LaneMatrix& free) {
  Width width;
  for_each_lane(ring, [&](int a, int b) {
    width.narrowest = std::min(width.narrowest, free.lanes(a, b));
    width.total += free.lanes(a, b);
  });
  return width;
}

}  // namespace

std::vector<RingOrder> pack_rings(LaneMatrix free) {
  assert(free.gpus() >= 2);
  const std::vector<RingOrder> candidates = RingLister(free).list();
  const auto width = [&](const RingOrder& ring) { return width_of(ring, free); };
  std::vector<RingOrder> taken;
  while (!candidates.empty()) {
    const RingOrder& widest = *std::ranges::max_element(candidates, {}, width);
    if (width(widest).narrowest == 0) break;
    for_each_lane(widest, [&](int a, int b) { free.set(a, b, free.lanes(a, b) - 1); });
    taken.push_back(widest);
  }
  return taken;
}

}  // namespace tessera
