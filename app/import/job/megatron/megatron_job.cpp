// Megatron-LM's arguments as a scenario: which framework, what is left over.
#include "app/import/job/megatron/megatron_job.h"

#include <filesystem>

#include "app/import/job/megatron/megatron_arguments.h"
#include "app/import/job/script_environment.h"
#include "hw/units/lower_case.h"
#include "sim/config/files/yaml_text.h"

namespace tessera {
namespace {

/// "--mtp-num-layers=0|none": whether `value` is one of "0|none".
bool is_neutral(std::string_view neutral, const std::string& value) {
  while (!neutral.empty()) {
    const std::size_t end = std::min(neutral.find('|'), neutral.size());
    if (neutral.substr(0, end) == lower_case(value)) return true;
    neutral.remove_prefix(std::min(end + 1, neutral.size()));
  }
  return false;
}

/// "a, b" as a list.
YamlNode words_of(const std::string& text) {
  YamlNode list;
  list.kind = YamlNode::Kind::sequence;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(", ", at), text.size());
    YamlNode& item = list.items.emplace_back();
    item.kind = YamlNode::Kind::scalar;
    item.text = text.substr(at, end - at);
    at = end + 2;
  }
  return list;
}

bool is_off(const std::string& value) {
  return value == "false" || value == "False";
}

}  // namespace

ImportedJob MegatronJob::read(const std::string& title) {
  draft_.set_text("name", title);
  read_framework();
  read_model(title);
  read_training();
  read_parallelism();
  if (deepspeed_) read_deepspeed();
  read_vocabulary();  // its padding depends on the tensor-parallel ranks
  read_recomputation();
  read_data_parallel();
  read_graphs();
  note_left_out();
  set_framework();
  sort_the_rest();
  for (const Problem& one : launch_.problems) {
    if (options_.lenient)
      draft_.approximate(one.what + " (" + one.where + "): left out");
    else
      in_.add_problem(one);
  }
  ImportedJob job = draft_.finish(in_);
  return job;
}

std::int64_t MegatronJob::needed(const char* name) {
  if (!given(name)) problem(name, "is missing", "add it to the arguments");
  return integer(name).value_or(1);
}

std::optional<std::string> MegatronJob::text(const char* name) {
  return in_.text(name);
}

std::optional<std::int64_t> MegatronJob::integer(const char* name, std::int64_t least) {
  const auto value = text(name);
  if (!value || !is_unknown(*value)) return in_.integer(name, least);
  problem(name, "is " + *value, hint_for_unknown(*value, script_));
  return std::nullopt;
}

bool MegatronJob::flag(const char* name) {
  if (!given(name)) return false;
  const std::string value = in_.values().at(name).text;
  const bool yes = in_.flag(name);
  const bool no = is_off(value) || value == "0" || value == "no";
  if (!yes && !no)
    problem(name, "stands ahead of " + value,
            is_unknown(value) ? hint_for_unknown(value, script_) : "it takes no value");
  return yes;
}

void MegatronJob::cannot(const char* name, const std::string& what, const std::string& hint) {
  const std::string advice =
      hint.empty() ? "change it, or import with --lenient, which leaves it out and says so" : hint;
  if (!given(name) && !options_.lenient) return problem(name, what, advice);
  leave_out(draft_, in_, options_, name, what, advice);
}

/// Which profile runs the step. Arguments that only versions of 2021 and 2022 have name these.
void MegatronJob::read_framework() {
  deepspeed_ = flag("--deepspeed");
  const bool old_checkpointing = given("--checkpoint-activations") && !deepspeed_;
  legacy_ = old_checkpointing || given("--DDP-impl") || given("--activations-checkpoint-method") ||
            given("--checkpoint-num-layers");
  const std::string engine = text("--transformer-impl").value_or("");
  if (engine != "local" && engine != "transformer_engine" && !engine.empty())
    cannot("--transformer-impl", "names layers that are not simulated");
  const bool local = engine == "local" || (flag("--use-legacy-models") && engine.empty());
  framework_ = deepspeed_                       ? "megatron-deepspeed"
               : engine == "transformer_engine" ? "megatron"
               : legacy_                        ? "megatron-2022"
               : local                          ? "megatron-local"
                                                : "megatron";
  if (!options_.framework.empty())
    framework_ = options_.framework;
  else if (deepspeed_)
    draft_.assume("framework megatron-deepspeed: --deepspeed");
  else if (framework_ == "megatron-2022")
    draft_.assume("framework megatron-2022: arguments that Megatron-LM had up to 2022");
  else if (framework_ == "megatron")
    draft_.assume("framework megatron: layers of Transformer Engine");
  in_.take("--use-mcore-models");
  if (flag("--deterministic-mode")) set_profile("deterministic", "true");
  read_attention();
  const auto queues = script_.variables.find("CUDA_DEVICE_MAX_CONNECTIONS");
  const bool one = queues != script_.variables.end() && queues->second.size() == 1;
  const std::string count = one ? queues->second.front() : "";
  const bool is_count = !count.empty() && count.size() < 3 &&
                        count.find_first_not_of("0123456789") == std::string::npos &&
                        std::stoi(count) >= 1 && std::stoi(count) <= 32;
  const bool is_default = count == (framework_ == "megatron-deepspeed" ? "8"
                                    : framework_ == "megatron"         ? "0"
                                                                       : "1");
  if (is_count && !is_default) set_profile("cuda_device_max_connections", count);
  read_environment();
}

