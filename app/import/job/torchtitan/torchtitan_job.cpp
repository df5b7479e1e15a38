// torchtitan's job files (torchtitan/config_manager.py, job_config.py of December 2024 to 2025).
#include <algorithm>
#include <optional>
#include <string_view>

#include "app/import/job/deepspeed_config.h"
#include "app/import/job/imported_job.h"
#include "app/import/job/scenario_draft.h"
#include "app/import/job/toml_fields.h"
#include "app/import/job/torchtitan/torchtitan_idle.h"
#include "app/import/job/torchtitan/torchtitan_keys.h"
#include "app/import/job/torchtitan/torchtitan_precision.h"
#include "app/import/job/torchtitan/torchtitan_stages.h"

namespace tessera {
namespace {

using torchtitan::Flavor;
using torchtitan::kFlavors;
using torchtitan::kNoPartOfAStep;
using torchtitan::kOfTensorGroups;
using torchtitan::kUsualValues;

class TorchtitanJob {
 public:
  TorchtitanJob(ForeignFields in, const JobOptions& options, const std::string& name)
      : in_(std::move(in)), options_(options), name_(name) {}

  ImportedJob read() {
    set_model();
    read_degrees();
    read_shards();
    read_batch();
    read_schedule();
    read_checkpoints();
    const bool casts = shards_ || width_ == 1;
    absent_.float8 = !torchtitan::read_precision(draft_, in_, options_, casts);
    read_compile();
    read_optimizer();
    judge_usual_values();
    torchtitan::say_idle_keys(draft_, in_, absent_);
    judge_others();
    say_left_out(draft_, options_);
    return draft_.finish(in_);
  }

 private:
  /// The first of several names that is there: options have moved between sections.
  std::string called(std::initializer_list<const char*> names) const {
    for (const char* name : names)
      if (in_.has(name)) return name;
    return *names.begin();
  }
  std::int64_t degree(std::initializer_list<const char*> names) {
    return std::min(in_.integer(called(names)).value_or(1), kMostGpus);
  }

  std::string model_id() {
    const std::string model = in_.text("model.name").value_or("");
    const std::string flavor = in_.text("model.flavor").value_or("");
    layers_ = options_.layers;
    if (!options_.model.empty()) return options_.model;
    for (const Flavor& known : kFlavors) {
      if (known.model != model || known.flavor != flavor) continue;
      layers_ = known.layers;
      return std::string(known.id);
    }
    for (const char* key : {"model.name", "model.flavor"})
      if (!in_.text(key)) in_.refuse(key, "is missing", "write it, or add --model ID");
    if (model.empty() || flavor.empty()) return "llama-3-8b";
    in_.refuse("model.flavor", "is " + flavor + " of " + model + ", which is no shipped model",
               "add --model with an id of tessera list models, a file or a config.json");
    return "llama-3-8b";
  }

  void set_model() {
    JobOptions options = options_;
    options.model = model_id();
    const std::int64_t length =
        std::min(in_.integer("training.seq_len").value_or(2048), kMostGpus * 100);
    if (options.sequence_length == 0) options.sequence_length = length;
    if (options.framework.empty()) options.framework = "torchtitan";
    set_model_and_framework(draft_, options, name_, options.framework);
  }

  void read_degrees() {
    tensor_ = degree({"parallelism.tensor_parallel_degree", "training.tensor_parallel_degree"});
    stages_ =
        degree({"parallelism.pipeline_parallel_degree", "experimental.pipeline_parallel_degree"});
    context_ =
        degree({"parallelism.context_parallel_degree", "experimental.context_parallel_degree"});
    width_ = std::min(tensor_ * stages_, kMostGpus) * context_;
    absent_.tensor = tensor_ == 1;
    absent_.stages = stages_ == 1;
    absent_.context = context_ == 1;
    if (tensor_ > 1) {
      draft_.set("parallelism.tensor", tensor_);
      draft_.set("parallelism.sequence_parallel", "true");
    }
    if (in_.flag(called({"parallelism.enable_async_tensor_parallel",
                         "experimental.enable_async_tensor_parallel"})) &&
        tensor_ > 1)
      draft_.set_in_framework("overlap_tensor_products", "true");
    if (stages_ > 1) draft_.set("parallelism.pipeline", stages_);
    const std::string rotation =
        in_.text("parallelism.context_parallel_rotate_method")
            .value_or(
                in_.text("experimental.context_parallel_rotate_method").value_or("allgather"));
    if (context_ == 1) return;
    draft_.set("parallelism.context", context_);
    draft_.set("parallelism.context_attention", rotation == "alltoall" ? "ring" : "all_gather");
  }

