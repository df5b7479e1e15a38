// Hugging Face's Trainer: its arguments over accelerate's configuration.
#include "app/import/job/trainer/trainer_job.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <utility>

#include "app/import/job/accelerate_job.h"
#include "app/import/job/deepspeed_config.h"
#include "app/import/job/launch/job_files.h"
#include "app/import/job/megatron/megatron_launch.h"
#include "app/import/job/trainer/trainer_arguments.h"
#include "app/import/job/trainer/trainer_command.h"
#include "app/import/job/trainer/trainer_file.h"
#include "app/import/job/trainer/trainer_kind.h"
#include "app/import/job/trainer/trainer_program.h"
#include "hw/units/lower_case.h"
#include "sim/config/files/text_file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kUsualSequences = 8;  // per_device_train_batch_size

/// accelerate's name of a key of its command line: "--fsdp_offload_params", "--zero_stage".
std::string accelerate_key(const std::string& option) {
  std::string key = option.substr(std::min(option.find_first_not_of('-'), option.size()));
  std::ranges::replace(key, '-', '_');
  constexpr std::string_view kOfDeepSpeed[] = {"zero_stage",           "offload_optimizer_device",
                                               "offload_param_device", "gradient_clipping",
                                               "zero3_init_flag",      "zero3_save_16bit_model"};
  if (key.starts_with("fsdp_")) return "fsdp_config." + key;
  if (key.starts_with("parallelism_config_")) return "parallelism_config." + key;
  if (key.starts_with("fp8_")) return "fp8_config." + key.substr(4);
  if (key.starts_with("deepspeed_") ||
      std::ranges::find(kOfDeepSpeed, key) != std::end(kOfDeepSpeed))
    return "deepspeed_config." + key;
  return key.starts_with("dynamo_") ? "dynamo_config." + key : key;
}

class TrainerJob {
 public:
  TrainerJob(MegatronLaunch launch, const ShellScript& script, std::string name, JobOptions options)
      : launch_(std::move(launch)),
        script_(script),
        name_(std::move(name)),
        options_(std::move(options)) {}

  /// `file`: its arguments alone, which nobody starts.
  enum class Launcher { accelerate, deepspeed, processes, python, file };

  /// Arguments that a file holds; those of the command line go over them.
  void take(TrainerArguments arguments) {
    fields_ = std::move(arguments.fields);
    has_file_ = true;
    is_of_another_ = arguments.is_of_another;
    notes_ = std::move(arguments.assumed);
    std::ranges::move(arguments.ignored, std::back_inserter(options_.left_aside));
    std::ranges::move(arguments.approximate, std::back_inserter(options_.left_out));
  }

  ImportedJob read(Launcher launcher) {
    if (!launch_.problems.empty()) throw InputError(launch_.problems);
    if (launcher == Launcher::accelerate) read_accelerate();
    add_arguments();
    const TrainerCommand command{launch_.program, launch_.where, script_,
                                 launcher == Launcher::file};
    refuse_other_trainings(command, fields_);
    if (!is_of_another_) notes_ = notes_on_program(command, fields_);
    const bool has_launcher = launcher != Launcher::accelerate && launcher != Launcher::file;
    if (has_launcher) read_processes(launcher);
    read_distribution();
    read_batch();
    need_model();
    launch_.launcher.finish();
    const auto program = [this](ScenarioDraft& draft, ForeignFields& in, const std::string& kind,
                                const BatchSizes& sizes) {
      check_sizes(in, sizes);
      for (const std::string& line : notes_) draft.assume(line);
      read_trainer_program(draft, in, options_, kind);
    };
    ImportedJob job = import_accelerate_fields(std::move(fields_), name_, options_, program);
    job.kind = "job of Hugging Face's Trainer";
    return job;
  }

  /// The arguments of the command line are LLaMA-Factory's, as those of its files are.
  void take_as_of_llama_factory() {
    ForeignFields plain;
    for (const auto& [option, value] : launch_.arguments.values()) {
      std::string key = option.substr(2);
      std::ranges::replace(key, '-', '_');
      plain.add(key, {value.text.empty() ? "true" : value.text, value.where});
    }
    launch_.arguments = {};
    take(llama_factory_arguments(std::move(plain)));
  }

