#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::test {

/// What a change of a scenario must do to its step time, whatever the scenario.
enum class Direction : std::uint8_t { no_shorter, no_longer };

/// A change after which the step time or the peak of memory moved the wrong way.
struct BrokenRelation {
  std::string change;            ///< "twice the layers, bytes", "network x 0.5, s"
  double before = 0, after = 0;  ///< [s] or [bytes]
};

/// What came of one draw of random_settings().
struct RelationsRun {
  bool refused = false;  ///< the draw is no scenario that can be simulated
  int checked = 0;
  std::vector<BrokenRelation> broken;
  std::string error;  ///< a crash, or a report that does not add up
};

/// Simulates each draw and what becomes of it when the model gets larger (layers, ffn, vocabulary,
/// sequence)
/// or the machine faster or slower (peaks, clocks, memory, host, links, latencies; SMs), `jobs`
/// draws at a time. Jitter is left out: other kernels would draw other numbers.
std::vector<RelationsRun> run_relations(std::uint64_t first_seed, int count, int jobs);

}  // namespace tessera::test