  /// CPUOffloadPolicy, which FSDP alone takes (parallelize_llama).
  void read_offload(bool shards) {
    const std::string name = "training.enable_cpu_offload";
    if (!in_.flag(name)) return;
    for (const char* field : {"training.offload_optimizer", "training.offload_parameters"})
      if (shards) draft_.set(field, "true");
    if (!shards)
      leave_out_value(draft_, in_, options_, name, "is FSDP's, and no ranks divide the weights",
                      "use data_parallel_shard_degree above 1");
  }

  /// -1 shards: all GPUs that are left, whose number the file does not say. Ranks of a context
  /// group divide states too (the mesh dp_shard_cp of torchtitan/distributed/parallel_dims.py).
  void read_shards() {
    const std::string replicate_key = called(
        {"parallelism.data_parallel_replicate_degree", "training.data_parallel_replicate_degree"});
    const std::string shard_key =
        called({"parallelism.data_parallel_shard_degree", "training.data_parallel_shard_degree"});
    const std::int64_t replicate = degree({replicate_key.c_str()});
    std::int64_t shard = in_.integer(shard_key, -1).value_or(-1);
    const std::int64_t others = std::min(replicate * width_, kMostGpus);
    const std::int64_t all = options_.gpus > 0 ? options_.gpus : options_.cluster_gpus;
    const bool open = shard < 1 && all == 0;
    if (open) in_.refuse(shard_key, "leaves the number of GPUs open", "add --gpus");
    if (shard < 1) shard = std::max<std::int64_t>(1, all / others);
    shard = std::min(shard, kMostGpus);
    replicas_ = std::min(replicate * shard, kMostGpus);
    const std::int64_t gpus = std::min(replicas_ * width_, kMostGpus);
    if (options_.gpus > 0 && options_.gpus != gpus)
      in_.refuse(shard_key,
                 "and the other degrees take " + std::to_string(gpus) + " GPUs, not " +
                     std::to_string(options_.gpus),
                 "correct --gpus");
    draft_.set("parallelism.data", replicas_);
    const std::int64_t sharers = std::min(shard * context_, kMostGpus);
    if (sharers == 1 && replicate > 1) draft_.set("training.data_parallel.sharding", "none");
    if (sharers > 1 && replicate > 1) draft_.set("training.data_parallel.shard_group", sharers);
    shards_ = open || sharers > 1;
    if (sharers > 1) read_reshard();
    read_offload(shards_);
    set_cluster(draft_, options_, gpus);
  }

  void read_reshard() {
    const std::string key =
        called({"parallelism.fsdp_reshard_after_forward", "training.fsdp_reshard_after_forward"});
    const std::string when = in_.text(key).value_or("default");
    if (when == "always") draft_.set("training.data_parallel.sharding", "parameters");
    if (when == "never") {
      draft_.set("training.data_parallel.sharding", "gradients");
      draft_.set("training.data_parallel.gather_units", "true");
    }
    if (when != "always" && when != "never" && when != "default")
      in_.refuse(key, "is " + when, "known: default, always, never");
  }

  /// A replica's sequences of a step, which stages cut into micro-batches.
  void read_batch() {
    const std::int64_t local = std::min(
        in_.integer(called({"training.local_batch_size", "training.batch_size"})).value_or(8),
        kMostGpus);
    std::int64_t global = in_.integer("training.global_batch_size", -1).value_or(-1);
    if (global < 1) global = local * replicas_;
    const std::int64_t micro = options_.micro_batch > 0 ? options_.micro_batch : micro_batch(local);
    draft_.set("training.micro_batch", micro);
    if (options_.global_batch > 0) global = options_.global_batch;
    draft_.set("training.global_batch", global);
    refuse_drains(local, global);
  }