 private:
  bool given(const std::string& name) const { return fields_.has(name); }
  void put(const std::string& key, const std::string& value, const std::string& where) {
    fields_.add(key, {value, where});
  }
  /// What `key` says, unless the command line or the file says something already.
  void put_if_open(const std::string& key, const std::string& value) {
    if (!given(key)) put(key, value, launch_.where);
  }

  /// The file of --config_file, and the command line over it (accelerate/commands/launch.py).
  void read_accelerate() {
    ForeignFields& launcher = launch_.launcher;
    if (const auto file = launcher.text("--config_file"))
      add(read_fields(read_text_file(found(*file, "--config_file")), shown_path(*file)));
    for (const auto& [option, value] : launcher.values()) {
      if (option == "--config_file") continue;
      const std::string text = value.text.empty() ? "true" : value.text;
      constexpr std::pair<std::string_view, const char*> kKinds[] = {
          {"--use_fsdp", "FSDP"}, {"--use_deepspeed", "DEEPSPEED"}, {"--multi_gpu", "MULTI_GPU"}};
      const auto kind =
          std::ranges::find(kKinds, option, [](const auto& one) { return one.first; });
      if (kind != std::end(kKinds))
        put("distributed_type", kind->second, value.where);
      else
        put(accelerate_key(option), text, value.where);
    }
  }

  void add(const ForeignFields& others) {
    for (const auto& [name, value] : others.values()) fields_.add(name, value);
  }

  void add_arguments() {
    for (const auto& [option, value] : launch_.arguments.values()) {
      if (option == "--config" && has_file_) continue;
      std::string name = option;
      std::ranges::replace(name.begin() + 2, name.end(), '-', '_');
      put(name, value.text, value.where);
    }
  }

  fs::path found(const std::string& file, const char* option) const {
    if (const auto path = file_of_script(file, options_)) return *path;
    throw InputError({launch_.where,
                      std::string(option) + " names " + file + ", which is not there",
                      "put it beside the script"});
  }

  /// torchrun and srun say how many, deepspeed takes all GPUs, python starts one process.
  void read_processes(Launcher launcher) {
    for (const char* count : {"num_machines", "num_processes"})  // axolotl's, for accelerate
      if (const auto said = launch_.launcher.integer(std::string("--") + count))
        put(count, std::to_string(*said), launch_.where);
    if (given("num_processes")) return;
    const std::int64_t gpus = gpus_of(launch_, script_.variables);
    const std::int64_t nodes = nodes_of(launch_, script_.variables);
    if (nodes > 0) put("num_machines", std::to_string(nodes), launch_.where);
    if (gpus > 0) return put("num_processes", std::to_string(gpus), launch_.where);
    if (launcher == Launcher::deepspeed || options_.gpus > 0) return need_gpus();
    put("num_processes", "1", launch_.where);
    notes_.push_back(launcher == Launcher::python
                         ? "one GPU: python starts one process (where it sees several GPUs the "
                           "Trainer uses DataParallel, which is not simulated)"
                         : "one GPU: torchrun starts one process where it is not told how many");
  }

  /// Of programs around the Trainer, which take all GPUs that there are.
  void need_gpus() const {
    if (!is_of_another_ || options_.gpus > 0 || options_.cluster_gpus > 0) return;
    throw InputError({launch_.where,
                      "starts on all GPUs that it sees, and nothing says how many they are",
                      "add --gpus, or --cluster"});
  }

  /// --deepspeed and --fsdp choose, else the launcher.
  void read_distribution() {
    if (const auto file = fields_.text("--deepspeed")) {
      put("distributed_type", "DEEPSPEED", launch_.where);
      put("deepspeed_config.deepspeed_config_file", *file, launch_.where);
      check_deepspeed_file(*file);
    } else if (const auto how = fields_.text("--fsdp")) {
      read_fsdp(lower_case(*how));
    }
    put_if_open("distributed_type", "MULTI_GPU");
    if (fields_.flag("--bf16") && fields_.flag("--fp16"))
      fields_.refuse("--fp16", "and --bf16 are both given", "keep one of them");
    for (const char* precision : {"bf16", "fp16"})
      if (fields_.flag(std::string("--") + precision))
        put("mixed_precision", precision, launch_.where);
    put_if_open("mixed_precision", "no");
  }

