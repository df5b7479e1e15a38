// Jobs that shard over data-parallel ranks: DeepSpeed's ds_config.json, accelerate's config.
#include <algorithm>

#include "sim/import/job/foreign_fields.h"
#include "sim/import/job/imported_job.h"
#include "sim/import/job/scenario_draft.h"

namespace tessera {
namespace {

/// JSON is YAML but for tabs between values.
ForeignFields read_fields(std::string text, const std::string& name) {
  std::replace(text.begin(), text.end(), '\t', ' ');
  const YamlNode tree = parse_yaml(text, std::make_shared<Origin>(Origin{name, {}, true}));
  if (tree.kind != YamlNode::Kind::mapping)
    throw InputError({name, "holds no fields", "give the file that the program reads"});
  return fields_of(tree);
}

/// ZeRO's stage as the scenario's sharding; 2 and 3 reduce gradients behind every micro-batch.
void set_zero_stage(ScenarioDraft& draft, ForeignFields& in, const std::string& name) {
  const auto stage = in.integer(name, 0);
  if (!stage) return;
  if (*stage > 3) in.refuse(name, "is " + std::to_string(*stage), "use a stage from 0 to 3");
  constexpr const char* kSharding[] = {"none", "optimizer", "gradients", "parameters"};
  draft.set("training.data_parallel.sharding", kSharding[std::min<std::int64_t>(*stage, 3)]);
}

/// Offloading is no part of a simulated step: it is said loudly.
void report_offload(ScenarioDraft& draft, ForeignFields& in, const std::string& name) {
  const auto device = in.text(name);
  if (device && *device != "false" && *device != "False")
    draft.ignore(name + " = " + *device + ": what is offloaded stays on the GPU in the simulation");
}

void set_clipping(ScenarioDraft& draft, ForeignFields& in, const std::string& name) {
  const auto norm = in.number(name);
  draft.set("training.clip_gradients", norm.value_or(0) > 0 ? "true" : "false");
}

std::string precision_of_switches(ForeignFields& in) {
  const bool bfloat = in.flag("bf16.enabled") || in.flag("bfloat16.enabled");
  const bool half = in.flag("fp16.enabled");
  return bfloat ? "bf16" : half ? "fp16" : "fp32";
}

void read_zero(ScenarioDraft& draft, ForeignFields& in, const std::string& precision) {
  set_zero_stage(draft, in, "zero_optimization.stage");
  if (in.has("zero_optimization.overlap_comm")) {
    const bool overlaps = in.flag("zero_optimization.overlap_comm");
    draft.set("training.data_parallel.overlap_gradients", overlaps ? "true" : "false");
  }
  if (const auto elements = in.integer("zero_optimization.reduce_bucket_size")) {
    const std::int64_t bytes = *elements * (precision == "fp32" ? 4 : 2);
    draft.set("training.data_parallel.bucket", std::to_string(bytes) + " B");
  }
  if (const auto ranks = in.integer("zero_optimization.zero_hpz_partition_size");
      ranks && *ranks > 1)
    draft.ignore("zero_optimization.zero_hpz_partition_size: secondary shards are not simulated");
  report_offload(draft, in, "zero_optimization.offload_optimizer.device");
  report_offload(draft, in, "zero_optimization.offload_param.device");
}

void set_checkpointing(ScenarioDraft& draft, bool checkpoints) {
  if (checkpoints) draft.set("training.recompute", "full");
}

/// FSDP's strategies by name or number; `reshard` is version 2's switch.
std::string sharding_of(ForeignFields& in) {
  const std::string strategy = in.text("fsdp_config.fsdp_sharding_strategy").value_or("");
  if (in.has("fsdp_config.fsdp_reshard_after_forward")) {
    const std::string reshard = in.text("fsdp_config.fsdp_reshard_after_forward").value_or("true");
    if (reshard == "false" || reshard == "SHARD_GRAD_OP") return "gradients";
    if (reshard == "true" || reshard == "FULL_SHARD") return "parameters";
  }
  if (strategy == "SHARD_GRAD_OP" || strategy == "2") return "gradients";
  if (strategy == "NO_SHARD" || strategy == "3") return "none";
  if (strategy == "HYBRID_SHARD" || strategy == "4") return "hybrid";
  if (strategy == "HYBRID_SHARD_ZERO2" || strategy == "5") return "hybrid gradients";
  return "parameters";
}

void read_fsdp(ScenarioDraft& draft, ForeignFields& in, std::int64_t per_node) {
  std::string sharding = sharding_of(in);
  if (sharding.starts_with("hybrid")) {
    sharding = sharding == "hybrid" ? "parameters" : "gradients";
    draft.set("training.data_parallel.shard_group", per_node);
    draft.assume("shards are divided within a node of " + std::to_string(per_node) + " GPUs");
  }
  draft.set("training.data_parallel.sharding", sharding);
  if (sharding == "gradients") draft.set("training.data_parallel.gather_units", "true");
  report_offload(draft, in, "fsdp_config.fsdp_offload_params");
  set_checkpointing(draft, in.flag("fsdp_config.fsdp_activation_checkpointing"));
}

}  // namespace

ImportedJob import_deepspeed(const std::string& text, const std::string& name,
                             const JobOptions& options) {
  ForeignFields in = read_fields(text, name);
  ScenarioDraft draft;
  set_model_and_framework(draft, options, name, "hf-eager");
  const std::string precision = precision_of_switches(in);
  draft.set("training.precision", precision);
  const BatchSizes sizes{.global = in.integer("train_batch_size").value_or(0),
                         .micro = in.integer("train_micro_batch_size_per_gpu").value_or(0),
                         .accumulation = in.integer("gradient_accumulation_steps").value_or(0),
                         .gpus = 0};
  set_data_parallel_job(draft, options, sizes);
  read_zero(draft, in, precision);
  set_clipping(draft, in, "gradient_clipping");
  if (in.has("activation_checkpointing.partition_activations"))
    draft.assume("no recomputation: activation_checkpointing says how, the model's code whether");
  return draft.finish(in);
}

ImportedJob import_accelerate(const std::string& text, const std::string& name,
                              const JobOptions& options) {
  ForeignFields in = read_fields(text, name);
  ScenarioDraft draft;
  const std::string kind = in.text("distributed_type").value_or("NO");
  set_model_and_framework(draft, options, name, kind == "FSDP" ? "fsdp" : "hf-eager");
  const std::string mixed = in.text("mixed_precision").value_or("no");
  draft.set_text("training.precision", mixed == "no" ? "fp32" : mixed);
  const std::int64_t processes = in.integer("num_processes").value_or(0);
  const std::int64_t machines = in.integer("num_machines").value_or(1);
  BatchSizes sizes{.global = 0, .micro = 0, .accumulation = 0, .gpus = processes};
  sizes.accumulation = in.integer("deepspeed_config.gradient_accumulation_steps").value_or(0);
  if (sizes.accumulation == 0)
    sizes.accumulation = in.integer("gradient_accumulation_steps").value_or(0);
  set_data_parallel_job(draft, options, sizes);
  if (kind == "FSDP") {
    read_fsdp(draft, in, std::max<std::int64_t>(1, processes / machines));
  } else if (kind == "DEEPSPEED") {
    set_zero_stage(draft, in, "deepspeed_config.zero_stage");
    set_clipping(draft, in, "deepspeed_config.gradient_clipping");
    report_offload(draft, in, "deepspeed_config.offload_optimizer_device");
    report_offload(draft, in, "deepspeed_config.offload_param_device");
  } else if (kind != "NO" && kind != "MULTI_GPU") {
    in.refuse("distributed_type", "is " + kind, "known: FSDP, DEEPSPEED, MULTI_GPU, NO");
  }
  return draft.finish(in);
}

}  // namespace tessera
