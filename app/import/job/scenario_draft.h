#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "app/import/job/foreign_fields.h"
#include "app/import/job/imported_job.h"

namespace tessera {

/// A scenario that is put together field by field, with what was assumed on the way.
class ScenarioDraft {
 public:
  void set(std::string_view path, const std::string& value);
  /// In quotes: never read as a number.
  /// A field of the job's framework, which becomes a profile over the one that was set.
  void set_in_framework(const std::string& field, const std::string& value);
  void set_text(std::string_view path, const std::string& value);
  void set(std::string_view path, std::int64_t value) { set(path, std::to_string(value)); }
  void set(std::string_view path, YamlNode value);
  /// The value at `path`; empty where nothing was set.
  std::string said(std::string_view path) const;
  void assume(const std::string& line) { job_.assumed.push_back(line); }
  void ignore(const std::string& line) { job_.ignored.push_back(line); }
  /// Of what the step depends on; the scenario's results will say it.
  void approximate(const std::string& line);

  /// What `fields` were not asked for is ignored. Throws InputError with its problems.
  ImportedJob finish(const ForeignFields& fields);

 private:
  ImportedJob job_{.scenario = {.kind = YamlNode::Kind::mapping,
                                .text = {},
                                .quoted = false,
                                .mark = {},
                                .items = {},
                                .entries = {}},
                   .assumed = {},
                   .ignored = {},
                   .approximate = {}};
};

/// What a script leaves out of its environment.
void say_left_out(ScenarioDraft& draft, const JobOptions& options);

/// `name` says what the step depends on and the scenario cannot say ("is not simulated"): a
/// problem with the hint, or an approximation where `options` are lenient.
void leave_out(ScenarioDraft& draft, ForeignFields& fields, const JobOptions& options,
               const std::string& name, const std::string& what, const std::string& hint);

/// Sets `training.precision` to that of the options; with `all_of_it` weights and optimizer states
/// have it too.
void assume_precision(ScenarioDraft& draft, const JobOptions& options, bool all_of_it);

/// Sets `cluster`: the one of the options, else a shipped one that holds `gpus`.
void set_cluster(ScenarioDraft& draft, const JobOptions& options, std::int64_t gpus);

/// Sizes of a batch as a data-parallel job states them; 0: not given.
struct BatchSizes {
  std::int64_t global = 0;
  std::int64_t micro = 0;
  std::int64_t accumulation = 0;  ///< micro-batches per step and replica
  std::int64_t gpus = 0;          ///< of the job
  std::int64_t width = 1;         ///< GPUs that share a replica
  std::int64_t nodes = 0;         ///< that the job is started on; 0: not told
};

/// Fills what follows from the rest, puts 1 where nothing does, and sets the batch, the replicas
/// and the cluster. Sizes that contradict each other are problems of `fields`.
void set_data_parallel_job(ScenarioDraft& draft, ForeignFields& fields, const JobOptions& options,
                           BatchSizes sizes);

/// Sets model, framework (`assumed_framework` where the options name none) and sequence length (up
/// to 2048 is assumed). Throws InputError without a model; `name` stands for the file.
void set_model_and_framework(ScenarioDraft& draft, const JobOptions& options,
                             const std::string& name, const std::string& assumed_framework);
/// The two apart: of image models there are no sequences.
void set_framework(ScenarioDraft& draft, const JobOptions& options, const std::string& name,
                   const std::string& assumed_framework);
void set_sequence_length(ScenarioDraft& draft, const JobOptions& options);

}  // namespace tessera
