// What patterns of layers, recomputed modules, offloading and dispatchers of tokens ask for.
#include <set>
#include <string>

#include "sim/scenario/rules/framework_rules.h"
#include "workloads/families/modules.h"
#include "workloads/layer_patterns.h"

namespace tessera {

/// Whether every layer has a letter, and the model what the letters ask for.
void FrameworkRules::check_pattern() {
  const std::string& pattern = model_.layer_pattern;
  if (pattern.empty()) return;
  if (pattern.find_first_not_of("MSGKC*-EH") != std::string::npos)
    fail("model.layer_pattern", pattern + " has other letters than M, S, G, K, H, C, *, - and E",
         "write a letter per layer");
  if (std::ssize(pattern) != model_.layers)
    fail("model.layer_pattern",
         "has " + std::to_string(pattern.size()) + " letters for " + std::to_string(model_.layers) +
             " layers",
         "write a letter per layer");
  const bool both = pattern.find(layer_letter::kSideBySide) != std::string::npos;
  const bool mixes = both || pattern.find(layer_letter::kMamba) != std::string::npos;
  if (both && step_.lora_rank > 0)
    fail("training.lora_rank", "of attention and Mamba-2 side by side is not simulated", "use 0");
  if (mixes && (model_.mamba_heads < 1 || model_.mamba_head_dim < 1 || model_.mamba_state < 1 ||
                model_.mamba_groups < 1))
    fail("model.layer_pattern", "has Mamba-2 layers without sizes",
         "give mamba_heads, mamba_head_dim, mamba_state and mamba_groups");
  if ((pattern.find(layer_letter::kExperts) != std::string::npos) != (model_.experts > 0))
    fail("model.layer_pattern", "and model.experts contradict each other",
         "write E for layers of experts");
  if (model_.mtp_layers > 0 || model_.dense_layers > 0)
    fail("model.layer_pattern", "is not simulated with mtp_layers or dense_layers",
         "leave them out");
  check_plain_branches();
  check_delta_nets();
  check_short_convolutions();
  check_scans(mixes);
  if (!mixes) return;
  require_divisor("parallelism.tensor", step_.layout.tensor, "the heads of Mamba-2 layers",
                  model_.mamba_heads);
  require_divisor("parallelism.tensor", step_.layout.tensor, "the groups of Mamba-2 layers",
                  model_.mamba_groups);
  if (step_.layout.context > 1)
    fail("parallelism.context", "of Mamba-2 layers is not simulated", "use 1");
}

/// Sizes of gated delta nets, and how they are split.
void FrameworkRules::check_delta_nets() {
  const bool of_kimi = model_.layer_pattern.find(layer_letter::kKimiDelta) != std::string::npos;
  if (!of_kimi && model_.layer_pattern.find(layer_letter::kDelta) == std::string::npos) return;
  if (model_.delta_heads < 1 || model_.delta_key_heads < 1 || model_.delta_key_dim < 1 ||
      model_.delta_value_dim < 1)
    return fail("model.layer_pattern", "has gated delta nets without sizes",
                "give delta_heads, delta_key_heads, delta_key_dim and delta_value_dim");
  if (model_.delta_heads % model_.delta_key_heads != 0)
    fail("model.delta_key_heads",
         std::to_string(model_.delta_key_heads) + " heads of keys do not serve " +
             std::to_string(model_.delta_heads) + " heads of values evenly",
         "use a divisor of delta_heads");
  require_divisor("parallelism.tensor", step_.layout.tensor, "the key heads of gated delta nets",
                  model_.delta_key_heads);
  refuse_beside("gated delta nets");
  if (of_kimi) check_kimi_delta();
}

/// As the code beside its weights has it.
void FrameworkRules::check_kimi_delta() {
  if (model_.delta_key_heads != model_.delta_heads ||
      model_.delta_key_dim != model_.delta_value_dim)
    fail("model.layer_pattern", "has Kimi delta attention, whose keys and values have equal heads",
         "make delta_key_heads = delta_heads and delta_key_dim = delta_value_dim");
  if (step_.layout.tensor > 1)
    fail("parallelism.tensor", "of Kimi delta attention is not simulated: its code has none",
         "use 1, and parallelism.expert or pipeline");
}

/// What layers that carry a state from position to position are not simulated with.
void FrameworkRules::refuse_beside(const std::string& layers) {
  const std::string what = "of " + layers + " is not simulated";
  if (step_.layout.context > 1) fail("parallelism.context", what, "use 1");
  if (step_.lora_rank > 0) fail("training.lora_rank", what, "use 0");
  if (step_.mean_document > 0) fail("training.mean_document", what, "use 0");
}

/// Mamba-1, whose channels are heads of one number.
void FrameworkRules::check_scans(bool beside_mamba_2) {
  if (model_.layer_pattern.find(layer_letter::kScan) == std::string::npos) return;
  if (beside_mamba_2)
    return fail("model.layer_pattern", "has Mamba-1 beside Mamba-2 layers", "keep S, or M and H");
  if (model_.mamba_heads < 1 || model_.mamba_head_dim != 1 || model_.mamba_state < 1 ||
      model_.mamba_groups != 1)
    fail("model.layer_pattern", "has Mamba-1 layers without sizes",
         "give mamba_heads (channels), mamba_head_dim: 1, mamba_state and mamba_groups: 1");
  if (step_.layout.tensor > 1)
    fail("parallelism.tensor", "of Mamba-1 layers is not simulated: their code has none",
         "use 1, and parallelism.expert or pipeline");
  refuse_beside("Mamba-1 layers");
}

/// Channels are split over ranks, positions are not.
void FrameworkRules::check_short_convolutions() {
  if (model_.layer_pattern.find(layer_letter::kShortConvolution) == std::string::npos) return;
  require_divisor("parallelism.tensor", step_.layout.tensor, "the channels of short convolutions",
                  model_.hidden);
  refuse_beside("short convolutions");
}

/// Layers of one branch have a norm ahead of it, no biases and no dropout behind it.
void FrameworkRules::check_plain_branches() {
  const auto need = [this](bool holds, const char* field) {
    if (!holds)
      fail("model." + std::string(field), "is not simulated with model.layer_pattern",
           "leave it out");
  };
  need(model_.norm_placement == NormPlacement::before, "norm_placement");
  need(model_.block_order == BlockOrder::sequential, "block_order");
  need(!model_.output_bias, "output_bias");
  need(!model_.mlp_bias, "mlp_bias");
  need(model_.hidden_dropout == 0, "hidden_dropout");
}

/// Options that ask for each other.
void FrameworkRules::check_recipe() {
  check_recompute();
  check_fp8_parameters();
  check_documents();
  check_offload();
  check_dispatcher();
}

void FrameworkRules::check_recompute() {
  static const std::set<std::string> kModules{"core_attn", "layernorm", "mla_up_proj",   "moe_act",
                                              "mlp",       "moe",       "shared_experts"};
  const bool megatron = step_.framework.modules == ModuleTree::megatron;
  const bool several = !step_.recompute_modules.empty();
  if (several && step_.recompute != Recompute::selective)
    fail("training.recompute_modules", "is for recompute: selective", "use it, or leave them out");
  if (several && !megatron)
    fail("training.recompute_modules", "is Megatron's", "use framework: megatron");
  for (const std::string& module : step_.recompute_modules)
    if (!kModules.contains(module))
      fail("training.recompute_modules", module + " is not simulated",
           "use core_attn, layernorm, mla_up_proj, moe_act, mlp, moe or shared_experts");
  if (step_.recompute_layers > 0 && (step_.recompute != Recompute::full || !megatron))
    fail("training.recompute_layers", "is for recompute: full under Megatron", "use it, or 0");
  if (step_.recompute_layers > 0 && step_.framework.split_by_cost)
    fail("training.recompute_layers", "is not simulated where stages are filled by cost", "use 0");
}

void FrameworkRules::check_fp8_parameters() {
  if (step_.formats.fp8_parameters && step_.precision != Precision::fp8)
    fail("training.mixed_precision.fp8_parameters", "is for precision: fp8", "use false");
  if (step_.formats.fp8_parameters &&
      (!step_.framework.transformer_engine || step_.formats.parameters != Precision::bf16))
    fail("training.mixed_precision.fp8_parameters", "is for weights in bf16 of Transformer Engine",
         "use false");
}

void FrameworkRules::check_documents() {
  const bool megatron = step_.framework.modules == ModuleTree::megatron;
  const double documents = step_.mean_document;
  const bool packs = megatron && uses_fused_attention(step_.framework) &&
                     !step_.framework.packed_attention && step_.layout.context == 1;
  if (documents > 0 && !packs)
    fail("training.mean_document", "is for fused attention of Megatron to whole sequences",
         "use framework: megatron without parallelism.context, or 0");
  if (documents > static_cast<double>(step_.sequence_length))
    fail("training.mean_document", "exceeds the sequence", "use sequence_length or less");
  const double longest = step_.longest_document;
  if (longest > 0 && (documents == 0 || longest < documents))
    fail("training.longest_document", "is the longest of documents whose mean is no longer",
         "give training.mean_document, up to it");
  if (longest > static_cast<double>(step_.sequence_length))
    fail("training.longest_document", "exceeds the sequence", "use sequence_length or less");
}

/// Transformer Engine's CPU offloading. Source: Megatron-Core transformer_config.py.
void FrameworkRules::check_offload() {
  if (step_.offload_layers == 0) return;
  const std::string field = "training.offload_layers";
  if (step_.framework.modules != ModuleTree::megatron || step_.mode != StepMode::training)
    fail(field, "is for training steps of Megatron", "use 0");
  if (step_.offload_layers >= model_.layers)
    fail(field, "is not below the number of layers", "use fewer");
  if (step_.layout.pipeline > 1)
    fail(field, "is for models without pipeline stages", "use parallelism.pipeline: 1, or 0");
  if (step_.recompute != Recompute::none)
    fail(field, "is not simulated with recomputation", "use recompute: none, or 0");
}

void FrameworkRules::check_dispatcher() {
  const FrameworkProfile& profile = step_.framework;
  const bool spreads = profile.modules == ModuleTree::megatron && model_.experts > 0;
  const bool sends_tokens =
      spreads && step_.layout.expert > 1 && sends_tokens_once(profile.expert_dispatcher);
  if (sends_tokens && step_.expert_capacity_factor > 0)
    fail("training.expert_capacity_factor", "is not simulated with DeepEP and HybridEP",
         "use framework.expert_dispatcher: all_to_all, or 0");
  if (!profile.overlap_experts) return;
  const std::string field = "training.framework.overlap_experts";
  if (!spreads || step_.layout.expert < 2)
    fail(field, "is for experts that ranks share", "use parallelism.expert above 1, or false");
  const bool rounds =
      step_.layout.pipeline == 1 || (step_.schedule == PipelineSchedule::interleaved_1f1b);
  if (!rounds)
    fail(field, "needs virtual stages where there are several stages (Megatron)",
         "set parallelism.virtual_stages above 1, or false");
  if (step_.layout.tensor > 1 && !step_.layout.sequence_parallel)
    fail(field, "is not simulated with tensor-parallel ranks that hold whole sequences",
         "use parallelism.sequence_parallel: true, or false");
  if (step_.data_parallel.sharding == Sharding::parameters || step_.recompute == Recompute::full)
    fail(field, "is not simulated with sharded parameters or whole layers that run again",
         "use sharding: optimizer and other recomputation, or false");
  if (step_.mode != StepMode::training) fail(field, "is for training steps", "use false");
}

}  // namespace tessera
