#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/config/files/yaml_tree.h"

namespace tessera {

struct ModelSpec;

/// Most GPUs, or replicas of anything, that a file may ask for.
inline constexpr std::int64_t kMostGpus = 1'000'000;

/// A training job of another program as a scenario, as far as a scenario can say it.
struct ImportedJob {
  YamlNode scenario;                 ///< mapping of scenario fields
  std::vector<std::string> assumed;  ///< what the file does not say, and what was put in its place
  std::vector<std::string> ignored;  ///< what the file says, but the scenario does not
  /// What the scenario says otherwise than the file, though the step depends on it: its field
  /// `approximations`. Nothing without JobOptions::lenient.
  std::vector<std::string> approximate;
  std::string kind = "Megatron-LM job";  ///< of a script
};

/// What the caller knows and files do not say; empty and 0: from the file, else assumed.
struct JobOptions {
  std::string model;  ///< id, file, or config.json; of formats that do not describe the model
  std::shared_ptr<const ModelSpec> spec;  ///< what `model` is; empty: nobody has read it
  std::string cluster;                    ///< id or file
  std::string precision = "bf16";         ///< of products, where the file does not say
  std::int64_t nodes = 0;                 ///< of `cluster`; 0: as many as it has
  std::string framework;
  std::int64_t gpus = 0;
  std::int64_t cluster_gpus = 0;  ///< of the job where neither `gpus` nor the file says how many
  std::int64_t replica_gpus = 1;  ///< that share a copy of a model alone
  std::int64_t node_gpus = 0;     ///< of one node of `cluster`; 0: not known
  std::int64_t job_nodes = 0;     ///< that the file starts the job on; 0: it does not say
  std::int64_t sequence_length = 0;
  std::int64_t longest_sequence = 0;  ///< that `model` takes; 0: any
  std::int64_t hidden = 0;            ///< width of `model`; 0: not known
  std::int64_t layers = 0;            ///< of `model`; 0: not known
  std::filesystem::path folder;       ///< of the file, for files that it names; empty: none
  std::filesystem::path adapter;      ///< adapter_config.json of peft beside the model; empty: none
  std::int64_t global_batch = 0;
  std::int64_t micro_batch = 0;
  bool lenient = false;         ///< what the scenario cannot say is an approximation, not an error
  std::int64_t vocabulary = 0;  ///< tokens, ahead of padding
  std::vector<std::string> left_out;             ///< of a script, as approximations and
  std::vector<std::string> left_aside;           ///< as notes
  std::map<std::string, std::string> variables;  ///< of the shell, whatever the script sets
  std::string arguments;                         ///< of the script: what $1 and on stand for
};

/// Arguments of Megatron-LM (pretrain_gpt.py): a launch script whose variables it sets itself, or
/// the arguments alone. `name` stands for the file in messages. All importers throw InputError with
/// everything that cannot be read.
ImportedJob import_megatron(const std::string& text, const std::string& name,
                            const JobOptions& options);

/// DeepSpeed's configuration (ds_config.json). It does not name the model: `options.model` has to.
ImportedJob import_deepspeed(const std::string& text, const std::string& name,
                             const JobOptions& options);

/// What `accelerate config` writes (YAML) for FSDP, DDP or DeepSpeed; `options.model` has to be
/// given.
ImportedJob import_accelerate(const std::string& text, const std::string& name,
                              const JobOptions& options);

/// Arguments of Hugging Face's Trainer in a file (JSON, YAML); `options.model` has to be given.
ImportedJob import_trainer_file(const std::string& text, const std::string& name,
                                const JobOptions& options);

/// torchtitan's job file (TOML). Its flavor names the model, unless `options.model` does.
ImportedJob import_torchtitan(const std::string& text, const std::string& name,
                              const JobOptions& options);

/// nanotron's file (YAML), which describes the model.
ImportedJob import_nanotron(const std::string& text, const std::string& name,
                            const JobOptions& options);

/// llm-foundry's training file (YAML). It describes MPT; of other models `options.model` has to.
ImportedJob import_foundry(const std::string& text, const std::string& name,
                           const JobOptions& options);

/// A launch script of torchtitan, which names the job file, and may change what it says
/// (--training.seq_len 4096); else one of Megatron-LM. Scripts that start accelerate or DeepSpeed
/// are refused with the file to give instead.
ImportedJob import_script(const std::string& text, const std::string& name,
                          const JobOptions& options);

/// `model`, or the config.json of a folder of that name.
std::string model_or_config(const std::string& model);
/// Reads what `options.model` names, for importers that ask.
JobOptions with_spec(JobOptions options, const ModelSpec& model);

/// A Hugging Face config.json: the model, in a scenario with assumed sizes.
ImportedJob import_hugging_face(const std::filesystem::path& file, const JobOptions& options);

}  // namespace tessera
