#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>
#include <vector>

#include "app/search/layout_bounds.h"

namespace tessera {

/// How much is known of a layout that was not simulated.
enum class BoundLevel : std::uint8_t { quick, refined, walked, piped };

/// What a layout is simulated behind. A plan takes longer to make than all bounds together.
constexpr BoundLevel finest_of(const Layout& layout) {
  return layout.planned ? BoundLevel::piped : BoundLevel::walked;
}

/// A layout that may be among the best.
struct Candidate {
  LayoutBound bound;
  Layout layout;
  BoundLevel level = BoundLevel::quick;
  bool is_finest() const { return level == finest_of(layout); }
  bool operator>(const Candidate& other) const {
    return std::tie(bound.step_time, layout) > std::tie(other.bound.step_time, other.layout);
  }
};

/// Layouts that wait, in the order in which a search turns to them: recipes, which are simulated
/// at once, then all others, then those with a memory plan: a plan takes seconds to make, and its
/// bound knows nothing of what it costs. Each lowest bound first.
class OpenLayouts {
 public:
  void add(const Candidate& candidate) { queue_of(candidate).push(candidate); }
  void add_recipe(const Candidate& candidate) { queues_.front().push(candidate); }

  /// Up to `most` candidates of one level whose bound is not above `slowest`; they are taken out.
  /// One alone where it is to be simulated.
  std::vector<Candidate> take(Seconds slowest, std::size_t most);
  /// The same of the recipes alone.
  std::vector<Candidate> take_recipe(Seconds slowest) { return taken(queues_.front(), slowest, 1); }
  bool has_any(Seconds slowest) const;

  /// Of those not above `slowest`; empty where there are none.
  std::optional<Seconds> lowest_bound(Seconds slowest) const;
  /// How many are not above `slowest`, and how many are.
  struct Split {
    std::int64_t open = 0, slower = 0;
  };
  Split split(Seconds slowest) const;

 private:
  struct ByBound : std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> {
    const std::vector<Candidate>& all() const { return c; }
  };
  static std::vector<Candidate> taken(ByBound& queue, Seconds slowest, std::size_t most);
  ByBound& queue_of(const Candidate& candidate) {
    return queues_[candidate.layout.planned ? 2 : 1];
  }

  std::array<ByBound, 3> queues_;
};

}  // namespace tessera
