#include "app/fit/change_search.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <tuple>
#include <utility>

namespace tessera {
namespace {

constexpr int kMostAtOnce = 4;
/// Tensors by category, fragmentation, context with NCCL.
constexpr int kNeedParts = kMemoryCategories + 2;
using NeedParts = std::array<double, kNeedParts>;

NeedParts parts_of(const MemoryNeed& need) {
  NeedParts parts{};
  for (int c = 0; c < kMemoryCategories; ++c)
    parts[c] = static_cast<double>(need.parts[static_cast<MemoryCategory>(c)].value());
  parts[kMemoryCategories] = static_cast<double>(need.fragmentation().value());
  parts[kMemoryCategories + 1] =
      static_cast<double>((need.device.context + need.device.communicators).value());
  return parts;
}

/// Of a part that a step holds `base` of, one change leaves `a` and another `b`: what both leave.
/// Each takes its share. What the step itself does not hold, as the frozen weights of adapters, is
/// as large as in either. A part may grow where another moment becomes the peak (the optimizer's,
/// when activations are made again), which is none of the other change's.
double left_of(double base, double a, double b) {
  if (base <= 0) return std::max(a, b);
  return a <= base && b <= base ? a * b / base : std::min(a, b);
}

/// "tp  + micro-batch ": the same for changes that differ in degree alone.
std::string family_of(const FitChange& change) {
  std::string family = change.name;
  std::erase_if(family, [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
  return family;
}

class ChangeSearch {
 public:
  ChangeSearch(const Scenario& scenario, const MemoryNeed& base, const NeedsOfChanges& needs_of,
               std::size_t most)
      : scenario_(scenario),
        base_(parts_of(base)),
        capacity_(base.capacity),
        needs_of_(needs_of),
        most_(most) {}

  FoundChanges run(const std::vector<FitChange>& singles, std::size_t enough) && {
    look_at_degrees(singles);
    for (int count = 2; count <= kMostAtOnce && fitting_.size() < enough; ++count)
      look_at(combinations());
    std::ranges::stable_sort(fitting_, {}, [](const ChangeNeed& found) {
      return std::pair(found.verdict, found.change.cost);
    });
    FoundChanges found;
    for (ChangeNeed& each : fitting_)
      if (!is_beaten(each.change)) found.fitting.push_back(each.change);
    for (ChangeNeed& each : refused_)
      if (!is_known(each.change, found.refused)) found.refused.push_back(std::move(each));
    return found;
  }

 private:
  /// What was found not to fit surely; the ground for larger combinations.
  struct Open {
    FitChange change;
    NeedParts parts;
  };

  /// A higher degree only where the lower one does not surely fit.
  void look_at_degrees(std::vector<FitChange> waiting) {
    while (!waiting.empty()) {
      std::vector<FitChange> now, later;
      std::set<std::string> families;
      for (FitChange& change : waiting) {
        const bool is_first = families.insert(family_of(change)).second;
        (is_first ? now : later).push_back(std::move(change));
      }
      look_at(now);
      singles_.insert(singles_.end(), open_.begin(), open_.end());
      std::erase_if(later, [&](const FitChange& change) { return is_beaten(change); });
      waiting = std::move(later);
    }
    open_ = singles_;
  }

  void look_at(const std::vector<FitChange>& changes) {
    std::vector<Open> open;
    for (ChangeNeed& found : needs_of_(changes)) {
      if (found.need) possible_.push_back(family_of(found.change));
      if (!found.need) {
        if (found.change.kinds.size() == 1) refused_.push_back(std::move(found));
        continue;
      }
      if (found.verdict != FitVerdict::fits) open.push_back({found.change, parts_of(*found.need)});
      if (found.verdict != FitVerdict::does_not_fit) fitting_.push_back(std::move(found));
    }
    open_ = std::move(open);
  }

  double estimate(const Open& a, const Open& b) const {
    double sum = 0;
    for (std::size_t part = 0; part < base_.size(); ++part)
      sum += left_of(base_[part], a.parts[part], b.parts[part]);
    return sum;
  }

  /// One single change more; the cheapest that may fit, else those that come closest.
  std::vector<FitChange> combinations() const {
    struct Candidate {
      FitChange change;
      double estimate;
    };
    std::vector<Candidate> candidates;
    for (const Open& few : open_) {
      for (const Open& one : singles_) {
        if (!few.change.goes_with(one.change)) continue;
        if (few.change.kinds.back() > one.change.kinds.front()) continue;
        FitChange both = few.change.and_also(one.change);
        if (both.makes_sense(scenario_))
          candidates.push_back({std::move(both), estimate(few, one)});
      }
    }
    const double room = static_cast<double>(capacity_.value());
    std::ranges::stable_sort(candidates, {}, [&](const Candidate& candidate) {
      const bool fits = candidate.estimate <= room;
      return std::tuple(!fits, fits ? candidate.change.cost : 0, candidate.estimate);
    });
    std::vector<FitChange> chosen;
    for (std::size_t i = 0; i < std::min(most_, candidates.size()); ++i)
      chosen.push_back(std::move(candidates[i].change));
    return chosen;
  }

  /// The same in a lower degree surely fits.
  bool is_beaten(const FitChange& change) const {
    return std::ranges::any_of(fitting_, [&](const ChangeNeed& other) {
      return other.verdict == FitVerdict::fits && other.change.cost < change.cost &&
             family_of(other.change) == family_of(change);
    });
  }

  /// In another degree it is possible, or was refused before.
  bool is_known(const FitChange& change, const std::vector<ChangeNeed>& refused) const {
    const std::string family = family_of(change);
    return std::ranges::find(possible_, family) != possible_.end() ||
           std::ranges::any_of(
               refused, [&](const ChangeNeed& other) { return family_of(other.change) == family; });
  }

  const Scenario& scenario_;
  NeedParts base_;
  Bytes capacity_;
  const NeedsOfChanges& needs_of_;
  std::size_t most_;
  std::vector<Open> singles_, open_;
  std::vector<ChangeNeed> fitting_, refused_;
  std::vector<std::string> possible_;  ///< families
};

}  // namespace

FoundChanges find_changes(const Scenario& scenario, const MemoryNeed& base,
                          const std::vector<FitChange>& singles, const NeedsOfChanges& needs_of,
                          std::size_t enough, std::size_t most) {
  return ChangeSearch(scenario, base, needs_of, most).run(singles, enough);
}

}  // namespace tessera
