#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/fit/fit_change.h"
#include "app/fit/memory_need.h"
#include "app/fit/memory_spread.h"

namespace tessera {

/// What became of a change that was looked at.
struct ChangeNeed {
  FitChange change;
  std::optional<MemoryNeed> need;  ///< empty where the rules refuse it
  FitVerdict verdict = FitVerdict::does_not_fit;
  std::string refused;
};

/// Finds out what changes need, all of them at once.
using NeedsOfChanges = std::function<std::vector<ChangeNeed>(const std::vector<FitChange>&)>;

/// Changes that may make a step fit, by what their programs need.
struct FoundChanges {
  std::vector<FitChange> fitting;   ///< cheapest by FitChange::cost first
  std::vector<ChangeNeed> refused;  ///< single ones, the first of those that differ in degree
};

/// Looks at all `singles` of a `scenario` that needs `base`, then at combinations of two, three and
/// four that do not surely fit with fewer, until there are `enough`: of each number the `most`
/// cheapest whose need comes within `capacity`, if every change takes the same share of a part of
/// the memory as it does alone.
FoundChanges find_changes(const Scenario& scenario, const MemoryNeed& base,
                          const std::vector<FitChange>& singles, const NeedsOfChanges& needs_of,
                          std::size_t enough, std::size_t most);

}  // namespace tessera
