#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/explain/step_profile.h"

namespace tessera {

/// A figure of both sides; empty where a side does not have it.
struct ComparedTime {
  std::string name;
  std::optional<double> a;  ///< seconds
  std::optional<double> b;
  /// b - a; an absent time counts as none.
  double difference() const { return b.value_or(0) - a.value_or(0); }
};

struct ComparedSetup {
  std::string name;
  std::string a;
  std::string b;
};

/// Two steps beside each other.
struct StepComparison {
  StepProfile a;
  StepProfile b;
  std::vector<ComparedTime> phases;   ///< their differences add up to that of the step times
  std::vector<ComparedTime> classes;  ///< largest difference first
  std::vector<ComparedSetup> setup;   ///< what differs: layout, GPU, precision, ...
  double difference_pct = 0;          ///< of the step times, against `a`
};

/// Where one of the two is a trace both are compared in terms of traces.
StepComparison compare_steps(const StepProfile& a, const StepProfile& b);

/// For people.
std::string comparison_text(const StepComparison& comparison, bool notes = false);

/// Schema `tessera.comparison/1`, SI units.
std::string comparison_json(const StepComparison& comparison);

}  // namespace tessera