  /// The Trainer itself refuses a file that says another number than its arguments.
  void check_deepspeed_file(const std::string& file) {
    ForeignFields inner = read_fields(read_text_file(found(file, "--deepspeed")), shown_path(file));
    const auto compare = [&](const char* key, const char* argument, std::int64_t usual) {
      const auto said = inner.is_auto(key) ? std::nullopt : inner.integer(key);
      const std::int64_t own = fields_.integer(argument).value_or(usual);
      if (said && *said != own)
        fields_.refuse(argument,
                       "is " + std::to_string(own) + ", and " + key + " of " + file + " is " +
                           std::to_string(*said) + ": the Trainer does not start",
                       "write auto there, or the same number");
    };
    compare("train_micro_batch_size_per_gpu", "--per_device_train_batch_size", kUsualSequences);
    compare("gradient_accumulation_steps", "--gradient_accumulation_steps", 1);
  }

  /// "full_shard auto_wrap offload".
  void read_fsdp(const std::string& how) {
    put("distributed_type", "FSDP", launch_.where);
    constexpr std::pair<std::string_view, const char*> kStrategies[] = {
        {"hybrid_shard_zero2", "HYBRID_SHARD_ZERO2"},
        {"hybrid_shard", "HYBRID_SHARD"},
        {"full_shard", "FULL_SHARD"},
        {"shard_grad_op", "SHARD_GRAD_OP"},
        {"no_shard", "NO_SHARD"}};
    const auto strategy = std::ranges::find_if(
        kStrategies, [&](const auto& one) { return how.find(one.first) != std::string::npos; });
    if (strategy == std::end(kStrategies))
      fields_.refuse("--fsdp", "is " + how, "known: full_shard, shard_grad_op, hybrid_shard");
    else
      put("fsdp_config.fsdp_sharding_strategy", strategy->second, launch_.where);
    if (how.find("auto_wrap") == std::string::npos)
      fields_.refuse("--fsdp",
                     "has no auto_wrap: the whole model would be one unit, which is not "
                     "simulated",
                     "write \"" + how + " auto_wrap\"");
    if (how.find("offload") != std::string::npos)
      put("fsdp_config.fsdp_offload_params", "true", launch_.where);
    if (const auto file = fields_.text("--fsdp_config")) read_fsdp_file(*file);
  }

  /// JSON whose keys may have the prefix or not (training_args.py, _process_fsdp_args).
  void read_fsdp_file(const std::string& file) {
    const bool is_text = file.starts_with("{");
    const ForeignFields inner =
        is_text ? read_fields(file, launch_.where)
                : read_fields(read_text_file(found(file, "--fsdp_config")), shown_path(file));
    for (const auto& [key, value] : inner.values()) {
      const bool has_prefix = key.starts_with("fsdp_") || key.starts_with("xla");
      put("fsdp_config." + (has_prefix ? key : "fsdp_" + key), value.text, value.where);
    }
  }

  void read_batch() {
    const std::string kBatch = "--per_device_train_batch_size";
    const std::int64_t own = fields_.integer(kBatch).value_or(kUsualSequences);
    if (!given(kBatch))
      notes_.push_back("8 sequences per GPU and micro-batch, the Trainer's default");
    const auto accumulation = fields_.integer("--gradient_accumulation_steps");
    if (accumulation)
      put("gradient_accumulation_steps", std::to_string(*accumulation), launch_.where);
    is_own_batch_ = options_.micro_batch == 0 && options_.global_batch == 0;
    if (options_.micro_batch == 0) options_.micro_batch = own;
    read_length();
  }

