// What accelerate config writes: FSDP, DDP, DeepSpeed, Megatron-LM.
#include "app/import/job/accelerate_job.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "app/import/job/accelerate_keys.h"
#include "app/import/job/deepspeed_config.h"
#include "app/import/job/foundry/foundry_job.h"
#include "app/import/job/fused_attention.h"
#include "app/import/job/imported_job.h"
#include "app/import/job/nanotron/nanotron_job.h"
#include "app/import/job/scenario_draft.h"
#include "app/import/job/trainer/trainer_file.h"
#include "hw/units/lower_case.h"
#include "sim/config/files/text_file.h"

namespace tessera {
namespace {

/// "FULL_SHARD" of "ShardingStrategy.FULL_SHARD".
std::string last_part(const std::string& text) {
  return text.substr(text.rfind('.') + 1);
}

/// Reads one file; one method per part of it.
class AccelerateJob {
 public:
  AccelerateJob(ForeignFields in, const JobOptions& options, const std::string& name,
                ProgramReader program)
      : in_(std::move(in)), options_(options), name_(name), program_(std::move(program)) {}

  ImportedJob read() {
    const std::string kind = in_.text("distributed_type").value_or("NO");
    mixed_ = in_.text("mixed_precision").value_or("no");
    framework_ = options_.framework.empty() ? framework_of(kind) : options_.framework;
    set_model_and_framework(draft_, options_, name_, framework_);
    sizes_.gpus = kind == "NO" ? 1 : in_.integer("num_processes").value_or(0);
    if (kind == "NO") in_.integer("num_processes");
    nodes_ = in_.integer("num_machines").value_or(1);
    if (options_.gpus == 0) sizes_.nodes = nodes_;
    sizes_.accumulation = in_.integer("gradient_accumulation_steps").value_or(0);
    read_parallelism(kind);
    read_kind(kind);
    read_compiler();
    if (mixed_ == "fp8") read_fp8(kind);
    if (program_) program_(draft_, in_, kind, sizes_);
    const bool is_plain = !program_ && framework_ == "hf-eager" && options_.spec;
    if (is_plain) assume_fused_attention(draft_, options_, options_.spec->family);
    judge_rules();
    judge_rest(kind);
    say_left_out(draft_, options_);
    set_data_parallel_job(draft_, in_, options_, sizes_);
    return draft_.finish(in_);
  }

 private:
  static std::string framework_of(const std::string& kind) {
    return kind == "FSDP" ? "fsdp" : kind == "MEGATRON_LM" ? "megatron" : "hf-eager";
  }

  void read_kind(const std::string& kind) {
    if (kind == "FSDP") return read_fsdp();
    if (kind == "DEEPSPEED") return read_deepspeed_plugin();
    if (kind == "MEGATRON_LM") return read_megatron();
    if (kind == "NO" || kind == "MULTI_GPU") return set_autocast();
    in_.refuse("distributed_type", "is " + kind + ", which is not simulated",
               "known: FSDP, DEEPSPEED, MEGATRON_LM, MULTI_GPU, NO");
  }

  /// Weights, gradients and states stay fp32; products take 16-bit copies.
  void set_autocast() {
    draft_.set_text("training.precision", mixed_ == "no" ? "fp32" : mixed_);
    if (mixed_ != "bf16" && mixed_ != "fp16" && mixed_ != "fp8") return;
    for (const char* part : {"parameters", "gradients", "reduce", "optimizer_states"})
      draft_.set(std::string("training.mixed_precision.") + part, "fp32");
    draft_.set("training.mixed_precision.master_weights", "false");
  }