/// Variables that NCCL and Transformer Engine read. Attention's are part of the profile; the
/// scenario says that it leaves the others out.
void MegatronJob::read_environment() {
  const auto value_of = [this](const char* name) {
    const auto found = script_.variables.find(name);
    return found == script_.variables.end() || found->second.size() != 1 ? ""
                                                                         : found->second.front();
  };
  const bool engine =
      framework_ == "megatron" && text("--attention-backend").value_or("auto") == "auto";
  const bool no_flash = value_of("NVTE_FLASH_ATTN") == "0";
  const bool no_fused = value_of("NVTE_FUSED_ATTN") == "0";
  if (engine && (no_flash || no_fused))
    set_profile("attention", !no_flash ? "flash2" : !no_fused ? "cudnn" : "unfused");
  const LeftOutVariables left_out = left_out_variables(script_);
  for (const std::string& line : left_out.of_time) draft_.approximate(line);
  for (const std::string& line : left_out.of_memory) draft_.ignore(line);
}

/// Kernels of attention, and those that are fused or not.
void MegatronJob::read_attention() {
  const bool engine = framework_ == "megatron";
  const bool old_flash = flag("--use-flash-attn-v1") || flag("--use-flash-attn-triton");
  const bool flash = !engine && (flag("--use-flash-attn") || flag("--use-flash-attn-v2"));
  if (!engine && old_flash)
    set_profile("attention", "flash1");
  else if (!engine && flash)
    set_profile("attention", "flash2");
  const bool unfused = !engine && flag("--no-masked-softmax-fusion");
  if (unfused && !flash && !old_flash) set_profile("attention", "unfused");
  const std::string backend = text("--attention-backend").value_or("auto");
  if (backend == "flash")
    set_profile("attention", "flash2");
  else if (backend == "fused")
    set_profile("attention", "cudnn");
  else if (backend == "unfused" || backend == "local")
    set_profile("attention", "unfused");
  else if (backend != "auto")
    cannot("--attention-backend", "names kernels that are not simulated");
  if (flag("--no-gradient-accumulation-fusion")) set_profile("products_accumulate", "false");
  if (flag("--no-rope-fusion")) set_profile("fused_rope", "false");
  if (flag("--no-bias-swiglu-fusion")) set_profile("fused_gate", "false");
  const bool sums_behind = flag("--no-async-tensor-model-parallel-allreduce");
  if (sums_behind && framework_ != "megatron-deepspeed")
    set_profile("overlap_tensor_gradients", "false");
  if (flag("--no-overlap-p2p-communication")) set_profile("overlap_p2p", "false");
}

/// A profile's name, or one with fields of the job's own.
void MegatronJob::set_framework() {
  if (profile_.empty()) return draft_.set_text("training.framework", framework_);
  draft_.set_text("training.framework.extends", framework_);
  for (const auto& [field, value] : profile_) draft_.set("training.framework." + field, value);
  if (graph_modules_.empty()) return;
  draft_.set("training.framework.graph_modules", words_of(graph_modules_));
}

/// What no method has asked for: harmless, refused, or not known.
void MegatronJob::sort_the_rest() {
  std::vector<std::string> unread;
  for (const auto& [name, value] : in_.values()) {
    if (!in_.was_read(name)) unread.push_back(name);
  }
  for (const std::string& name : unread) {
    const KnownArgument* known = megatron_argument(name);
    const std::string value = in_.values().at(name).text;
    const bool unset = value == "none" || value == "None" || value == "auto";
    const bool refused = known && known->use == ArgumentUse::refused;
    if (refused && !is_neutral(known->neutral, value) && !is_off(value))
      cannot(name.c_str(), "is not simulated: " + std::string(known->why));
    else if (!known && !launcher_option(name))
      cannot(name.c_str(), "is not known",
             "take it out if the step does not depend on it, or import with --lenient");
    if (!known || known->use != ArgumentUse::read || unset) continue;
    in_.take(name);  // said here, not as one that has no part in a step
    draft_.ignore(name + (value.empty() ? "" : " = " + value) +
                  ": without effect beside the other arguments");
  }
}

ImportedJob import_megatron(const std::string& text, const std::string& name,
                            const JobOptions& options) {
  const ShellScript script = script_of_job(text, name, options);
  const std::string title = std::filesystem::path(name).stem().string();
  std::optional<ImportedJob> first;
  std::string where;
  const std::string other_gpu = gpu_not_taken(text, script, name, options);
  for (MegatronLaunch& launch : megatron_launches(text, script, name)) {
    const std::string here = launch.where;
    const std::string condition = launch.condition;
    ImportedJob job = MegatronJob(std::move(launch), script, options).read(title);
    if (!other_gpu.empty()) job.assumed.push_back(other_gpu);
    if (first && to_yaml(job.scenario) != to_yaml(first->scenario)) {
      const std::string why = condition.empty() ? "" : "; which one runs depends on " + condition;
      throw InputError(
          {here, "starts another job than " + where + why,
           condition.empty() ? "keep one of them in the file" : "choose with --define or --args"});
    }
    if (first) continue;
    first = std::move(job);
    where = here;
  }
  return std::move(*first);
}

}  // namespace tessera
