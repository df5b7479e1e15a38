#include "app/import/job/deepspeed_config.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "app/import/job/deepspeed_keys.h"
#include "app/import/job/fused_attention.h"
#include "hw/units/lower_case.h"

namespace tessera {
namespace {

constexpr std::int64_t kUsualBucket = 500'000'000;  // elements; DeepSpeed's default

/// runtime/bf16_optimizer.py: 16-bit gradients are added to fp32 ones.
void use_bf16_optimizer(ScenarioDraft& draft) {
  draft.set("training.mixed_precision.gradients", "fp32");
  draft.set_in_framework("deepspeed_zero", "true");
}

bool begins(const std::string& name, std::string_view with) {
  return name.starts_with(with);
}

void judge_rules(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options) {
  for (const UsualValue& rule : deepspeed::kRules) {
    const std::string name(rule.key);
    const auto value = in.text(name);
    if (!value || rule.usual == "any" || lower_case(*value) == rule.usual) continue;
    leave_out_value(draft, in, options, name, rule.what, "");
  }
}

/// Keys of `offload_optimizer` and `offload_param` that say how, not what, is moved.
bool is_part_of_offload(const std::string& name) {
  constexpr auto kParts =
      std::to_array<std::string_view>({"device", "pin_memory", "buffer_", "max_in_cpu", "fast_init",
                                       "nvme_path", "pipeline", "ratio", "cpuadam_cores_perc"});
  const auto section = name.find(".offload_");
  if (section == std::string::npos) return false;
  const auto part = std::string_view(name).substr(name.find('.', section + 1) + 1);
  return std::ranges::any_of(kParts, [&](std::string_view one) { return part.starts_with(one); });
}

/// What is left: harmless, about gathering, or not known.
void judge_rest(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options) {
  std::string gathering;
  for (const std::string& name : in.unread_names()) {
    const auto starts = [&](std::string_view begin) { return begins(name, begin); };
    const bool is_off = lower_case(in.text(name).value_or("false")) == "false";
    if (std::ranges::any_of(deepspeed::kGathering, starts)) {
      gathering += (gathering.empty() ? "" : ", ") + name.substr(name.rfind('.') + 1);
      in.word(name);  // said here
    } else if (std::ranges::any_of(deepspeed::kHarmless, starts) || is_part_of_offload(name) ||
               is_off) {
      draft.ignore(name + " = " + in.word(name).value_or(""));
    } else {
      leave_out_value(draft, in, options, name,
                      "is not known: whether the step depends on it cannot be told",
                      "take it out of the file where it does not");
    }
  }
  if (!gathering.empty())
    draft.assume("weights are gathered layer by layer, one ahead, whatever " + gathering + " say");
}

/// What "auto" stands for: `mixed`, else an assumption.
std::string precision_of(ScenarioDraft& draft, ForeignFields& in, const std::string& mixed) {
  const std::string bfloat = in.has("bfloat16.enabled") ? "bfloat16.enabled" : "bf16.enabled";
  const bool bfloat_auto = in.is_auto(bfloat);
  const bool half_auto = in.is_auto("fp16.enabled");
  if (!bfloat_auto && in.has(bfloat) && in.flag(bfloat)) return "bf16";
  if (!half_auto && in.has("fp16.enabled") && in.flag("fp16.enabled")) return "fp16";
  if (!bfloat_auto && !half_auto) return "fp32";
  if (bfloat_auto && mixed == "bf16") return mixed;
  if (half_auto && mixed == "fp16") return mixed;
  if (!mixed.empty()) return "fp32";
  const std::string assumed = bfloat_auto ? "bf16" : "fp16";
  draft.assume("precision " + assumed + ": " + (bfloat_auto ? bfloat : "fp16.enabled") +
               " is auto, and the arguments of the Trainer decide");
  return assumed;
}

std::string format_of(ForeignFields& in, const std::string& name, const std::string& usual) {
  const auto given = in.text(name);
  if (!given) return usual;
  if (*given == "fp32" || *given == "bf16" || *given == "fp16") return *given;
  in.refuse(name, "is " + *given, "known: fp32, bf16, fp16");
  return usual;
}

void read_formats(ScenarioDraft& draft, ForeignFields& in, const std::string& precision) {
  set_engine_precision(draft, precision);
  if (precision == "fp32") return;
  draft.set("training.mixed_precision.gradients",
            format_of(in, "data_types.grad_accum_dtype", precision));
  const bool fp32 = in.has("fp32_allreduce") && in.flag("fp32_allreduce");
  draft.set("training.mixed_precision.reduce",
            fp32 ? "fp32" : format_of(in, "communication_data_type", precision));
}

/// Elements of a bucket; "auto" is the square of the model's width, as the
/// Trainer sets it.
std::int64_t bucket_elements(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options) {
  const std::string name = "zero_optimization.reduce_bucket_size";
  if (!in.is_auto(name)) return in.integer(name).value_or(kUsualBucket);
  const std::int64_t hidden = std::clamp<std::int64_t>(options.hidden, 0, 1'000'000);
  if (hidden == 0) return kUsualBucket;
  draft.assume("buckets of " + std::to_string(hidden * hidden) +
               " elements: reduce_bucket_size is auto, hidden size squared");
  return hidden * hidden;
}

void read_zero(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options,
               const std::string& precision) {
  const std::string name = "zero_optimization.stage";
  const std::int64_t stage = in.integer(name, 0).value_or(0);
  if (stage > 3) in.refuse(name, "is " + std::to_string(stage), "use a stage from 0 to 3");
  set_zero_stage(draft, std::min<std::int64_t>(stage, 3), precision);
  const std::string sums = in.text("data_types.grad_accum_dtype").value_or("");
  if (stage == 1 && precision == "bf16" && sums == "fp32") use_bf16_optimizer(draft);
  if (stage == 0 && precision == "bf16" && sums == "bf16")
    in.refuse("data_types.grad_accum_dtype", "is bf16, which DeepSpeed takes with ZeRO alone",
              "use fp32, or zero_optimization.stage 1");
  const std::int64_t bytes = bucket_elements(draft, in, options) * (precision == "fp32" ? 4 : 2);
  draft.set("training.data_parallel.bucket", std::to_string(bytes) + " B");
  const std::string overlap = "zero_optimization.overlap_comm";
  const bool says = in.text(overlap).has_value();
  if (says && stage == 0) draft.ignore(overlap + ": without effect at stage 0");
  if (says && stage > 0)
    draft.set("training.data_parallel.overlap_gradients", in.flag(overlap) ? "true" : "false");
  if (const auto group = in.integer("zero_optimization.mics_shard_size", -1); group && *group > 1)
    draft.set("training.data_parallel.shard_group", *group);
  const OffloadKeys keys{
      {"zero_optimization.offload_optimizer.device", "zero_optimization.cpu_offload"},
      {"zero_optimization.offload_param.device", "zero_optimization.cpu_offload_params"}};
  read_offload(draft, in, options, keys, stage);
}

void read_optimizer(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options) {
  const auto given = in.text("optimizer.type");
  if (!given) return draft.assume("optimizer Adam of PyTorch: the file names none");
  const std::string type = lower_case(*given);
  const bool adam = type == "adam" || type == "adamw";
  const bool unfused = in.flag("optimizer.params.torch_adam");
  if (adam && !unfused && options.framework.empty())
    draft.set_in_framework("fused_optimizer", "true");
  const bool other = type == "sgd" || type == "lamb";
  if (other) draft.set("training.optimizer", type);
  if (adam || other) return;
  leave_out_value(draft, in, options, "optimizer.type", "is not simulated",
                  "known: Adam, AdamW, Lamb, SGD");
  if (options.lenient) draft.approximate("optimizer Adam in place of " + *given);
}

/// Ranks that share layers or sequences: modules of Hugging Face run whole.
std::int64_t read_width(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options) {
  std::int64_t width = 1;
  const auto read = [&](const char* name, const char* field, const char* how) {
    const std::int64_t size = std::min<std::int64_t>(in.integer(name, 0).value_or(1), 100'000);
    if (size <= 1) return;
    width *= size;
    draft.set(field, size);
    if (options.framework.empty())
      return in.refuse(name, "is " + std::to_string(size) + ": " + how,
                       "name a profile that splits models, --framework megatron");
    draft.assume(std::string(name) + " splits the model as " + options.framework + " does");
  };
  read("tensor_parallel.autotp_size", "parallelism.tensor",
       "tensor parallelism of Hugging Face's modules (AutoTP) is not simulated");
  read("sequence_parallel_size", "parallelism.context",
       "sequence parallelism of Hugging Face's modules (Ulysses) is not "
       "simulated");
  if (in.integer("sequence_parallel_size", 0).value_or(1) > 1)
    draft.set("parallelism.context_attention", "ulysses");
  return width;
}

/// Of the Trainer where the file says "auto": 8 sequences per GPU, one
/// micro-batch.
std::int64_t micro_batch(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options) {
  const std::string name = "train_micro_batch_size_per_gpu";
  if (!in.is_auto(name) || options.micro_batch > 0) return in.integer(name).value_or(0);
  constexpr std::int64_t kTrainers = 8;
  draft.assume("8 sequences per GPU and micro-batch: " + name +
               " is auto, and the Trainer's default; --micro-batch gives "
               "another number");
  return kTrainers;
}

/// What `name` speaks of lives in host memory; `on_drives` says what other devices do.
bool is_on_cpu(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options,
               const std::string& name, const std::string& on_drives) {
  const std::string device = lower_case(in.text(name).value_or("none"));
  if (device == "none" || device == "false") return false;
  if (device == "cpu" || device == "true") return true;
  leave_out_value(draft, in, options, name, on_drives + ", which is not simulated", "cpu is");
  return false;
}

}  // namespace

void leave_out_value(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options,
                     const std::string& name, const std::string& what, const std::string& hint) {
  if (options.lenient) return leave_out(draft, in, options, name, what, hint);
  const bool is_given = in.text(name).has_value();
  in.refuse(name, (is_given ? "= " + *in.text(name) + " " : "") + what,
            hint + (hint.empty() ? "" : ", or ") + "leave it out with --lenient");
}

ForeignFields read_fields(const std::string& text, const std::string& name, bool keeps_empty) {
  const YamlNode tree = foreign_tree(text, name);
  if (tree.kind != YamlNode::Kind::mapping)
    throw InputError({name, "holds no fields", "give the file that the program reads"});
  return fields_of(tree, keeps_empty);
}

void set_engine_precision(ScenarioDraft& draft, const std::string& precision) {
  draft.set_text("training.precision", precision);
  if (precision != "bf16" && precision != "fp16") return;
  draft.set("training.mixed_precision.parameters", precision);
  draft.set("training.mixed_precision.gradients", precision);
  draft.set("training.mixed_precision.reduce", precision);
  draft.set("training.mixed_precision.optimizer_states", "fp32");
  draft.set("training.mixed_precision.master_weights", "true");
}

void set_zero_stage(ScenarioDraft& draft, std::int64_t stage, const std::string& precision) {
  constexpr const char* kSharding[] = {"none", "optimizer", "gradients", "parameters"};
  if (stage == 0 && precision == "bf16") {
    use_bf16_optimizer(draft);
    draft.assume(
        "bf16 without ZeRO is DeepSpeed's BF16_Optimizer: gradients add up in fp32, and ranks "
        "divide master weights and states, as with stage 1 (recalled from its engine)");
    stage = 1;
  }
  draft.set("training.data_parallel.sharding", kSharding[std::clamp<std::int64_t>(stage, 0, 3)]);
  draft.set("training.data_parallel.overlap_gradients", stage == 3 ? "true" : "false");
  draft.set("training.data_parallel.bucket",
            std::to_string(kUsualBucket * (precision == "fp32" ? 4 : 2)) + " B");
}

void read_offload(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options,
                  const OffloadKeys& keys, std::int64_t stage) {
  bool updates = false;
  for (const std::string& name : keys.states)
    updates |= is_on_cpu(draft, in, options, name, "keeps optimizer states on drives");
  if (updates) draft.set("training.offload_optimizer", "true");
  for (const std::string& name : keys.weights) {
    if (!is_on_cpu(draft, in, options, name, "keeps weights on drives")) continue;
    if (stage < 3) {
      draft.ignore(name + " = " + *in.text(name) + ": weights are offloaded with stage 3 alone");
    } else if (updates) {
      draft.set("training.offload_parameters", "true");
    } else {
      leave_out_value(draft, in, options, name,
                      "keeps weights that the GPU updates in host memory, which is not simulated",
                      "offload the optimizer too");
    }
  }
}

void set_clipping(ScenarioDraft& draft, ForeignFields& in, const std::string& name) {
  const bool is_auto = in.is_auto(name);
  if (is_auto) draft.assume("gradients are clipped to norm 1.0, the Trainer's default");
  const bool clips = is_auto || in.number(name).value_or(0) > 0;
  draft.set("training.clip_gradients", clips ? "true" : "false");
}

BatchSizes read_deepspeed(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options,
                          const std::string& mixed) {
  const std::string precision = precision_of(draft, in, mixed);
  read_formats(draft, in, precision);
  read_zero(draft, in, options, precision);
  read_optimizer(draft, in, options);
  set_clipping(draft, in, "gradient_clipping");
  BatchSizes sizes{.global = in.integer("train_batch_size").value_or(0),
                   .micro = micro_batch(draft, in, options),
                   .accumulation = in.integer("gradient_accumulation_steps").value_or(0),
                   .gpus = 0,
                   .width = read_width(draft, in, options)};
  if (in.is_auto("gradient_accumulation_steps") && sizes.global == 0) sizes.accumulation = 1;
  in.is_auto("train_batch_size");
  if (in.has("activation_checkpointing.partition_activations"))
    draft.assume(
        "no recomputation: activation_checkpointing says how, the "
        "model's code whether");
  judge_deepspeed_keys(draft, in, options);
  return sizes;
}

void judge_deepspeed_keys(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options) {
  judge_rules(draft, in, options);
  judge_rest(draft, in, options);
}

ImportedJob import_deepspeed(const std::string& text, const std::string& name,
                             const JobOptions& options) {
  ForeignFields in = read_fields(text, name);
  ScenarioDraft draft;
  set_model_and_framework(draft, options, name, "hf-eager");
  const BatchSizes sizes = read_deepspeed(draft, in, options, "");
  if (options.spec) assume_fused_attention(draft, options, options.spec->family);
  set_data_parallel_job(draft, in, options, sizes);
  return draft.finish(in);
}

}  // namespace tessera
