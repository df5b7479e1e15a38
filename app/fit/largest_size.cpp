#include "app/fit/largest_size.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

namespace tessera {
namespace {

using Room = std::function<Bytes(Bytes need)>;  ///< of a need: what has to be within the capacity

/// Needs that were asked for, by size in units.
class KnownNeeds {
 public:
  KnownNeeds(const NeedOfSize& need, SizeRange range, Bytes capacity)
      : need_(need), range_(range), capacity_(capacity) {}

  bool is_within(std::int64_t units, const Room& counted) {
    const auto [entry, is_new] = known_.try_emplace(units);
    if (is_new && units <= range_.most) entry->second = need_(units * range_.unit);
    return share(entry->second, counted) <= 1;
  }

  /// The last size within the capacity: between the last known that is and the first that is not.
  std::int64_t last_within(const Room& counted) {
    is_within(std::clamp<std::int64_t>(range_.first, 1, range_.most), counted);
    for (int step = 0;; ++step) {
      std::int64_t fits = 0, fails = 0;
      for (const auto& [units, bytes] : known_) {
        const bool within = share(bytes, counted) <= 1;
        if (within) fits = units;
        if (!within && fails == 0) fails = units;
      }
      if (fails == fits + 1) return fits;
      is_within(next(fits, fails, counted, step), counted);
    }
  }

  /// Nothing of that size exists.
  bool ends_at(std::int64_t units) const {
    const auto found = known_.find(units);
    return units > range_.most || (found != known_.end() && !found->second);
  }

 private:
  /// Of the capacity; endless where there is no such size.
  double share(std::optional<Bytes> bytes, const Room& counted) const {
    return bytes ? counted(*bytes) / capacity_ : HUGE_VAL;
  }

  /// Where the line through two known sizes meets the capacity; now and then the middle.
  std::int64_t next(std::int64_t fits, std::int64_t fails, const Room& counted, int step) const {
    const std::int64_t low = fits + 1;
    const std::int64_t high = fails > 0 ? fails - 1 : 64 * std::max<std::int64_t>(fits, 1);
    const std::optional<double> at = crossing(fits, fails, counted);
    const bool halves = step % 4 == 3 && fails > 0;
    if (!at || halves) return fails > 0 ? (fits + fails) / 2 : 2 * fits;
    return std::clamp(static_cast<std::int64_t>(std::clamp(*at, 0.0, 1e15)), low, high);
  }

  /// Of the two known sizes nearest to the gap; nothing where there are no two.
  std::optional<double> crossing(std::int64_t fits, std::int64_t fails, const Room& counted) const {
    std::map<std::int64_t, double> near;
    for (const auto& [units, bytes] : known_) {
      if (!bytes) continue;
      near.emplace(units, share(bytes, counted));
      const bool is_behind = fails > 0 && units >= fails;
      if (near.size() > 2 && !is_behind) near.erase(near.begin());
      if (is_behind && near.size() >= 2) break;
    }
    while (near.size() > 2) near.erase(near.begin());
    if (near.size() < 2 || (fits == 0 && fails == 1)) return std::nullopt;
    const auto [a, share_a] = *near.begin();
    const auto [b, share_b] = *std::next(near.begin());
    if (share_b <= share_a) return std::nullopt;
    return static_cast<double>(a) +
           (1 - share_a) * static_cast<double>(b - a) / (share_b - share_a);
  }

  const NeedOfSize& need_;
  SizeRange range_;
  Bytes capacity_;
  std::map<std::int64_t, std::optional<Bytes>> known_;
};

}  // namespace

namespace {

LargestSize size_of(KnownNeeds& needs, SizeRange range, std::int64_t fits, std::int64_t sure) {
  LargestSize size{.fits = fits * range.unit, .sure = sure * range.unit, .limit = {}};
  if (fits > 0 && needs.ends_at(fits + 1)) size.limit = "the model or the layout";
  return size;
}

}  // namespace

LargestSize largest_size(const NeedOfSize& need, SizeRange range, Bytes capacity,
                         const std::function<Bytes(Bytes)>& high) {
  KnownNeeds needs(need, range, capacity);
  const std::int64_t fits = needs.last_within([](Bytes bytes) { return bytes; });
  return size_of(needs, range, fits, needs.last_within(high));
}

LargestSize confirmed_size(const NeedOfSize& need, const LargestSize& guess, SizeRange range,
                           Bytes capacity, const std::function<Bytes(Bytes)>& high) {
  KnownNeeds needs(need, range, capacity);
  const auto is_last = [&](std::int64_t units, const Room& counted) {
    return (units == 0 || needs.is_within(units, counted)) && !needs.is_within(units + 1, counted);
  };
  const std::int64_t fits = guess.fits / range.unit, sure = guess.sure / range.unit;
  const bool holds = is_last(fits, [](Bytes bytes) { return bytes; }) && is_last(sure, high);
  return holds ? size_of(needs, range, fits, sure) : largest_size(need, range, capacity, high);
}

}  // namespace tessera
