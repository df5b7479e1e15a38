// Megatron-LM's arguments: precision, optimizer, recomputation, data parallelism.
#include <algorithm>
#include <set>
#include <sstream>

#include "app/import/job/megatron/megatron_job.h"

namespace tessera {
namespace {

/// Bytes of a bucket's elements.
std::string bytes_of(std::int64_t elements, bool full) {
  return std::to_string(elements * (full ? 4 : 2)) + " B";
}

}  // namespace

void MegatronJob::read_training() {
  read_precision();
  const char* length = given("--seq-length") ? "--seq-length" : "--encoder-seq-length";
  sequence_ = options_.sequence_length > 0 ? options_.sequence_length
                                           : needed(given(length) ? length : "--seq-length");
  draft_.set("training.sequence_length", sequence_);
  read_gradient_formats();
  read_optimizer();
  const char* factor = given("--moe-train-capacity-factor") ? "--moe-train-capacity-factor"
                                                            : "--moe-expert-capacity-factor";
  const auto capacity = in_.number(factor);
  const bool pads = flag("--moe-pad-expert-input-to-capacity");
  // Without padding, balanced experts hold what comes, or as much as they may.
  const bool drops = capacity && *capacity > 0 && *capacity < 1;
  if (capacity && (pads || drops) && has_experts_)
    draft_.set("training.expert_capacity_factor", *text(factor));
  if (drops && !pads && has_experts_)
    draft_.approximate(std::string(factor) +
                       ": the host waits for no counts, as with "
                       "--moe-pad-expert-input-to-capacity");
}

void MegatronJob::read_precision() {
  half_ = flag("--fp16");
  bfloat_ = flag("--bf16");
  if (half_ && bfloat_) problem("--fp16", "and --bf16 are both given", "keep one of them");
  const bool hybrid = flag("--fp8-hybrid");
  const bool e4m3 = flag("--fp8-e4m3");
  const bool eight = text("--fp8-format").has_value() || hybrid || e4m3;
  const auto four_format = text("--fp4-format");
  const bool four = four_format.has_value();
  if (four && *four_format != "e2m1") cannot("--fp4-format", "is not simulated: e2m1 is");
  const std::string four_recipe = text("--fp4-recipe").value_or("nvfp4");
  if (four_recipe != "nvfp4") cannot("--fp4-recipe", "is not simulated: nvfp4 is");
  draft_.set_text("training.precision", four      ? "nvfp4"
                                        : eight   ? "fp8"
                                        : half_   ? "fp16"
                                        : bfloat_ ? "bf16"
                                                  : "fp32");
  if ((eight || four) && half_) cannot("--fp16", "beside fp8 is not simulated: bf16 is");
  if (eight || four) read_bf16_layers();
  if (flag("--fp8-param-gather")) {
    if (eight)
      draft_.set("training.mixed_precision.fp8_parameters", "true");
    else
      cannot("--fp8-param-gather", "is for products in fp8", "give --fp8-format, or leave it out");
  }
  if (!eight) return;
  const std::string recipe = text("--fp8-recipe").value_or("delayed");
  if (recipe == "delayed") return;
  if (recipe == "tensorwise") return set_profile("fp8_scaling", "current");
  if (recipe == "mxfp8" || recipe == "blockwise") return set_profile("fp8_scaling", recipe);
  cannot("--fp8-recipe", "is not simulated: delayed, tensorwise, blockwise and mxfp8 are");
}

/// Megatron's defaults are one layer at each end.
void MegatronJob::read_bf16_layers() {
  const auto first = integer("--num-layers-at-start-in-bf16", 0);
  const auto last = integer("--num-layers-at-end-in-bf16", 0);
  if (!flag("--first-last-layers-bf16")) return;
  set_profile("bf16_layers_first", std::to_string(layers_of_model(first.value_or(1))));
  set_profile("bf16_layers_last", std::to_string(layers_of_model(last.value_or(1))));
}

/// In bf16 gradients add up in fp32 unless the job asks otherwise, in fp16 only if it asks.
void MegatronJob::read_gradient_formats() {
  const bool full = flag("--accumulate-allreduce-grads-in-fp32");
  const bool short_sums = flag("--grad-reduce-in-bf16");
  const std::string main = text("--main-grads-dtype").value_or("fp32");
  std::string format;
  if (half_ && !deepspeed_) format = full ? "fp32" : "fp16";
  if (short_sums && bfloat_) format = "bf16";
  if (main != "fp32" && main != "bf16")
    cannot("--main-grads-dtype", "is not simulated");
  else if (main == "bf16")
    format = "bf16";
  if (!format.empty()) {
    draft_.set("training.mixed_precision.gradients", format);
    draft_.set("training.mixed_precision.reduce", format);
  }
  if (flag("--use-precision-aware-optimizer") && bfloat_)
    draft_.approximate(
        "--use-precision-aware-optimizer: master weights count 4 bytes each; Transformer Engine "
        "from 2.1 on keeps 2 of them beside bf16 weights (store_param_remainders; recalled)");
  const std::string first = text("--exp-avg-dtype").value_or("fp32");
  const std::string second = text("--exp-avg-sq-dtype").value_or("fp32");
  const bool known = first == second && (first == "fp32" || first == (half_ ? "fp16" : "bf16"));
  if (!known)
    cannot("--exp-avg-dtype",
           "beside --exp-avg-sq-dtype " + second +
               " is not simulated: both moments have one format, fp32 or that of "
               "activations");
  else if (first != "fp32")
    draft_.set("training.mixed_precision.optimizer_states", first);
  if (text("--main-params-dtype").value_or("fp32") != "fp32")
    cannot("--main-params-dtype", "is not simulated");
}

/// As Megatron's defaults have it. Source: Megatron-LM training/arguments.py (recalled).
void MegatronJob::read_muon(bool dealt) {
  draft_.set("training.optimizer", dealt ? "dist_muon" : "muon");
  if (integer("--muon-num-ns-steps").value_or(5) != 5)
    cannot("--muon-num-ns-steps", "is not 5", "use 5");
  if (text("--muon-tp-mode").value_or("blockwise") != "blockwise")
    cannot("--muon-tp-mode", "is not blockwise", "use blockwise, each rank on its part");
  if (text("--muon-fp32-matmul-prec").value_or("medium") != "medium")
    cannot("--muon-fp32-matmul-prec", "is not medium", "use medium, products in bf16");
}

void MegatronJob::read_optimizer() {
  const std::string optimizer = text("--optimizer").value_or("adam");
  const bool by_layers = flag("--use-layer-wise-distributed-optimizer");
  if (optimizer == "sgd")
    draft_.set("training.optimizer", "sgd");
  else if (optimizer == "muon" || optimizer == "dist_muon")
    read_muon(optimizer == "dist_muon" || by_layers);
  else if (optimizer != "adam" && optimizer != "adamw")
    cannot("--optimizer", "is not simulated: adam, sgd, muon and dist_muon are");
  else if (by_layers)
    cannot("--use-layer-wise-distributed-optimizer", "is simulated with --optimizer muon alone");
  if (in_.number("--clip-grad").value_or(1.0) <= 0) draft_.set("training.clip_gradients", "false");
}

void MegatronJob::read_recomputation() {
  flag("--cpu-offloading");
  if (const auto layers = integer("--cpu-offloading-num-layers", 0); layers && *layers > 0)
    draft_.set("training.offload_layers", layers_of_model(*layers));
  const bool some = flag("--recompute-activations");
  const bool first = flag("--checkpoint-activations");  // of 2021
  const auto second = text("--activations-checkpoint-method");
  const std::string how = text("--recompute-granularity")
                              .value_or(some              ? "selective"
                                        : first || second ? "full"
                                                          : "none");
  if (how == "none") return;
  if (how == "selective") return read_selective();
  if (how != "full") return cannot("--recompute-granularity", "is not simulated");
  const char* count = given("--recompute-num-layers") ? "--recompute-num-layers"
                      : given("--activations-checkpoint-num-layers")
                          ? "--activations-checkpoint-num-layers"
                          : "--checkpoint-num-layers";
  const std::string method = text("--recompute-method").value_or(second ? *second : "uniform");
  read_full(method, integer(count).value_or(1));
}

void MegatronJob::read_selective() {
  static const std::set<std::string> kModules{"core_attn", "layernorm", "mla_up_proj",   "moe_act",
                                              "mlp",       "moe",       "shared_experts"};
  draft_.set("training.recompute", "selective");
  std::istringstream modules(text("--recompute-modules").value_or("core_attn"));
  YamlNode list;
  list.kind = YamlNode::Kind::sequence;
  for (std::string module; modules >> module;) {
    if (!kModules.contains(module))
      return cannot("--recompute-modules", "names " + module + ", which is not simulated");
    YamlNode& item = list.items.emplace_back();
    item.kind = YamlNode::Kind::scalar;
    item.text = module;
  }
  const bool default_choice = list.items.size() == 1 && list.items.front().text == "core_attn";
  if (!default_choice) draft_.set("training.recompute_modules", std::move(list));
}

/// uniform: one checkpoint per `layers`; block: so many layers of each stage or model chunk.
void MegatronJob::read_full(const std::string& method, std::int64_t layers) {
  const bool some =
      (method == "uniform" && layers > 1) || (method == "block" && layers < layers_of_part());
  if (some) {
    draft_.set("memory.planner", "megatron_" + method);
    draft_.set("memory.layers", std::to_string(layers_of_model(layers)));
  } else {
    draft_.set("training.recompute", "full");
  }
  if (method != "uniform" && method != "block" && method != "custom")
    cannot("--recompute-method", "is not simulated");
}

void MegatronJob::read_data_parallel() {
  read_sharding();
  read_overlap();
  read_buckets();
}

void MegatronJob::read_sharding() {
  const bool fsdp = flag("--use-megatron-fsdp") || flag("--use-custom-fsdp");
  const bool distributed = flag("--use-distributed-optimizer");
  const std::string strategy = text("--data-parallel-sharding-strategy").value_or("no_shard");
  std::string sharding = distributed ? "optimizer" : "";
  if (fsdp) {
    sharding = strategy == "no_shard"             ? "none"
               : strategy == "optim"              ? "optimizer"
               : strategy == "optim_grads"        ? "gradients"
               : strategy == "optim_grads_params" ? "parameters"
                                                  : "";
    if (sharding.empty()) cannot("--data-parallel-sharding-strategy", "is not simulated");
  } else if (strategy != "no_shard") {
    cannot("--data-parallel-sharding-strategy", "is for --use-megatron-fsdp, which is missing");
  }
  if (const auto stage = integer("--zero-stage", 0)) {
    constexpr const char* kStages[] = {"none", "optimizer", "gradients", "parameters"};
    if (*stage > 3) problem("--zero-stage", "is above 3", "use 0 to 3");
    sharding = kStages[std::min<std::int64_t>(*stage, 3)];
    if (*stage == 0 && deepspeed_ && bfloat_) {
      sharding = "optimizer";
      draft_.assume(
          "ranks divide master weights and states with --zero-stage 0, as DeepSpeed's "
          "BF16_Optimizer does (recalled from its engine)");
    }
    if (*stage > 1 && pipeline_ > 1)
      problem("--zero-stage", "is above 1 in a pipeline, which DeepSpeed does not run",
              "use 0 or 1, or one stage");
  }
  if (!sharding.empty()) draft_.set("training.data_parallel.sharding", sharding);
  const auto instances = integer("--num-distributed-optimizer-instances");
  if (!instances || *instances <= 1) return;
  if (replicas_ % *instances != 0)
    problem("--num-distributed-optimizer-instances",
            "does not divide the " + std::to_string(replicas_) + " data-parallel ranks",
            "use a divisor");
  draft_.set("training.data_parallel.shard_group",
             std::max<std::int64_t>(1, replicas_ / *instances));
}

void MegatronJob::read_overlap() {
  const auto set = [this](const char* field, const char* value) {
    draft_.set(std::string("training.data_parallel.") + field, value);
  };
  const bool gradients = flag("--overlap-grad-reduce");
  const bool parameters = flag("--overlap-param-gather");
  if (gradients) set("overlap_gradients", "true");
  if (parameters) set("overlap_parameters", "true");
  if (flag("--no-align-grad-reduce") || flag("--no-delay-grad-reduce"))
    set("align_gradients", "false");
  in_.take("--align-grad-reduce");
  in_.take("--delay-grad-reduce");
  const bool aligns = flag("--align-param-gather") || flag("--delay-param-gather");
  if (aligns && parameters && chunks_ > 1) set("align_parameters", "true");
}

void MegatronJob::read_buckets() {
  const std::string wrapper = text("--DDP-impl").value_or("local");
  if (wrapper == "torch") {  // PyTorch's DistributedDataParallel and its defaults
    draft_.set("training.data_parallel.overlap_gradients", "true");
    draft_.set("training.data_parallel.bucket", "25 MiB");
    draft_.set("training.data_parallel.first_bucket", "1 MiB");
  } else if (wrapper != "local") {
    cannot("--DDP-impl", "is not simulated: local and torch are");
  }
  const auto elements = integer("--ddp-bucket-size");
  if (!elements) return;
  const bool adds_in_fp32 = flag("--accumulate-allreduce-grads-in-fp32");
  const bool full = (!half_ || adds_in_fp32) && !flag("--grad-reduce-in-bf16");
  const std::string bytes = bytes_of(std::min<std::int64_t>(*elements, 1'000'000'000'000), full);
  draft_.set("training.data_parallel.bucket", bytes);
  draft_.set("training.data_parallel.first_bucket", bytes);
}

}  // namespace tessera