  /// The pipeline fills and drains for every pass of gradient accumulation (forward_backward_step
  /// of torchtitan/train.py); the simulated one does once a step.
  void refuse_drains(std::int64_t local, std::int64_t global) {
    const std::int64_t of_pass = local * replicas_;
    if (stages_ == 1 || global <= of_pass) return;
    leave_out_value(
        draft_, in_, options_, "training.global_batch_size",
        "is more than local_batch_size * replicas = " + std::to_string(of_pass) +
            ": stages that drain between passes of gradient accumulation are not "
            "simulated",
        "simulate one pass, --global-batch " + std::to_string(of_pass) + ", and multiply its time");
  }

  std::int64_t micro_batch(std::int64_t local) {
    const auto size = in_.integer("parallelism.pipeline_parallel_microbatch_size");
    const auto count = in_.integer("experimental.pipeline_parallel_microbatches");
    if (stages_ == 1) return local;
    if (!in_.has("parallelism.pipeline_parallel_degree")) {
      const std::int64_t parts = count.value_or(stages_);
      if (local % parts != 0)
        in_.refuse("training.batch_size",
                   "is " + std::to_string(local) + ", no multiple of its " + std::to_string(parts) +
                       " micro-batches",
                   "correct the file");
      return std::max<std::int64_t>(1, local / parts);
    }
    return size.value_or(1);
  }

  void read_schedule() {
    const std::string key = called(
        {"parallelism.pipeline_parallel_schedule", "experimental.pipeline_parallel_schedule"});
    const std::string schedule = in_.text(key).value_or("1F1B");
    for (const char* where : {"parallelism.pipeline_parallel_split_points",
                              "experimental.pipeline_parallel_split_points"})
      if (in_.text(where) && stages_ > 1)
        leave_out(draft_, in_, options_, where, "cuts stages by hand, which is not read",
                  "take it out, and set parallelism.layers_per_stage");
    if (stages_ == 1) return;
    constexpr std::int64_t kStagesOfARank = 2;
    const bool in_v = schedule == "ZBVZeroBubble";
    const bool several = schedule == "Interleaved1F1B" || in_v;
    cut_stages(several ? kStagesOfARank * stages_ : stages_);
    if (schedule == "1F1B") return draft_.set("training.schedule", "one_f_one_b");
    if (schedule == "GPipe") return draft_.set("training.schedule", "gpipe");
    if (several) {
      draft_.set("training.schedule", in_v ? "zbv" : "interleaved_1f1b");
      draft_.set("parallelism.virtual_stages", kStagesOfARank);
      if (in_v) return;
      return draft_.assume("2 stages for each rank, as torchtitan cuts without a number of layers");
    }
    leave_out_value(draft_, in_, options_, key, "is no schedule that is simulated under torchtitan",
                    "known: 1F1B, Interleaved1F1B, GPipe, ZBVZeroBubble");
  }

  /// Evenly but for embedding and head, where the model's layers are known.
  void cut_stages(std::int64_t parts) {
    if (layers_ == 0 || parts > layers_) return;
    const bool old = in_.has("experimental.pipeline_parallel_degree");
    const std::vector<std::int64_t> layers = old ? torchtitan::layers_of_stages_2024(layers_, parts)
                                                 : torchtitan::layers_of_stages(layers_, parts);
    if (layers.empty()) return;
    YamlNode list;
    list.kind = YamlNode::Kind::sequence;
    std::string text;
    for (const std::int64_t count : layers) {
      YamlNode& item = list.items.emplace_back();
      item.kind = YamlNode::Kind::scalar;
      item.text = std::to_string(count);
      text += (text.empty() ? "" : ", ") + item.text;
    }
    draft_.set("parallelism.layers_per_stage", std::move(list));
    draft_.assume("layers of stages " + text + ", as torchtitan cut them in " +
                  (old ? "2024" : "2025: embedding and head count as a layer each"));
  }

