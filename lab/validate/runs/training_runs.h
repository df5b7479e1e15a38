#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hw/units/quantity.h"
#include "lab/validate/bad_rows.h"
#include "lab/validate/corrections.h"
#include "lab/validate/runs/row_rules.h"
#include "sim/config/catalog.h"
#include "workloads/step_options.h"

namespace tessera {

class TrainingRowReader;

/// How a job ended.
enum class RunOutcome : std::uint8_t {
  not_stated,
  ran,
  out_of_memory,  ///< on some rank: neither a time nor a peak
};

/// Whose peak was measured.
enum class PeakRank : std::uint8_t { fullest, first, last };

inline constexpr const char* kImageFamily = "cnn";

/// One measured training step, a row of a file in the format of measurements/training_runs.csv:
/// what identifies it, what was measured, what it is judged by, and the settings of its scenario.
struct TrainingRun {
  std::string where;   ///< file:line
  std::string id;      ///< as written; may be empty
  std::string source;  ///< first word of the column: who measured; may be empty
  std::string gpu;     ///< id of the hardware catalog
  int n_gpus = 1;
  int gpus_per_node = 0;                     ///< 0 = all in one
  std::optional<BytesPerSecond> inter_node;  ///< NIC bandwidth per GPU and direction
  BytesPerSecond all_reduce;                 ///< ClusterSpec::measured_all_reduce, of the very job
  BytesPerSecond all_gather;                 ///< ClusterSpec::measured_all_gather, likewise
  bool node_has_nvlink = true;               ///< false: stated that there is none
  std::string framework;
  int year = 0;  ///< 0: not stated

  // As the columns say; of a simulated run as its scenario does.
  std::string precision;
  std::string model;
  std::int64_t layers = 0, hidden = 0;  ///< 0 of image models
  std::int64_t sequence_length = 0;
  ParallelLayout layout;
  std::int64_t micro_batch = 0, global_batch = 0;  ///< sequences
  Recompute recompute = Recompute::none;

  RowFields fields;                         ///< with those that follow from words
  std::optional<Bytes> bucket;              ///< of gradients
  std::vector<std::string> said;            ///< "path=value" that the row says of its step
  std::vector<std::string> settings;        ///< likewise, of the column: applied last
  std::string scenario;                     ///< id or file of a row that names one; else empty
  std::vector<std::string> approximations;  ///< what the row states and the simulation leaves out

  std::optional<Seconds> step_time;
  std::optional<double> peak_memory_gib;
  std::string memory_metric;  ///< "allocated", "reserved", "smi"; empty without a peak
  PeakRank peak_rank = PeakRank::fullest;
  RunOutcome outcome = RunOutcome::not_stated;

  /// Empty where nothing is stated.
  std::string stated(const std::string& column) const {
    const auto found = fields.find(column);
    return found == fields.end() ? std::string() : found->second;
  }
};

/// A row that cannot be simulated, and why.
struct SkippedRun {
  std::string where;
  std::string id, gpu;
  std::string reason;
  std::string source, framework, precision, model;  ///< as far as stated
  bool measured = false;                            ///< the row has a step time
};

struct TrainingRuns {
  std::filesystem::path file;       ///< the first of several
  std::string text;                 ///< of the whole file
  std::vector<TrainingRun> runs;    ///< in the order of the file
  std::vector<SkippedRun> skipped;  ///< likewise
  AppliedCorrections corrections;
  std::int64_t left_out = 0;  ///< rows of other GPUs than the one asked for
};

/// Rows whose `column` holds one of `values`; the others are as if they were not in the file.
struct RowFilter {
  std::string column;
  std::vector<std::string> values;
  bool part = false;  ///< it is enough that a value occurs in the field
};
/// "dp=1" or "precision=fp16,bf16"; "source~vTrain": a value is part of the field. Throws
/// InputError for text without a column or values.
RowFilter parse_row_filter(const std::string& text);

/// How a file is read.
struct TrainingRunReading {
  std::vector<RowFilter> filters;
  BadRows bad_rows = BadRows::refuse;                ///< rows with a field that cannot be read
  std::optional<std::filesystem::path> corrections;  ///< else X_corrections.csv beside X.csv
  bool correct = true;                               ///< false: labels stay as they are
  std::vector<std::string> ignored;  ///< columns of the reader's own that say nothing of the step
  std::optional<Catalog> catalog;    ///< of scenarios that rows name; without, no row may
};

/// Reads the rows that pass every filter, and skips with a reason what the simulation lacks
/// (training_row_columns.h). Throws InputError with every malformed row as file:line, or skips
/// these too.
TrainingRuns read_training_runs(const std::filesystem::path& file, const RowRules& rules,
                                const TrainingRunReading& reading = {});

/// What was measured of the row's step: its time, a peak of memory, how the job ended. Complains of
/// what cannot be read.
void read_measured_figures(const TrainingRowReader& row, TrainingRun& run);

/// "org/project" of "org/project path/to/file#L12": who measured.
std::string source_of(const TrainingRowReader& row);

/// The rows of several files, one behind the other; at least one. Throws InputError where a file
/// stands twice.
TrainingRuns together(std::vector<TrainingRuns> files);

/// Forgets step times: rows that have one ran, and are judged by memory.
void leave_out_times(TrainingRuns& runs);

/// Of those the rows of `gpu` that have a step time; `skipped` then holds only rows of `gpu`.
/// Throws InputError where none is left.
TrainingRuns read_timed_steps(const std::filesystem::path& file, const RowRules& rules,
                              const std::string& gpu, const TrainingRunReading& reading = {});

}  // namespace tessera
