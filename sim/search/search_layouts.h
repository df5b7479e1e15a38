#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/search/layout_result.h"
#include "sim/search/layout_space.h"

namespace tessera {

/// What became of the layouts of a search.
struct SearchCounts {
  std::int64_t tried = 0;      ///< combinations that use the GPUs and divide the batch
  std::int64_t invalid = 0;    ///< refused by a rule of the scenario
  std::int64_t too_large = 0;  ///< more memory than a GPU has: by bound, or simulated
  std::int64_t pruned = 0;  ///< their bound is above the last of the best; or planned, though not
                            ///< too large without a plan
  std::int64_t simulated = 0;  ///< in time, whether they fit or not
  std::int64_t failed = 0;     ///< no answer: the simulation ended with an error
  std::int64_t left = 0;       ///< not looked at, because the time was over
};

struct SearchOptions {
  std::size_t top = 5;                       ///< so many fastest layouts are proven
  int jobs = 1;                              ///< simulations at a time
  std::chrono::duration<double> limit{1e9};  ///< of the whole search
  std::function<void(const SearchCounts&)> progress = [](const SearchCounts&) {};
};

struct SearchResult {
  /// Simulated layouts that fit, fastest first; the first `SearchOptions::top` of them are the
  /// fastest of all legal layouts, unless the time was over.
  std::vector<LayoutResult> fitting;
  SearchCounts counts;
  Seconds bound_left;   ///< no layout that was not looked at is faster; 0: all were
  std::string failure;  ///< what the first failed simulation said

  bool proven() const { return counts.left == 0; }
};

/// The fastest layouts of `space` for `base`. The layout with the lowest lower bound on step time
/// is next: it gets its finer bound, or is simulated where it has that, each in processes of their
/// own, until the lowest bound exceeds the last of the best. Those too large by a bound are left
/// out, those with a memory plan come last.
SearchResult search_layouts(const Scenario& base, const LayoutSpace& space,
                            const PredictorWeights& weights, const SearchOptions& options);

}  // namespace tessera
