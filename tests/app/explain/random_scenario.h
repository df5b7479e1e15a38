#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::test {

/// Settings (`path=value`) that turn a shipped scenario into one drawn from `seed`: model, cluster,
/// layout, schedule, batch, precision, recomputation, framework, perturbation, faults, fidelity.
/// Not every draw is valid.
std::vector<std::string> random_settings(std::uint64_t seed);

/// What became of one draw.
struct RandomRun {
  enum class Outcome {
    ran,
    refused,  ///< as a scenario that cannot be: bad input
    failed    ///< crashed, hung, or reported what cannot be
  };
  Outcome outcome = Outcome::failed;
  std::string text;  ///< step time, or the error
  int gpus = 0;
  double wall_seconds = 0;  ///< from settings to checked report
};

/// Simulates the draw in a process of its own, for at most `seconds`, and checks that every figure
/// of its report is finite and adds up.
std::vector<RandomRun> run_random_scenarios(std::uint64_t first_seed, int count, int jobs,
                                            double seconds);

/// What refuses one draw, empty where nothing does.
struct RefusalVerdicts {
  std::string check;     ///< as `tessera check` says
  std::string simulate;  ///< as `tessera simulate` says
};

/// Of draws that also set planners, collectives and batches that some layouts cannot have.
std::vector<RefusalVerdicts> refusals_of_random_scenarios(std::uint64_t first_seed, int count,
                                                          int jobs);

}  // namespace tessera::test
