#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "app/search/layout_result.h"
#include "app/search/layout_space.h"

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
  std::int64_t left = 0;       ///< may be among the best and have no answer: the search ended
};

struct SearchResult;

struct SearchOptions {
  std::size_t top = 5;                       ///< so many fastest layouts are proven
  int jobs = 1;                              ///< simulations at a time
  std::chrono::duration<double> limit{1e9};  ///< of the whole search
  /// The search ends after so many, as if its time were over; with one job its answer is then the
  /// same on every machine.
  std::int64_t simulations = std::numeric_limits<std::int64_t>::max();
  std::size_t recipes = 12;  ///< so many usual layouts are simulated first
  std::function<bool()> interrupted = [] { return false; };  ///< asked often; true: end now
  /// Called often, with what is known so far.
  std::function<void(const SearchResult&)> progress = [](const SearchResult&) {};
};

/// A layout that is too large, and what it needs at least.
struct TooLarge {
  Layout layout;
  Bytes memory;  ///< of a GPU: simulated, or a lower bound
};

/// Why a search ended.
enum class SearchEnd : std::uint8_t { complete, out_of_time, interrupted };

struct SearchResult {
  /// Simulated layouts that fit, fastest first; the first `SearchOptions::top` of them are the
  /// fastest of all legal layouts where `proven()`.
  std::vector<LayoutResult> fitting;
  SearchCounts counts;
  std::optional<TooLarge> smallest_too_large;
  SearchEnd end = SearchEnd::complete;
  /// No layout without an answer that could still be among the best is faster; 0: not every layout
  /// has a bound yet. Empty where all that could be have an answer.
  std::optional<Seconds> open_bound;
  std::string failure;  ///< what the first failed simulation said

  bool proven() const { return !open_bound; }
  /// So many of `fitting`, from the first on, are the fastest of all legal layouts.
  std::size_t proven_layouts() const;
};

/// The fastest layouts of `space` for `base`. A dozen recipes (recipes.h) are simulated first, then
/// the layout with the lowest lower bound on step time is always next: it gets a finer bound, or is
/// simulated where it has the finest, each in processes of their own, until the lowest bound
/// exceeds the last of the best. Those too large by a bound are left out, or come with a memory
/// plan.
SearchResult search_layouts(const Scenario& base, const LayoutSpace& space,
                            const PredictorWeights& weights, const SearchOptions& options);

}  // namespace tessera
