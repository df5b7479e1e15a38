#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "app/sweep/sweep_grid.h"
#include "app/sweep/sweep_store.h"
#include "predictor/weights/weights.h"

namespace tessera {

/// What became of the points of a run.
struct SweepCounts {
  std::int64_t total = 0;
  std::int64_t simulated = 0;
  std::int64_t stored = 0;    ///< read from the store, or equal to another point
  std::int64_t left_out = 0;  ///< by conditions on fields that are no axes
  std::int64_t invalid = 0;
  std::int64_t failed = 0;
  std::int64_t timed_out = 0;
  double best = 0;  ///< tokens/s per GPU of the fastest that fits, of those simulated now
  std::map<std::string, std::int64_t> reasons;  ///< of invalid and failed points

  std::int64_t done() const { return simulated + stored + left_out + invalid + failed + timed_out; }
};

struct SweepRunOptions {
  int jobs = 1;                              ///< simulations at a time
  std::chrono::duration<double> limit{600};  ///< per simulation
  std::string made_with;                     ///< version and weights: part of every key
  std::function<void(const SweepCounts&)> progress = [](const SweepCounts&) {};
};

/// Simulates the points, each in a fork of this process, and stores every result as it comes.
/// Stored results are used; those of failed points are not, nor are time-outs with a shorter
/// limit.
SweepCounts run_sweep(const SweepGrid& grid, const ScenarioSource& source,
                      const std::vector<std::int64_t>& numbers, const PredictorWeights& weights,
                      SweepStore& store, const SweepRunOptions& options);

/// Loads every point and simulates none: how many are invalid, and why.
SweepCounts check_sweep(const SweepGrid& grid, const ScenarioSource& source,
                        const std::vector<std::int64_t>& numbers);

/// What is wrong, without the places and the numbers that differ from point to point:
/// "parallelism.tensor = N does not divide heads = N".
std::string reason_class(const InputError& error);

}  // namespace tessera
