#pragma once

#include <cstdint>
#include <queue>
#include <unordered_map>
#include <vector>

namespace tessera::remat {

/// A* bookkeeping: states with the least cost known and the state that they were reached from.
/// Ties leave the queue in the order of arrival, so that the answer does not depend on hashing.
template <class State, class Hash>
class SearchQueue {
 public:
  struct Entry {
    std::int64_t cost = 0;
    std::int64_t from = -1;  ///< index of the state before
    std::int32_t action = 0;
    State state;
  };

  void push(const State& state, std::int64_t cost, std::int64_t estimate, std::int64_t from,
            std::int32_t action) {
    const auto [found, fresh] = index_.emplace(state, entries_.size());
    if (fresh) {
      entries_.push_back({cost, from, action, state});
    } else {
      Entry& known = entries_[found->second];
      if (known.cost <= cost) return;
      known = {cost, from, action, state};
    }
    queue_.push({cost + estimate, cost, static_cast<std::int64_t>(found->second), ++arrivals_});
  }

  /// The next state of least cost plus estimate; -1 where none is left.
  std::int64_t pop() {
    while (!queue_.empty()) {
      const Waiting next = queue_.top();
      queue_.pop();
      if (entries_[next.index].cost == next.cost) return next.index;
    }
    return -1;
  }

  const Entry& entry(std::int64_t index) const { return entries_[index]; }
  std::int64_t states() const { return static_cast<std::int64_t>(entries_.size()); }

 private:
  struct Waiting {
    std::int64_t total, cost, index, arrival;
    bool operator<(const Waiting& other) const {
      if (total != other.total) return total > other.total;
      return cost != other.cost ? cost < other.cost : arrival > other.arrival;
    }
  };

  std::unordered_map<State, std::size_t, Hash> index_;
  std::vector<Entry> entries_;
  std::priority_queue<Waiting> queue_;
  std::int64_t arrivals_ = 0;
};

inline std::size_t mix(std::uint64_t value) {
  value ^= value >> 31;
  value *= 0x9E3779B97F4A7C15ull;
  return static_cast<std::size_t>(value ^ (value >> 29));
}

}  // namespace tessera::remat
