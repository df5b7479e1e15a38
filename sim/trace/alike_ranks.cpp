#include "sim/trace/alike_ranks.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace tessera {
namespace {

/// Ranks of one stage that a rank is held against: where no two are alike, comparing all would take
/// longer than what it saves.
constexpr std::size_t kCompared = 8;

bool equal_times(std::span<const OpRecord> a, std::span<const OpRecord> b) {
  return std::ranges::equal(a, b, [](const OpRecord& left, const OpRecord& right) {
    return left.end == right.end && left.start == right.start &&
           left.transfer_start == right.transfer_start;
  });
}

/// Finds ranks whose own ops ran at the same times.
class EqualTimes {
 public:
  explicit EqualTimes(const TimelineIndex& index) : index_(index) {}

  /// The first rank that was asked for and ran as `rank`; else `rank`.
  int first(int rank) {
    std::vector<int>& known = known_[index_.number_of(rank)];
    for (const int other : known)
      if (equal_times(index_.records_of(other), index_.records_of(rank))) return other;
    if (known.size() < kCompared) known.push_back(rank);
    return rank;
  }

 private:
  const TimelineIndex& index_;
  std::map<int, std::vector<int>> known_;  ///< by stage of the program
};

/// A pipeline, by the place that its ranks share.
using Place = std::tuple<int, int, int>;

Place place_of(const RankPosition& at) {
  return {at.tensor, at.data, at.context};
}

bool ranks_may_be_alike(const TimedProgram& timed, const TimelineIndex& index) {
  if (timed.paces.kernel_jitter > 0 || !timed.paces.ranks.empty()) return false;
  return std::ranges::all_of(index.simulated(),
                             [&](const auto& of) { return index.stalls_of(of.rank).empty(); });
}

}  // namespace

std::vector<std::size_t> first_alike(const TimedProgram& timed, const TimelineIndex& index) {
  const auto simulated = index.simulated();
  std::vector<std::size_t> first(simulated.size());
  for (std::size_t i = 0; i < first.size(); ++i) first[i] = i;
  if (!ranks_may_be_alike(timed, index)) return first;
  EqualTimes times(index);
  std::map<Place, std::vector<int>> pipelines;  // what each of its ranks ran as, by stage
  for (const auto& [rank, stands_for] : simulated)
    pipelines[place_of(index.position(rank))].push_back(times.first(rank));
  std::map<std::pair<int, std::vector<int>>, std::size_t> seen;  // by stage and pipeline
  for (std::size_t i = 0; i < first.size(); ++i) {
    const RankPosition at = index.position(simulated[i].rank);
    first[i] = seen.try_emplace({at.pipeline, pipelines[place_of(at)]}, i).first->second;
  }
  return first;
}

}  // namespace tessera