  /// FSDP's strategies by name or number; `reshard` is version 2's switch.
  std::string sharding() {
    const std::string kStrategy = "fsdp_config.fsdp_sharding_strategy";
    const std::string kReshard = "fsdp_config.fsdp_reshard_after_forward";
    const std::string strategy = last_part(in_.text(kStrategy).value_or("FULL_SHARD"));
    const std::string reshard = lower_case(in_.text(kReshard).value_or(""));
    if (reshard == "false" || reshard == "shard_grad_op") return "gradients";
    if (reshard == "hybrid_shard" || reshard == "hybrid_shard_zero2" || reshard == "no_shard")
      return reshard;
    if (reshard == "true" || reshard == "full_shard") return "parameters";
    if (!reshard.empty()) in_.refuse(kReshard, "is " + reshard, "use true or false");
    constexpr std::array<std::pair<std::string_view, const char*>, 5> kNames{
        {{"FULL_SHARD", "parameters"},
         {"SHARD_GRAD_OP", "gradients"},
         {"NO_SHARD", "no_shard"},
         {"HYBRID_SHARD", "hybrid_shard"},
         {"HYBRID_SHARD_ZERO2", "hybrid_shard_zero2"}}};
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      if (strategy == kNames[i].first || strategy == std::to_string(i + 1)) return kNames[i].second;
    }
    in_.refuse(kStrategy, "is " + strategy,
               "known: FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, "
               "HYBRID_SHARD_ZERO2");
    return "parameters";
  }

  /// Version 2 is torch's fully_shard: gathered weights are copied out of their buffer.
  void read_fsdp_version() {
    const std::string kVersion = "fsdp_config.fsdp_version";
    const std::int64_t version = in_.integer(kVersion).value_or(1);
    if (version > 2) in_.refuse(kVersion, "is " + std::to_string(version), "known: 1, 2");
    if (version == 2) draft_.set_in_framework("copies_gathered", "true");
  }

  /// torch.compile of the model: chains of pointwise kernels merge.
  void read_compiler() {
    for (const char* key : {"dynamo_backend", "dynamo_config.dynamo_backend"}) {
      const std::string backend = lower_case(in_.text(key).value_or("no"));
      if (backend == "no") continue;
      draft_.set("training.kernels", "fused");
      if (backend != "inductor")
        leave_out_value(draft_, in_, options_, key,
                        "compiles otherwise than Inductor, which is not simulated",
                        "known: INDUCTOR, NO");
    }
  }

  /// Transformer Engine scales by earlier steps, torchao by the matrix itself (accelerate's
  /// utils/dataclasses.py, TERecipeKwargs, AORecipeKwargs, MSAMPRecipeKwargs).
  void read_fp8(const std::string& kind) {
    const std::string kBackend = "fp8_config.backend";
    const std::string backend = lower_case(in_.text(kBackend).value_or(""));
    if (kind == "MEGATRON_LM") return;
    if (kind == "DEEPSPEED")
      return leave_out_value(draft_, in_, options_, "mixed_precision",
                             "under DeepSpeed is not simulated", "known: no, bf16, fp16");
    if (backend.empty()) draft_.assume("fp8 by Transformer Engine: fp8_config names no backend");
    if (backend == "msamp")
      leave_out_value(draft_, in_, options_, kBackend,
                      "keeps gradients and moments in fp8, which is not simulated",
                      "known: TE, AO");
    else if (!backend.empty() && backend != "te" && backend != "ao")
      in_.refuse(kBackend, "is " + backend, "known: TE, AO");
    draft_.set_in_framework("fp8_scaling", backend == "ao" ? "current" : "delayed");
    if (backend == "ao" && in_.flag("fp8_config.enable_fsdp_float8_all_gather"))
      draft_.set("training.data_parallel.gather_fp8", "true");
  }

