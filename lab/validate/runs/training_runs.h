#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hw/units/quantity.h"
#include "lab/validate/bad_rows.h"
#include "lab/validate/corrections.h"
#include "workloads/model_spec.h"
#include "workloads/step_options.h"

namespace tessera {

/// How a job ended.
enum class RunOutcome : std::uint8_t {
  not_stated,
  ran,
  out_of_memory,  ///< on some rank: neither a time nor a peak
};

/// Whose peak was measured.
enum class PeakRank : std::uint8_t { fullest, first, last };

/// One measured training step, a row of a file in the format of measurements/training_runs.csv.
struct TrainingRun {
  std::string where;  ///< file:line
  std::string id;     ///< as written; may be empty
  std::string gpu;    ///< id of the hardware catalog
  int n_gpus = 1;
  int gpus_per_node = 0;                     ///< 0 = all in one
  std::optional<BytesPerSecond> inter_node;  ///< NIC bandwidth per GPU and direction
  BytesPerSecond all_reduce;                 ///< ClusterSpec::measured_all_reduce, of the very job
  std::string framework;
  std::string precision;
  std::string model;
  std::string family;  ///< "gpt", "moe" (GPT with experts), "mpt", "bert", "llama", "cnn"
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, ffn = 0, vocab = 0;
  std::int64_t experts = 0, experts_per_token = 0;  ///< 0 = dense
  std::int64_t sequence_length = 0;
  std::int64_t q_rank = 0, kv_rank = 0, rope_dim = 0, v_head_dim = 0;  ///< of latent attention
  std::int64_t shared_ffn = 0;                   ///< of the experts that all tokens share
  std::int64_t dense_layers = 0, dense_ffn = 0;  ///< ahead of those with experts
  std::int64_t mtp_layers = 0;
  bool tied_embeddings = true;
  bool qk_norm = false;                  ///< norms of queries and keys
  std::int64_t head_dim = 0;             ///< 0: hidden / heads
  std::optional<Activation> activation;  ///< stated in a column of its own
  ParallelLayout layout;
  bool embedding_as_layer = false, head_as_layer = false;  ///< where layers are dealt to stages
  std::optional<PipelineSchedule> schedule;
  Sharding sharding = Sharding::none;              ///< zero_stage
  int shard_group = 0;                             ///< zero_group_size; 0: all replicas
  std::int64_t micro_batch = 0, global_batch = 0;  ///< sequences
  bool micro_batch_stated = true;                  ///< else it follows from the global batch
  std::optional<OptimizerKind> optimizer;          ///< else the family's usual one
  Recompute recompute = Recompute::none;
  std::optional<bool> flash_attention;
  std::optional<Seconds> step_time;
  std::optional<double> peak_memory_gib;
  std::string memory_metric;  ///< "allocated", "reserved", "smi"; empty without a peak
  PeakRank peak_rank = PeakRank::fullest;
  RunOutcome outcome = RunOutcome::not_stated;
  bool local_modules = false;  ///< Megatron-Core without Transformer Engine
  bool gated_mlp = false;      ///< of a family whose MLP is not gated by itself
  bool compiled = false;       ///< under torch.compile
  bool deterministic = false;  ///< algorithms were restricted to deterministic ones
  std::optional<Fp8Scaling> fp8_scaling;
  CudaGraphs cuda_graphs = CudaGraphs::off;
  std::vector<std::string> approximations;  ///< what the row states and the simulation leaves out
  std::optional<Precision> gradients, reduce;  ///< formats that differ from the framework's
  std::optional<bool> overlap_tensor_products, overlap_tensor_gradients;
  std::optional<Bytes> bucket;        ///< of gradients
  bool node_has_nvlink = true;        ///< false: stated that there is none
  std::vector<std::string> settings;  ///< "path=value", applied last
  int year = 0;                       ///< 0: not stated
  std::string source;                 ///< first word of the column: who measured; may be empty
};

/// Whether the run is built from Llama's layers, as those of family moe with gated experts are.
bool is_llama(const TrainingRun& run);

/// A row that cannot be simulated, and why.
struct SkippedRun {
  std::string where;
  std::string id, gpu;
  std::string reason;
  std::string source, framework, precision, model;  ///< as far as stated
  bool measured = false;                            ///< the row has a step time
};

struct TrainingRuns {
  std::filesystem::path file;
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
};

/// Reads the rows that pass every filter, and skips with a reason what the simulation lacks
/// (training_row_columns.h). Throws InputError with every malformed row as file:line, or skips
/// these too.
TrainingRuns read_training_runs(const std::filesystem::path& file,
                                const TrainingRunReading& reading);
TrainingRuns read_training_runs(const std::filesystem::path& file,
                                const std::vector<RowFilter>& filters = {});

/// Of those the rows of `gpu` that have a step time; `skipped` then holds only rows of `gpu`.
/// Throws InputError where none is left.
TrainingRuns read_timed_steps(const std::filesystem::path& file, const std::string& gpu);

}  // namespace tessera
