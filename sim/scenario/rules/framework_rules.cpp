#include "sim/scenario/rules/framework_rules.h"

#include <algorithm>
#include <utility>

#include "sim/scenario/rules/counts.h"
#include "workloads/families/modules.h"

namespace tessera {

std::vector<Problem> FrameworkRules::run() && {
  check_switches();
  check_modules();
  check_family();
  check_precision();
  check_data_parallel();
  check_gathers();
  check_schedule();
  check_adapters();
  check_recipe();
  if (model_.family == ModelFamily::llama) check_pattern();
  if (step_.framework.modules == ModuleTree::megatron) {
    check_megatron();
  } else {
    check_hugging_face();
  }
  return std::move(problems_);
}

void FrameworkRules::fail(std::string where, std::string what, std::string hint) {
  problems_.push_back({std::move(where), std::move(what), std::move(hint)});
}

void FrameworkRules::require_positive(const std::string& field, std::int64_t value) {
  if (value > 0) return;
  fail(field, "is " + std::to_string(value), "use a number above 0");
}

void FrameworkRules::require_divisor(const std::string& field, std::int64_t divisor,
                                     std::string_view of, std::int64_t number) {
  if (number % divisor == 0) return;
  fail(field,
       std::to_string(divisor) + " does not divide " + std::string(of) + " = " +
           std::to_string(number),
       "use " + listed_values(divisors(number, number)));
}

/// What some models have under some frameworks alone.
void FrameworkRules::check_switches() {
  const bool llama = model_.family == ModelFamily::llama;
  const bool megatron = step_.framework.modules == ModuleTree::megatron;
  if (model_.qk_norm && !llama && !(megatron && model_.family == ModelFamily::gpt2))
    fail("model.qk_norm", "is for models of family llama, and gpt2 under Megatron", "use false");
  if (model_.family == ModelFamily::gpt2 && !megatron && model_.kv_heads != model_.heads)
    fail("model.kv_heads", "differs from heads, which Hugging Face's GPT-2 does not have",
         "leave it out, or use framework: megatron");
  if (model_.qkv_bias && !llama)
    fail("model.qkv_bias", "is for models of family llama",
         "use false; gpt2, opt and bert have biases");
}

/// Switches of a profile that the other module tree would ignore.
void FrameworkRules::check_modules() {
  const FrameworkProfile& profile = step_.framework;
  const bool megatron = profile.modules == ModuleTree::megatron;
  struct Switch {
    const char* field;
    bool given;
    bool of_megatron;
  };
  for (const Switch& one :
       {Switch{"loss_fusion", profile.loss_fusion != LossFusion::separate, true},
        Switch{"fused_router", profile.fused_router, true},
        Switch{"loss_in_place", profile.loss_in_place, true},
        Switch{"attention_copies", profile.attention_copies, true},
        Switch{"own_rows_first", profile.own_rows_first, true},
        Switch{"keeps_gathered", profile.keeps_gathered, true},
        Switch{"scatter_embedding", profile.scatter_embedding, true},
        Switch{"packed_attention", profile.packed_attention, true},
        Switch{"split_by_cost", profile.split_by_cost, true},
        Switch{"fills_past_share", profile.fills_past_share, true},
        Switch{"weights_in_activation", profile.weights_in_activation, true},
        Switch{"products_per_expert", profile.products_per_expert, true},
        Switch{"expert_bias_apart", profile.expert_bias_apart, true},
        Switch{"fp32_logits", profile.fp32_logits, false},
        Switch{"compiled_loss", profile.compiled_loss, false},
        Switch{"complex_rope", profile.complex_rope, false},
        Switch{"shifts_labels", profile.shifts_labels, false},
        Switch{"keeps_outputs", profile.keeps_outputs, false},
        Switch{"reads_norm", profile.reads_norm, false},
        Switch{"reentrant_checkpoints", profile.reentrant_checkpoints, false}}) {
    if (!one.given || one.of_megatron == megatron) continue;
    fail("training.framework." + std::string(one.field),
         one.of_megatron ? "is Megatron's" : "is of Hugging Face's and torchtitan's modules",
         "leave it out, or use another framework");
  }
}

void FrameworkRules::check_family() {
  if (step_.framework.feed_forward_bias_apart && model_.family != ModelFamily::bert)
    fail("training.framework.feed_forward_bias_apart", "is for models of family bert",
         "leave it out, or use a model of that family");
}

void FrameworkRules::check_data_parallel() {
  const DataParallel& data = step_.data_parallel;
  if (data.shard_group > 0)
    require_divisor("training.data_parallel.shard_group", data.shard_group,
                    "the data-parallel ranks", step_.layout.replicas());
  if (data.whole_sums && data.sharding > Sharding::optimizer)
    fail("training.data_parallel.whole_sums", "is for sharding: none or optimizer",
         "use one of these, or whole_sums: false");
  if (data.gather_units && data.sharding != Sharding::gradients)
    fail("training.data_parallel.gather_units", "is for sharding: gradients",
         "leave it out: with sharding: parameters units are gathered anyway");
  check_aligned_parameters();
  const bool sharded = data.sharding != Sharding::none && step_.layout.has_replicas();
  if (sharded && step_.schedule == PipelineSchedule::dualpipe &&
      data.sharding != Sharding::optimizer)
    fail("training.data_parallel.sharding",
         "of gradients or parameters is not simulated with the schedule dualpipe",
         "use sharding: optimizer or none, or another schedule");
  if (!sharded || !step_.layout.experts_apart()) return;
  const int copies = data.shard_group > 0 ? step_.layout.replicas() / data.shard_group : 1;
  const int of_experts = step_.layout.expert_replicas();
  if (copies > 1 && copies != of_experts)
    fail("training.data_parallel.shard_group",
         std::to_string(data.shard_group) + ": " + std::to_string(copies) +
             " groups with a copy of all states each, and " + std::to_string(of_experts) +
             " replicas of every expert",
         "leave it out, or use as many groups as replicas of an expert, each of which then holds "
         "its states");
}

/// Megatron aligns gathers by the passes of the interleaved schedule alone.
void FrameworkRules::check_aligned_parameters() {
  const DataParallel& data = step_.data_parallel;
  if (!data.align_parameters) return;
  const std::string field = "training.data_parallel.align_parameters";
  if (!data.overlap_parameters)
    fail(field, "is for gathers beside forward: overlap_parameters is off",
         "set training.data_parallel.overlap_parameters: true, or leave it out");
  if (step_.schedule != PipelineSchedule::interleaved_1f1b || step_.layout.pipeline == 1)
    fail(field, "is for the interleaved schedule",
         "set parallelism.pipeline and virtual_stages above 1, or leave it out: stages then start "
         "their gathers each for itself");
}

void FrameworkRules::check_precision() {
  const std::string name(name_of(step_.precision));
  if (step_.precision == Precision::int8 || step_.precision == Precision::int64)
    fail("training.precision", name + " trains no model", "use fp32, tf32, bf16, fp16 or fp8");
  if (is_cast_for_products(step_.precision) && step_.framework.fp8_scaling == Fp8Scaling::none)
    fail("training.precision", step_.framework.name + " has no products in fp8",
         "use framework: megatron, fsdp or torchtitan, or precision: bf16");
  if (step_.precision == Precision::fp4 && !step_.framework.transformer_engine)
    fail("training.precision", "nvfp4 is Transformer Engine's", "use framework: megatron");
  const bool full = activation_precision(step_.precision) == Precision::fp32;
  const AttentionKernels attention = step_.framework.attention;
  if (full && attention != AttentionKernels::unfused)
    fail("training.framework.attention", "fused attention is for 16-bit activations",
         "use attention: unfused, or precision: bf16");
}

/// Those of Megatron's modules.
void FrameworkRules::check_activation() {
  const bool llama = model_.family == ModelFamily::llama;
  const bool gelu =
      model_.activation == Activation::gelu || model_.activation == Activation::gelu_new;
  const bool gated =
      model_.activation == Activation::silu || model_.activation == Activation::swiglu;
  const bool squares =
      model_.activation == Activation::relu_squared || model_.activation == Activation::xielu;
  if (llama ? gated || gelu || squares || model_.activation == Activation::geglu
            : gelu || model_.activation == Activation::swiglu)
    return;
  fail("training.framework",
       step_.framework.name +
           (llama ? " runs Llama with silu, gelu or gelu_new; " + model_.name + " has another"
                  : " knows gelu and swiglu; " + model_.name + " has neither"),
       "use framework: hf-eager");
}

void FrameworkRules::check_megatron() {
  const std::string framework = step_.framework.name;
  const bool llama = model_.family == ModelFamily::llama;
  const bool known = model_.family == ModelFamily::gpt2 || model_.family == ModelFamily::bloom;
  if (!known && !llama) {
    fail("training.framework", framework + " trains GPT, BLOOM and Llama models only",
         "use framework: hf-eager");
    return;
  }
  if (step_.mode == StepMode::forward_backward) {
    fail("training.mode",
         "forward_backward is how Hugging Face models were timed, not a Megatron step",
         "use mode: training, or framework: hf-eager");
  }
  if (step_.expert_imbalance > static_cast<double>(std::max<std::int64_t>(1, model_.experts)))
    fail("training.expert_imbalance", "exceeds the number of experts",
         "use 1 to " + std::to_string(std::max<std::int64_t>(1, model_.experts)));
  if (step_.expert_capacity_factor > 0 && model_.experts == 0)
    fail("training.expert_capacity_factor", "is of experts, and the model has none",
         "leave it out, or use a model with experts");
  check_activation();
  check_features();
  check_packed_attention();
  if (step_.layout.sequence_parts() > 1)
    require_divisor("parallelism.tensor", step_.layout.tensor, "the sequence length",
                    step_.sequence_length);
  if (step_.framework.overlap_tensor_products && step_.layout.tensor > 1 &&
      !step_.layout.sequence_parallel)
    fail("training.framework.overlap_tensor_products", "is for parts of a sequence",
         "use parallelism.sequence_parallel: true, or overlap_tensor_products: false");
  check_split();
  check_experts();
  check_context();
}

/// Of Hugging Face's modules, Llama alone is split over GPUs, and by some frameworks.
void FrameworkRules::check_unsplit() {
  const FrameworkProfile& profile = step_.framework;
  const std::string models = "models of " + profile.name + " ";
  const ParallelLayout& layout = step_.layout;
  const bool llama = model_.family == ModelFamily::llama;
  struct Size {
    const char* field;
    int value;
    bool can;
    const char* what;
  };
  for (const Size& size :
       {Size{"tensor", layout.tensor, llama && profile.tensor_plan != TensorPlan::whole,
             "are not split over GPUs"},
        Size{"pipeline", layout.pipeline, llama && profile.splits_stages,
             "are not split into stages"},
        Size{"context", layout.context, llama && profile.splits_sequences, "see whole sequences"},
        Size{"expert", layout.expert, false, "hold all experts on every GPU"},
        Size{"expert_tensor", layout.expert_tensor, false, "are not split over GPUs"}}) {
    if (size.value <= 1 || size.can) continue;
    fail("parallelism." + std::string(size.field),
         std::to_string(size.value) + ": " + models + size.what, "use framework: megatron, or 1");
  }
  if (layout.sequence_parallel && profile.tensor_plan != TensorPlan::sequence)
    fail("parallelism.sequence_parallel", models + "share no parts of sequences",
         "use framework: megatron, or false");
}

/// How modules that hold all experts spread tokens over them.
void FrameworkRules::check_expert_loop() {
  const std::string framework = step_.framework.name;
  const bool loops = model_.family == ModelFamily::llama && model_.experts > 0;
  const bool cuts = model_.family == ModelFamily::switch_transformer;
  if (model_.family == ModelFamily::gpt2 && model_.experts > 0)
    fail("training.framework", framework + " runs no GPT with experts",
         "use framework: megatron, or a Llama with experts (Mixtral)");
  const auto per_token = static_cast<double>(model_.experts_per_token);
  if (loops && step_.expert_imbalance * per_token > static_cast<double>(model_.experts))
    fail("training.expert_imbalance",
         "more tokens than there are would go to the busiest of " + std::to_string(model_.experts) +
             " experts, " + std::to_string(model_.experts_per_token) + " of which take each token",
         "use 1 to " + std::to_string(model_.experts / model_.experts_per_token));
  if (step_.expert_imbalance != 1 && cuts)
    fail("training.expert_imbalance",
         framework + " cuts every expert's tokens at expert_capacity, however they are spread",
         "use 1, and model.expert_capacity for another number");
  if (step_.expert_imbalance != 1 && !loops && !cuts)
    fail("training.expert_imbalance", "the model has no experts", "use 1, or a model with experts");
  if (step_.expert_capacity_factor > 0)
    fail("training.expert_capacity_factor",
         "is Megatron's; " + framework + (cuts ? " has model.expert_capacity" : " drops no tokens"),
         "use 0");
}

void FrameworkRules::check_hugging_face() {
  const std::string framework = step_.framework.name;
  check_unsplit();
  check_tensor_share();
  check_fully_sharded();
  check_stages();
  check_parts();
  check_megatron_alone();
  check_expert_loop();
  if (model_.family == ModelFamily::bert) {
    require_positive("model.max_positions", model_.max_positions);
    require_positive("model.token_types", model_.token_types);
  }
  if (has_alibi(model_.family) && model_.activation == Activation::swiglu)
    fail("model.activation", "swiglu: BLOOM and MPT of " + framework + " have no gate",
         "use gelu_new (BLOOM) or gelu (MPT)");
  const bool fused = step_.framework.attention == AttentionKernels::fused_softmax;
  if (fused)
    fail("training.framework.attention", "fused_softmax is Megatron's", "use unfused, or flash2");
  const bool recomputes = step_.recompute != Recompute::none;
  if (recomputes && model_.family == ModelFamily::switch_transformer)
    fail("training.recompute", "Switch transformers are not recomputed", "use recompute: none");
}

namespace {

/// Muon makes whole matrices orthogonal, which ZeRO-2, ZeRO-3 and FSDP divide from the start.
void check_muon(const Scenario& scenario, std::vector<Problem>& problems) {
  const StepOptions& step = scenario.step;
  const auto refuse = [&](bool is_given, const char* what, const char* hint) {
    if (is_given) problems.push_back({"training.optimizer", what, hint});
  };
  refuse(step.data_parallel.sharding > Sharding::optimizer,
         "muon is simulated where replicas hold whole gradients",
         "use data_parallel.sharding: none or optimizer, or optimizer: adam");
  refuse(step.optimizer == OptimizerKind::dist_muon &&
             step.data_parallel.sharding == Sharding::optimizer,
         "dist_muon deals whole tensors to replicas, and nothing else is divided",
         "use data_parallel.sharding: none, or optimizer: muon");
  refuse(step.data_parallel.shard_group > 0, "muon is not simulated with groups of replicas",
         "leave data_parallel.shard_group out, or use optimizer: adam");
  refuse(step.framework.per_tensor_updates || step.framework.deepspeed_zero,
         "muon is not simulated with the gradients' copies of this framework",
         "use framework: megatron, or optimizer: adam");
  refuse(scenario.model.family == ModelFamily::vision, "muon of convolutions is not simulated",
         "use optimizer: adam or sgd");
  refuse(scenario.model.mtp_layers > 0, "muon is not simulated with model.mtp_layers",
         "use mtp_layers: 0, or optimizer: adam");
  refuse(step.schedule == PipelineSchedule::dualpipe, "muon is not simulated with dualpipe",
         "use another schedule, or optimizer: adam");
  refuse(scenario.memory.planner != MemoryPlanner::off, "muon is not simulated with memory.planner",
         "use one of them");
}

}  // namespace

/// LAMB and LARS scale each tensor by its own norms, which no rank knows where ranks divide it.
void check_optimizer(const Scenario& scenario, std::vector<Problem>& problems) {
  const StepOptions& step = scenario.step;
  if (is_muon(step.optimizer)) check_muon(scenario, problems);
  if (!needs_tensor_norms(step.optimizer)) return;
  const bool divided = step.data_parallel.sharding != Sharding::none && step.layout.has_replicas();
  if (!divided && step.layout.tensor <= 1) return;
  problems.push_back({"training.optimizer",
                      "lamb and lars take norms of whole tensors, which ranks divide here (" +
                          std::string(divided ? "data_parallel.sharding" : "parallelism.tensor") +
                          "); their sums over ranks are not simulated",
                      "use sharding: none and parallelism.tensor: 1, or optimizer: adam"});
}

}  // namespace tessera