  void read_checkpoints() {
    const std::string kMode = "activation_checkpoint.mode";
    const std::string kOption = "activation_checkpoint.selective_ac_option";
    const auto mode = in_.word(kMode);
    const std::string option = in_.text(kOption).value_or("");
    if (!mode)
      return in_.refuse(kMode, "is missing, and its default is not the same in all versions",
                        "write none, selective or full");
    if (*mode == "full" || (*mode == "selective" && option == "1"))
      return draft_.set("training.recompute", "full");
    if (*mode == "none") return draft_.set("training.recompute", "none");
    if (*mode == "selective" && option == "op")
      return draft_.set("training.recompute", "selective");
    const bool layers = *mode == "selective";
    leave_out_value(
        draft_, in_, options_, layers && in_.has(kOption) ? kOption : kMode,
        layers ? "runs every n-th layer again, which is not simulated" : "is not simulated",
        "known: none, full, selective with selective_ac_option = \"op\"");
  }

  void read_compile() {
    const bool whole = in_.flag("training.compile");
    const bool enabled = in_.flag("compile.enable");
    absent_.compilation = !whole && !enabled;
    const std::string components = in_.text("compile.components").value_or("model,loss");
    if (whole || (enabled && components.find("model") != std::string::npos))
      draft_.set("training.kernels", "fused");
    if (enabled && components.find("loss") != std::string::npos)
      draft_.set_in_framework("compiled_loss", "true");
  }

  void read_optimizer() {
    const std::string name = in_.text("optimizer.name").value_or("AdamW");
    if (name != "AdamW" && name != "Adam")
      leave_out_value(draft_, in_, options_, "optimizer.name", "is not simulated",
                      "known: AdamW, Adam");
    const std::string form = in_.text("optimizer.implementation").value_or("fused");
    const auto fused = in_.text("optimizer.fused");
    if (form == "foreach" || (fused && *fused == "false"))
      draft_.set_in_framework("fused_optimizer", "false");
    if (form != "foreach" && form != "fused")
      leave_out_value(draft_, in_, options_, "optimizer.implementation", "is not simulated",
                      "known: fused, foreach");
    if (in_.flag("debug.deterministic") || in_.flag("training.deterministic"))
      draft_.set_in_framework("deterministic", "true");
  }

  void judge_usual_values() {
    for (const UsualValue& rule : kUsualValues) judge(rule, true);
    for (const UsualValue& rule : kOfTensorGroups) judge(rule, tensor_ > 1);
  }
  void judge(const UsualValue& rule, bool matters) {
    const std::string key(rule.key);
    const auto value = in_.text(key);
    if (!value || *value == rule.usual) return;
    if (matters) return leave_out_value(draft_, in_, options_, key, rule.what, "");
    draft_.ignore(key + " = " + *value + ": there is no tensor group");
  }

  /// "key = value (file:line)" of what no step depends on; anything else is refused.
  void judge_others() {
    for (const std::string& key : in_.unread_names()) {
      const bool harmless = std::ranges::any_of(
          kNoPartOfAStep, [&](std::string_view begin) { return key.starts_with(begin); });
      const std::string where = in_.values().at(key).where;
      const bool is_set = in_.text(key).has_value();
      const std::string value = in_.word(key).value_or("");
      if (harmless || !is_set || value == "false") {
        draft_.ignore(key + " = " + value + " (" + where + ")");
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
  ScenarioDraft draft_;
  std::int64_t tensor_ = 1, stages_ = 1, context_ = 1;
  std::int64_t width_ = 1;  ///< GPUs that share a replica
  std::int64_t replicas_ = 1;
  bool shards_ = false;      ///< FSDP wraps the model
  std::int64_t layers_ = 0;  ///< of the model; 0: not known
  torchtitan::Absent absent_;
};

}  // namespace

ImportedJob import_torchtitan(const std::string& text, const std::string& name,
                              const JobOptions& options) {
  return import_torchtitan_fields(toml_fields(text, name), name, options);
}

ImportedJob import_torchtitan_fields(ForeignFields fields, const std::string& name,
                                     const JobOptions& options) {
  return TorchtitanJob(std::move(fields), options, name).read();
}

}  // namespace tessera
