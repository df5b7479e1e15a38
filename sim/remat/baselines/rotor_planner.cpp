#include <algorithm>
#include <cmath>

#include "sim/remat/baselines/baselines.h"
#include "sim/remat/baselines/rotor_chain.h"

namespace tessera::remat {
namespace {

constexpr int kMostBlocks = 100;
constexpr int kSlots = 300;
constexpr int kTries = 12;  ///< of less memory than the budget, for what the chain does not see

/// Opt(i, j, m): the least time from the input of block i to the gradient of that input, blocks i
/// to j, with m slots besides that input. Memory is rounded up to slots.
class RotorTable {
 public:
  RotorTable(const std::vector<ChainBlock>& chain, ByteCount room)
      : chain_(chain),
        count_(static_cast<int>(chain.size())),
        slot_(std::max<ByteCount>(1, (room + kSlots - 1) / kSlots)),
        room_(static_cast<int>(std::max<ByteCount>(0, room) / slot_)),
        cost_(chain.size() * chain.size() * (kSlots + 1), kInfinite),
        choice_(cost_.size(), kNothing) {
    for (int length = 0; length < count_; ++length)
      for (int i = 0; i + length < count_; ++i) solve(i, i + length);
  }

  int room() const { return room_; }
  bool feasible(int slots) const { return cost_[at(0, count_ - 1, slots)] < kInfinite; }
  void unroll(int i, int j, int m, std::vector<ChainStep>& steps) const {
    if (i > j) return;
    const int choice = choice_[at(i, j, m)];
    steps.push_back({false, i});
    if (choice == kSaveAll) {
      unroll(i + 1, j, m - slots(block(i).saved), steps);
      steps.push_back({true, i});
      return;
    }
    for (int k = i + 1; k < choice; ++k) steps.push_back({false, k});
    unroll(choice, j, m - slots(block(choice - 1).output), steps);
    unroll(i, choice - 1, m, steps);
  }

 private:
  static constexpr double kInfinite = 1e300;
  static constexpr int kNothing = -1,
                       kSaveAll = 0;  ///< else: the first block behind the checkpoint

  const ChainBlock& block(int i) const { return chain_[static_cast<std::size_t>(i)]; }
  std::size_t at(int i, int j, int m) const {
    return (static_cast<std::size_t>(i) * chain_.size() + static_cast<std::size_t>(j)) *
               (kSlots + 1) +
           static_cast<std::size_t>(m);
  }
  int slots(ByteCount bytes) const { return static_cast<int>((bytes + slot_ - 1) / slot_); }
  double cost(int i, int j, int m) const {
    if (i > j) return 0;
    return m < 0 ? kInfinite : cost_[at(i, j, m)];
  }

  /// Least memory in which blocks i to j run with what block i saves kept.
  int least_saving(int i, int j) const {
    return slots(std::max(block(j).gradient + block(i).saving_peak,
                          block(i).gradient + block(i).own + block(i).backward_peak));
  }
  /// Least memory in which blocks i to k - 1 run forward alone.
  int least_passing(int i, int k, int j) const {
    ByteCount most = 0;
    for (int l = i; l < k; ++l)
      most = std::max(most, (l > i ? block(l - 1).output : 0) + block(l).forward_peak);
    return slots(block(j).gradient + most);
  }

  /// A block alone whose output has been used already: only what its backward reads is made again.
  void solve_again(int i) {
    const ChainBlock& one = block(i);
    const int needed = slots(one.gradient + std::max(one.own_peak, one.own + one.backward_peak));
    const auto time = static_cast<double>(one.own_time + one.backward_time);
    for (int m = needed; m <= kSlots; ++m) take(i, i, m, time, kSaveAll);
  }

  void solve(int i, int j) {
    if (i == j && j + 1 < count_) return solve_again(i);
    const int saving = least_saving(i, j);
    const int saved = slots(block(i).saved);
    const auto both = static_cast<double>(block(i).forward_time + block(i).backward_time);
    for (int m = saving; m <= kSlots; ++m)
      take(i, j, m, both + cost(i + 1, j, m - saved), kSaveAll);
    auto passed = 0.0;
    for (int k = i + 1; k <= j; ++k) {
      passed += static_cast<double>(block(k - 1).forward_time);
      const int kept = slots(block(k - 1).output);
      for (int m = std::max(kept, least_passing(i, k, j)); m <= kSlots; ++m)
        take(i, j, m, passed + cost(k, j, m - kept) + cost(i, k - 1, m), k);
    }
  }
  void take(int i, int j, int m, double time, int choice) {
    if (time >= cost_[at(i, j, m)]) return;
    cost_[at(i, j, m)] = time;
    choice_[at(i, j, m)] = choice;
  }

  const std::vector<ChainBlock>& chain_;
  int count_;
  ByteCount slot_;
  int room_;  ///< slots
  std::vector<double> cost_;
  std::vector<int> choice_;
};

}  // namespace

PlannedSchedule RotorPlanner::plan(const Graph& graph, const PlanRequest& request) const {
  const std::vector<ChainBlock> chain = chain_of(graph, kMostBlocks);
  const RotorTable table(chain, request.budget - graph.static_bytes());
  const int last = static_cast<int>(chain.size()) - 1;
  PlannedSchedule best = NonePlanner().plan(graph, request);
  if (!best.least_peak) return best;
  for (int i = 0; i < kTries; ++i) {
    const int slots = table.room() - i * table.room() / (kTries + 1);
    if (!table.feasible(slots)) break;
    std::vector<ChainStep> steps;
    table.unroll(0, last, slots, steps);
    PlannedSchedule tried{.schedule = schedule_of_chain(graph, chain, steps)};
    const ByteCount peak = replay(graph, tried.schedule, request.link).peak;
    if (peak <= request.budget) return tried;
    tried.least_peak = peak;
    if (peak < *best.least_peak) best = std::move(tried);
  }
  best.note = "the chain of " + std::to_string(chain.size()) + " blocks does not fit";
  return best;
}

}  // namespace tessera::remat