  /// accelerate's plugin reduces in the format that it computes in (set_mixed_precision of
  /// utils/dataclasses.py), and accumulates without exchange (accumulate() of accelerator.py).
  void read_fsdp_exchange() {
    draft_.set_text("training.precision", mixed_ == "no" ? "fp32" : mixed_);
    if (mixed_ == "bf16" || mixed_ == "fp16") {
      draft_.set("training.mixed_precision.reduce", mixed_);
      draft_.assume("gradients are reduced in " + mixed_ +
                    ", as accelerate's plugin sets it for mixed_precision = " + mixed_);
    }
    draft_.set("training.data_parallel.reduce_each_micro_batch", "false");
    if (sizes_.accumulation > 1)
      draft_.assume(
          "gradients are reduced behind the last micro-batch, and each GPU holds all of them until "
          "then: accelerate accumulates under no_sync");
  }

  /// CPUOffload(offload_params=True), CPUOffloadPolicy: weights, gradients and states.
  void read_fsdp_offload(bool is_whole) {
    const std::string kOffload = "fsdp_config.fsdp_offload_params";
    if (!in_.flag(kOffload)) return;
    if (is_whole)
      return leave_out_value(draft_, in_, options_, kOffload,
                             "of weights that are not divided is not simulated",
                             "use FULL_SHARD or SHARD_GRAD_OP");
    draft_.set("training.offload_optimizer", "true");
    draft_.set("training.offload_parameters", "true");
  }

  void read_fsdp() {
    read_fsdp_version();
    read_fsdp_exchange();
    std::string how = sharding();
    if (how.starts_with("hybrid")) set_hybrid_group();
    if (how == "hybrid_shard") how = "parameters";
    if (how == "hybrid_shard_zero2") how = "gradients";
    draft_.set("training.data_parallel.sharding", how == "no_shard" ? "none" : how);
    if (how == "gradients") draft_.set("training.data_parallel.gather_units", "true");
    read_fsdp_offload(how == "no_shard");
    if (in_.flag("fsdp_config.fsdp_activation_checkpointing"))
      draft_.set("training.recompute", "full");
  }

  /// The job's own nodes, else those of the cluster.
  std::int64_t gpus_of_a_node() const {
    const bool says = sizes_.gpus > 0 && options_.gpus == 0;
    if (says) return std::max<std::int64_t>(1, sizes_.gpus / std::max<std::int64_t>(1, nodes_));
    constexpr std::int64_t kUsual = 8;
    const std::int64_t gpus = options_.gpus > 0 ? options_.gpus : options_.cluster_gpus;
    const std::int64_t of_node = options_.node_gpus > 0 ? options_.node_gpus : kUsual;
    return gpus > 0 ? std::min(gpus, of_node) : of_node;
  }

  void set_hybrid_group() {
    const std::int64_t per_node = gpus_of_a_node();
    draft_.set("training.data_parallel.shard_group", per_node);
    draft_.assume("shards are divided within a node of " + std::to_string(per_node) + " GPUs");
  }

  /// DeepSpeed's own file where it is named, else the plugin's few keys.
  void read_deepspeed_plugin() {
    const std::string kFile = "deepspeed_config.deepspeed_config_file";
    if (const auto file = in_.text(kFile)) return read_deepspeed_file(kFile, *file);
    const std::string precision = mixed_ == "no" ? "fp32" : mixed_;
    set_engine_precision(draft_, precision);
    const auto stage = in_.integer("deepspeed_config.zero_stage", 0);
    if (stage.value_or(2) > 3)
      in_.refuse("deepspeed_config.zero_stage", "is no stage", "use 0 to 3");
    if (!stage) draft_.assume("ZeRO stage 2, the plugin's default");
    set_zero_stage(draft_, stage.value_or(2), precision);
    set_clipping(draft_, in_, "deepspeed_config.gradient_clipping");
    const auto accumulation = in_.integer("deepspeed_config.gradient_accumulation_steps");
    if (accumulation) sizes_.accumulation = *accumulation;
    read_offload(draft_, in_, options_,
                 {.states = {"deepspeed_config.offload_optimizer_device"},
                  .weights = {"deepspeed_config.offload_param_device"}},
                 stage.value_or(2));
    draft_.assume("optimizer Adam of PyTorch: the file names none");
  }

