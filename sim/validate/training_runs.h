#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "hw/units/quantity.h"
#include "workloads/program.h"

namespace tessera {

/// One measured training step, a row of a file in the format of measurements/training_runs.csv.
struct TrainingRun {
  std::string where;  ///< file:line
  std::string id;     ///< as written; may be empty
  std::string gpu;    ///< id of the hardware catalog
  int n_gpus = 1;
  int gpus_per_node = 0;  ///< 0 = all in one
  std::string framework;
  std::string precision;
  std::string model;
  std::string family;  ///< "gpt", "bert"
  std::int64_t layers = 0, hidden = 0, heads = 0, ffn = 0, vocab = 0, sequence_length = 0;
  ParallelLayout layout;
  std::int64_t micro_batch = 0, global_batch = 0;  ///< sequences
  Seconds step_time;
};

/// A row that cannot be simulated, and why.
struct SkippedRun {
  std::string where;
  std::string reason;
};

struct TrainingRuns {
  std::filesystem::path file;
  std::string text;                 ///< of the whole file
  std::vector<TrainingRun> runs;    ///< of one GPU, fp32, in the order of the file
  std::vector<SkippedRun> skipped;  ///< of that GPU
  std::int64_t other_gpus = 0;      ///< rows of others
};

/// Reads the rows of `gpu` that can be simulated: fp32, family gpt or bert, a step time, and
/// nothing that the simulation lacks (ZeRO, recomputation, context or expert parallelism,
/// interleaved stages, sequence parallelism, fused attention, gated feed-forward). Throws
/// InputError with every malformed row of `gpu` as file:line, and where the file has no row of
/// `gpu`.
TrainingRuns read_training_runs(const std::filesystem::path& file, const std::string& gpu);

}  // namespace tessera
