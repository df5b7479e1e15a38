#include "sim/fit/largest_size.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace tessera {
namespace {

/// Needs that were asked for, by size in units.
class KnownNeeds {
 public:
  KnownNeeds(const NeedOfSize& need, SizeRange range) : need_(need), range_(range) {}

  /// False for a size that there is none of.
  bool is_within(std::int64_t units, const std::function<bool(Bytes)>& room) {
    if (units > range_.most) return false;
    const auto [entry, is_new] = known_.try_emplace(units);
    if (is_new) entry->second = need_(units * range_.unit);
    return entry->second && room(*entry->second);
  }
  std::optional<Bytes> at(std::int64_t units) const {
    const auto found = known_.find(units);
    return found == known_.end() ? std::nullopt : found->second;
  }
  /// Nothing of that size exists.
  bool ends_at(std::int64_t units) const {
    const auto found = known_.find(units);
    return units > range_.most || (found != known_.end() && !found->second);
  }

 private:
  const NeedOfSize& need_;
  SizeRange range_;
  std::map<std::int64_t, std::optional<Bytes>> known_;
};

/// The last size within `room`, between one that is and one that is not.
class SizeSearch {
 public:
  SizeSearch(KnownNeeds& needs, std::function<bool(Bytes)> room, std::function<double(Bytes)> share)
      : needs_(needs), room_(std::move(room)), share_(std::move(share)) {}

  std::int64_t run() {
    std::int64_t fits = 0, fails = 1;
    while (needs_.is_within(fails, room_)) {
      const std::int64_t next = beyond(fits, fails);
      fits = fails;
      fails = next;
    }
    while (fails - fits > 1) {
      const std::int64_t middle = between(fits, fails);
      (needs_.is_within(middle, room_) ? fits : fails) = middle;
    }
    return fits;
  }

 private:
  /// Where the line through two sizes that fit meets the room: twice the last, where none is known.
  std::int64_t beyond(std::int64_t before, std::int64_t last) const {
    const auto a = needs_.at(before), b = needs_.at(last);
    if (!a || !b || share_(*b) <= share_(*a)) return 2 * last;
    const double slope = (share_(*b) - share_(*a)) / static_cast<double>(last - before);
    const double at = static_cast<double>(last) + (1 - share_(*b)) / slope;
    return std::clamp(static_cast<std::int64_t>(std::min(at, 1e15)) + 1, last + 1, 64 * last);
  }
  std::int64_t between(std::int64_t fits, std::int64_t fails) {
    const auto a = needs_.at(fits), b = needs_.at(fails);
    const std::int64_t half = (fits + fails) / 2;
    if (!a || !b || ++steps_ % 3 == 0) return half;
    const double way = (1 - share_(*a)) / (share_(*b) - share_(*a));
    const auto at = fits + static_cast<std::int64_t>(way * static_cast<double>(fails - fits));
    // The line is right to a unit or so: the one behind it comes next.
    return std::clamp(at == fits ? fits + 1 : at, fits + 1, fails - 1);
  }

  KnownNeeds& needs_;
  std::function<bool(Bytes)> room_;
  std::function<double(Bytes)> share_;  ///< of the room, that a need takes
  int steps_ = 0;
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
  KnownNeeds needs(need, range);
  const auto search = [&](const std::function<Bytes(Bytes)>& counted) {
    return SizeSearch(
               needs, [&](Bytes bytes) { return counted(bytes) <= capacity; },
               [&](Bytes bytes) { return counted(bytes) / capacity; })
        .run();
  };
  const std::int64_t fits = search([](Bytes bytes) { return bytes; });
  return size_of(needs, range, fits, search(high));
}

LargestSize confirmed_size(const NeedOfSize& need, const LargestSize& guess, SizeRange range,
                           Bytes capacity, const std::function<Bytes(Bytes)>& high) {
  KnownNeeds needs(need, range);
  const auto is_last = [&](std::int64_t units, const std::function<bool(Bytes)>& room) {
    return (units == 0 || needs.is_within(units, room)) && !needs.is_within(units + 1, room);
  };
  const std::int64_t fits = guess.fits / range.unit, sure = guess.sure / range.unit;
  const bool holds = is_last(fits, [&](Bytes bytes) { return bytes <= capacity; }) &&
                     is_last(sure, [&](Bytes bytes) { return high(bytes) <= capacity; });
  return holds ? size_of(needs, range, fits, sure) : largest_size(need, range, capacity, high);
}

}  // namespace tessera