  /// Lies beside the file that names it, or where its path says.
  void read_deepspeed_file(const std::string& key, const std::string& file) {
    if (options_.folder.empty())
      return in_.refuse(key, "names a file, and there is no folder to find it in", "");
    const std::filesystem::path path = options_.folder / file;
    const std::filesystem::path beside = options_.folder / path.filename();
    const auto& found = std::filesystem::exists(path) ? path : beside;
    if (!std::filesystem::exists(found))
      return in_.refuse(key, "is " + file + ", which is not there",
                        "put it beside " + name_ + ", or import it by itself: import deepspeed");
    ForeignFields inner = read_fields(read_text_file(found), shown_path(found));
    // Programs that are not known may ask for a precision that the launcher does not.
    const bool is_open = mixed_ == "no" && !program_;
    const BatchSizes sizes = read_deepspeed(draft_, inner, options_, is_open ? "" : mixed_);
    const bool follows = inner.is_auto("gradient_accumulation_steps");
    inner.finish();
    const std::int64_t gpus = sizes_.gpus;
    const std::int64_t accumulation = sizes_.accumulation;
    sizes_ = sizes;
    sizes_.gpus = gpus;
    sizes_.nodes = options_.gpus == 0 ? nodes_ : 0;
    if (sizes_.accumulation == 0 || (follows && accumulation > 0))
      sizes_.accumulation = accumulation;
  }

  std::int64_t part(const std::string& name) {
    const std::string prefix = "parallelism_config.";
    const std::string plain = prefix + name;
    const std::string whole = prefix + "parallelism_config_" + name;
    constexpr std::int64_t kMost = 100'000;
    const std::int64_t size = in_.integer(whole).value_or(in_.integer(plain).value_or(1));
    return std::min(size, kMost);
  }

  /// tp and cp share layers and sequences; dp_shard divides, dp_replicate
  /// repeats.
  void read_parallelism(const std::string& kind) {
    const std::int64_t tensor = part("tp_size");
    const std::int64_t context = part("cp_size") * part("sp_size");
    const std::int64_t shard = part("dp_shard_size");
    const std::int64_t replicate = part("dp_replicate_size");
    sizes_.width = tensor * context;
    if (tensor > 1) draft_.set("parallelism.tensor", tensor);
    if (context > 1) read_context(context);
    // Ranks of a context group divide states too (the mesh dp_shard_cp of parallelism_config.py).
    if (replicate > 1 && shard * context > 1)
      draft_.set("training.data_parallel.shard_group", std::min(shard * context, kMostGpus));
    if (context > 1 && options_.framework.empty() && kind != "MEGATRON_LM")
      in_.refuse(size_name(part("sp_size") > 1 ? "sp_size" : "cp_size"),
                 "splits sequences, which the profiles of Hugging Face's modules do not",
                 "name a profile that does, --framework torchtitan or megatron");
    const std::int64_t all = shard * replicate * sizes_.width;
    if (shard * replicate > 1 && sizes_.gpus > 0 && sizes_.gpus != all)
      in_.refuse("num_processes",
                 "is " + std::to_string(sizes_.gpus) +
                     ", but parallelism_config "
                     "takes " +
                     std::to_string(all),
                 "make them equal");
    if (shard * replicate > 1 && sizes_.gpus == 0) sizes_.gpus = all;
  }

  std::string size_name(const std::string& name) const {
    const std::string whole = "parallelism_config.parallelism_config_" + name;
    return in_.has(whole) ? whole : "parallelism_config." + name;
  }

  void read_context(std::int64_t context) {
    draft_.set("parallelism.context", context);
    const bool ulysses = part("sp_size") > 1;
    const std::string how = in_.text(size_name("cp_comm_strategy")).value_or("allgather");
    draft_.set("parallelism.context_attention", ulysses              ? "ulysses"
                                                : how == "allgather" ? "all_gather"
                                                                     : "ring");
  }

