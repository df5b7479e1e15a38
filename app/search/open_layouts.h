#pragma once

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
/// at once, then all others, with a memory plan or without. Each lowest bound first, so that
/// nothing is looked at whose bound is above the last of the best in the end.
class OpenLayouts {
 public:
  void add(const Candidate& candidate) { others_.push(candidate); }
  void add_recipe(const Candidate& candidate) { recipes_.push(candidate); }

  /// Up to `most` candidates of one level whose bound is not above `slowest`; they are taken out.
  /// One alone where it is to be simulated.
  std::vector<Candidate> take(Seconds slowest, std::size_t most);
  /// The same of the recipes alone.
  std::vector<Candidate> take_recipe(Seconds slowest) { return taken(recipes_, slowest, 1); }
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

  ByBound recipes_, others_;
};

}  // namespace tessera
