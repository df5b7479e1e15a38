#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hw/units/quantity.h"
#include "lab/validate/bad_rows.h"
#include "workloads/program/program.h"

namespace tessera {

/// One measured run of a whole model, a row of a file in the format of
/// measurements/models/fp32.csv.
struct ModelRun {
  std::string where;  ///< file:line
  std::string gpu;    ///< id of the hardware catalog
  int n_gpus = 1;
  std::string parallelism;  ///< as written: "single", "dp4", "tp2pp2"
  ParallelLayout layout;
  int micro_batches = 1;
  std::string model;
  std::string mode;  ///< "training" or "inference", with "_fused" behind it for torch.compile
  std::int64_t seq_len = 0;
  std::int64_t batch = 0;                       ///< global batch in sequences
  std::optional<Seconds> measured;              ///< column step_ms
  std::optional<Seconds> published_prediction;  ///< column neusight_step_ms, a baseline
  std::string fault;                            ///< why the row cannot be used; empty if it can
};

/// Reads the file. Columns gpu, n_gpus, parallelism, model, mode, seq_len, batch and step_ms are
/// needed, micro_batches and neusight_step_ms optional, others ignored. Throws InputError with
/// every malformed row as file:line, or gives these a fault.
std::vector<ModelRun> read_model_runs(const std::filesystem::path& file,
                                      BadRows bad_rows = BadRows::refuse);

}  // namespace tessera
