#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/scenario/scenario.h"

namespace tessera {

/// What a change turns at; a scenario takes one of each.
enum class ChangeKind : std::uint8_t {
  micro_batch,
  sharding,
  recompute,
  tensor,
  pipeline,
  context,
  expert,
  offload,
  optimizer,
  adapters,
};

/// One way to need less memory.
struct FitChange {
  std::string name;                   ///< "recompute full"
  std::vector<ChangeKind> kinds;      ///< ascending
  std::vector<std::string> settings;  ///< as --set takes them, without those of the batch
  int wider = 1;                      ///< so many times the GPUs of a replica
  std::int64_t micro_batch = 0;       ///< 0: as it is
  int cost = 0;  ///< rough order of what it costs in time, 1 or more; for choosing what to look at

  /// Memory plans are made step by step, for seconds.
  bool is_plan() const;
  /// Both at once, where no kind is in both.
  bool goes_with(const FitChange& other) const;
  FitChange and_also(const FitChange& other) const;
  /// Replicas that are left: fewer where they divide by `wider`, else as many on more GPUs.
  int replicas(const Scenario& scenario) const;
  /// Whether the parts of a combination have an effect beside each other.
  bool makes_sense(const Scenario& scenario) const;
  /// All that changes in `scenario`, whose steps keep their sequences.
  std::vector<std::string> all_settings(const Scenario& scenario) const;
};

/// Every single change of `scenario` that the simulator can express. Some are refused by the rules
/// of scenarios: whoever makes the scenario finds out.
std::vector<FitChange> single_changes(const Scenario& scenario);

/// What people do besides, that the simulator cannot express: a line each, with the reason.
/// `plans`: memory plans are looked at.
std::vector<std::string> changes_not_simulated(const Scenario& scenario, bool plans);

}  // namespace tessera