  /// One of their names; two that say different things leave it open.
  void read_length() {
    std::string first;
    std::int64_t length = 0;
    for (const char* name : trainer::kLengths) {
      const auto tokens = fields_.integer(name);
      if (!tokens) continue;
      if (length > 0 && *tokens != length && options_.sequence_length == 0)
        fields_.refuse(name,
                       "is " + std::to_string(*tokens) + ", and " + first + " is " +
                           std::to_string(length) + ": which one cuts sequences cannot be told",
                       "give --sequence-length, or keep one of them");
      if (length == 0) first = name;
      length = length == 0 ? *tokens : length;
    }
    if (length > 0 && options_.sequence_length == 0)
      options_.sequence_length = std::min<std::int64_t>(length, 100'000'000);
  }

  /// DeepSpeed's train_batch_size beside the Trainer's own.
  void check_sizes(ForeignFields& in, const BatchSizes& sizes) const {
    const std::int64_t gpus = options_.gpus > 0 ? options_.gpus : sizes.gpus;
    if (!is_own_batch_ || sizes.global == 0 || gpus == 0) return;
    const std::int64_t own = std::min(options_.micro_batch, kMostGpus) *
                             std::clamp<std::int64_t>(sizes.accumulation, 1, kMostGpus) * gpus;
    if (own == sizes.global) return;
    in.refuse("--per_device_train_batch_size",
              "* accumulation * GPUs = " + std::to_string(own) + ", and DeepSpeed's file says " +
                  std::to_string(sizes.global) + ": the Trainer does not start",
              "write auto there, or the same number");
  }

  void need_model() {
    if (!options_.model.empty()) return;
    const std::string name = fields_.text("--model_name_or_path").value_or("the model");
    throw InputError({launch_.where, "trains " + name + ", of which nothing is fetched",
                      "add --model with its config.json, or an id of tessera list models"});
  }

  MegatronLaunch launch_;
  const ShellScript& script_;
  std::string name_;
  JobOptions options_;
  ForeignFields fields_;
  std::vector<std::string> notes_;
  bool has_file_ = false;       ///< of arguments
  bool is_of_another_ = false;  ///< of a program around the Trainer
  bool is_own_batch_ = true;    ///< no option of the import gives another
};

}  // namespace

ImportedJob import_trainer_file(const std::string& text, const std::string& name,
                                const JobOptions& options) {
  MegatronLaunch launch;
  launch.where = name;
  const ShellScript nothing;
  TrainerJob job(std::move(launch), nothing, name, options);
  job.take(trainer_arguments(foreign_tree(text, name)));
  return job.read(TrainerJob::Launcher::file);
}

std::optional<ImportedJob> trainer_job(const std::string& text, const ShellScript& script,
                                       const std::string& name, const JobOptions& options,
                                       bool of_another) {
  using Launcher = TrainerJob::Launcher;
  for (const ShellCommand& command : script.commands) {
    auto file = arguments_file(command, script, name, options);
    const bool is_another = starts_another(command, file);
    if (is_another != of_another || (!is_of_trainer(command) && !file)) continue;
    // srun's options ahead of accelerate are not accelerate's.
    ShellCommand own = without_conda(command);
    const bool by_accelerate = has_word(command, "accelerate") && has_word(command, "launch");
    if (by_accelerate)
      own.words.erase(own.words.begin(),
                      std::ranges::find(own.words, "accelerate", &ShellWord::text));
    const bool is_plain = has_word(command, "python") || has_word(command, "python3");
    const bool is_several = has_word(command, "torch.distributed.run") ||
                            has_word(command, "torch.distributed.launch") ||
                            has_word(command, "srun") || has_word(command, "mpirun");
    const Launcher launcher = by_accelerate              ? Launcher::accelerate
                              : starts_all_gpus(command) ? Launcher::deepspeed
                              : is_plain && !is_several  ? Launcher::python
                                                         : Launcher::processes;
    MegatronLaunch launch = launch_of_command(own, text, script, name);
    if (is_another && launcher == Launcher::deepspeed) add_counts(script, launch);
    if (file && trainer_file_kind(*file) == TrainerFileKind::axolotl)
      take_options_of_axolotl(*file, launch);
    TrainerJob job(std::move(launch), script, name, options);
    if (file)
      job.take(trainer_arguments(*file));
    else if (is_another)
      job.take_as_of_llama_factory();
    return job.read(launcher);
  }
  return std::nullopt;
}

}  // namespace tessera
