#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "hw/power.h"
#include "hw/units/quantity.h"
#include "lab/validate/error_summary.h"
#include "sim/config/catalog.h"

namespace tessera {

/// A training job under a cap of the board power, beside the same without one.
struct CappedRun {
  std::string where;  ///< "gpu_power_caps.csv:7"
  std::string gpu;
  std::string job;  ///< dataset, model, batch and optimizer
  Watts cap;
  Seconds free_time;  ///< of an epoch, under the highest cap of the job
  Watts free_power;   ///< mean, likewise
  Seconds time;
  Watts power;
  Watts idle;  ///< of the GPU
  Seconds predicted_time;
  Watts predicted_power;  ///< mean

  double time_error_pct() const { return 100 * (predicted_time / time - 1); }
  double energy_error_pct() const {
    return 100 * ((predicted_time / time) * (predicted_power / power) - 1);
  }
};

/// Reads CSV with columns gpu, cap_W, time_per_epoch_s, mean_power_W, dataset, model, batch and
/// optimizer, and predicts every row of a job but the one with the highest cap, from that one:
/// clock_under_cap() with the GPU's idle power. Throws InputError for what cannot be read.
std::vector<CappedRun> predict_capped_runs(const std::filesystem::path& file,
                                           const Catalog& catalog);

/// Every run by a curve that is fitted to the rows of the other GPUs alone: of a grid the one with
/// the least sum of the mean absolute errors of time and energy.
std::vector<CappedRun> predict_by_other_gpus(std::vector<CappedRun> runs);

/// Errors of time and energy, by GPU and over all; at most 80 columns wide.
std::string capped_run_table(const std::vector<CappedRun>& runs);

}  // namespace tessera