  void read_megatron() {
    draft_.set_text("training.precision", mixed_ == "no" ? "fp32" : mixed_);
    const std::string prefix = "megatron_lm_config.megatron_lm_";
    const std::int64_t tensor =
        std::min<std::int64_t>(in_.integer(prefix + "tp_degree").value_or(1), 100'000);
    const std::int64_t stages =
        std::min<std::int64_t>(in_.integer(prefix + "pp_degree").value_or(1), 100'000);
    sizes_.width = tensor * stages;
    draft_.set("parallelism.tensor", tensor);
    draft_.set("parallelism.pipeline", stages);
    sizes_.accumulation = in_.integer(prefix + "num_micro_batches").value_or(1);
    if (in_.flag(prefix + "sequence_parallelism"))
      draft_.set("parallelism.sequence_parallel", "true");
    if (in_.flag(prefix + "recompute_activations")) draft_.set("training.recompute", "selective");
    if (in_.flag(prefix + "use_distributed_optimizer"))
      draft_.set("training.data_parallel.sharding", "optimizer");
    set_clipping(draft_, in_, prefix + "gradient_clipping");
  }

  void judge_rules() {
    for (const UsualValue& rule : accelerate::kRules) {
      const std::string key(rule.key);
      if (is_idle_fp8(key)) continue;
      const auto value = in_.text(key);
      if (!value || lower_case(last_part(*value)) == rule.usual) continue;
      leave_out_value(draft_, in_, options_, key, rule.what, "");
    }
  }

  bool is_idle_fp8(const std::string& key) const {
    return key.starts_with("fp8_config.") && mixed_ != "fp8";
  }

  /// Sections of kinds that do not run have no part in the job.
  bool is_of_another_kind(const std::string& key, const std::string& kind) const {
    return is_idle_fp8(key) || (key.starts_with("fsdp_config.") && kind != "FSDP") ||
           (key.starts_with("deepspeed_config.") && kind != "DEEPSPEED") ||
           (key.starts_with("megatron_lm_config.") && kind != "MEGATRON_LM");
  }

  void judge_rest(const std::string& kind) {
    for (const std::string& key : in_.unread_names()) {
      const bool harmless = std::ranges::any_of(
          accelerate::kHarmless, [&](std::string_view begin) { return key.starts_with(begin); });
      const auto value = in_.text(key);
      const bool is_off = !value || lower_case(*value) == "false" || lower_case(*value) == "no";
      if (harmless || is_off || is_of_another_kind(key, kind)) {
        draft_.ignore(key + " = " + in_.word(key).value_or(""));
      } else {
        leave_out_value(draft_, in_, options_, key,
                        "is not known: whether the step depends on it cannot be told",
                        "take it out of the file where it does not");
      }
    }
  }

  ForeignFields in_;
  const JobOptions& options_;
  std::string name_;
  ProgramReader program_;  ///< empty: what it asks for is not known
  ScenarioDraft draft_;
  BatchSizes sizes_;
  std::string mixed_, framework_;
  std::int64_t nodes_ = 1;
};

}  // namespace

ImportedJob import_accelerate(const std::string& text, const std::string& name,
                              const JobOptions& options) {
  const YamlNode tree = foreign_tree(text, name);
  if (holds_trainer_arguments(tree)) return import_trainer_file(text, name, options);
  if (holds_nanotron_job(tree) || holds_foundry_job(tree))
    throw InputError({name, "is a file of another program",
                      std::string("give it to tessera import ") +
                          (holds_nanotron_job(tree) ? "nanotron" : "llm-foundry")});
  return import_accelerate_fields(read_fields(text, name), name, options);
}

ImportedJob import_accelerate_fields(ForeignFields fields, const std::string& name,
                                     const JobOptions& options, ProgramReader program) {
  return AccelerateJob(std::move(fields), options, name, std::move(program)).read();
}

}  // namespace tessera
