// What windows, latent attention, shared experts and the like ask of a framework and a layout.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/scenario/rules/framework_rules.h"
#include "workloads/families/modules.h"
#include "workloads/model_features.h"
#include "workloads/sharding.h"

namespace tessera {
namespace {

constexpr const char* kHiddenDropout = "hidden_dropout";

/// In inference nothing is dropped.
std::vector<std::string> fields_of_step(const ModelSpec& model, const StepOptions& step) {
  std::vector<std::string> fields = fields_of_megatron_alone(model, step.sequence_length);
  if (step.mode == StepMode::inference) std::erase(fields, kHiddenDropout);
  return fields;
}

std::string way_out(const std::string& field) {
  return field == kHiddenDropout ? "use 0, as its code has it, or framework: megatron"
                                 : "use framework: megatron";
}

}  // namespace

/// Under Hugging Face's modules.
void FrameworkRules::check_adapters_of_peft() {
  if (step_.layout.tensor > 1)
    fail("training.lora_rank", "beside layers split over ranks is simulated under Megatron",
         "use parallelism.tensor: 1, framework: megatron, or 0");
  if (model_.experts > 0)
    fail("training.lora_rank", "of models with experts is simulated under Megatron",
         "use framework: megatron, or 0");
  if (step_.framework.fused_gate)
    fail("training.lora_rank", "has an adapter for gate and one for up, which are one layer here",
         "use a profile without fused_gate (hf-eager), framework: megatron, or 0");
  if (step_.dora && has_four_bits(step_.base_weights))
    fail("training.dora", "of weights in 4 bits is not simulated",
         "use base_weights: as_parameters, or false");
}

/// QLoRA.
void FrameworkRules::check_base_weights() {
  if (step_.base_weights == BaseWeights::as_parameters) return;
  const auto refuse = [&](const char* what, const char* hint) {
    fail("training.base_weights", what, hint);
  };
  if (step_.lora_rank == 0)
    refuse("is of weights that nothing trains, and there are no adapters",
           "give lora_rank, or use as_parameters");
  if (step_.framework.modules != ModuleTree::hugging_face)
    refuse("is simulated under Hugging Face's modules, as bitsandbytes runs it",
           "use framework: hf-eager, or as_parameters");
  if (is_cast_for_products(step_.precision))
    refuse("and a precision below 16 bit are not simulated together",
           "use precision: bf16, or as_parameters");
  if (step_.base_weights == BaseWeights::in_precision && !is_half(step_.precision))
    refuse("is in_precision, which is for steps in 16 bits",
           "use precision: bf16, or as_parameters");
  if (gathers_units(step_))
    refuse(has_four_bits(step_.base_weights)
               ? "in 4 bit are not simulated divided over ranks"
               : "in another format than adapters are not simulated divided over ranks",
           "use data_parallel.sharding: none, optimizer or gradients, or as_parameters");
}

/// What of frozen weights that are gathered layer by layer is not simulated.
void FrameworkRules::check_gathered_adapters() {
  if (!gathers_units(step_)) return;
  if (step_.data_parallel.gather_fp8)
    fail("training.data_parallel.gather_fp8", "of frozen weights is not simulated", "use false");
  if (step_.formats.fp8_parameters)
    fail("training.mixed_precision.fp8_parameters",
         "of frozen weights that are gathered are not simulated", "use false");
  if (step_.layout.experts_apart())
    fail("training.lora_rank", "of experts that are divided twice is not simulated",
         "use data_parallel.sharding: none or optimizer, or 0");
}

/// Linear layers with an adapter each.
void FrameworkRules::check_adapted_modules() {
  if (step_.lora_modules.empty()) return;
  const auto refuse = [&](const std::string& what, const std::string& hint) {
    fail("training.lora_modules", what, hint);
  };
  static const std::set<std::string> kAttention{"q_proj", "k_proj", "v_proj", "o_proj"};
  static const std::set<std::string> kFeedForward{"gate_proj", "up_proj", "down_proj"};
  std::set<std::string> seen;
  bool of_feed_forward = false;
  for (const std::string& module : step_.lora_modules) {
    if (!kAttention.contains(module) && !kFeedForward.contains(module))
      refuse("has " + module + ", of which adapters are not simulated",
             "use q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj or down_proj");
    if (!seen.insert(module).second) refuse("names " + module + " twice", "name it once");
    of_feed_forward = of_feed_forward || kFeedForward.contains(module);
  }
  if (seen.contains("gate_proj") && !is_gated(model_.activation))
    refuse("has gate_proj in a model without a gate", "leave it out");
  if (of_feed_forward && model_.experts > 0)
    refuse("has layers of routed experts, whose adapters are not simulated",
           "use those of attention alone");
  if (step_.lora_targets != LoraTargets::all)
    refuse("and lora_targets both say which layers have adapters", "keep one");
  if (step_.dora && step_.framework.modules == ModuleTree::megatron)
    refuse("is not simulated with DoRA under Megatron",
           "use lora_targets, framework: hf-eager, or dora: false");
  if (model_.kv_rank > 0 || model_.attention_gate)
    refuse("names layers that latent and gated attention do not have", "use lora_targets");
}

/// Adapters of linear layers; all else is frozen.
void FrameworkRules::check_adapters() {
  check_base_weights();
  if (step_.lora_rank == 0) {
    const std::string none = "is of adapters, and there are none";
    if (step_.dora) fail("training.dora", none, "give lora_rank");
    if (step_.lora_dropout > 0) fail("training.lora_dropout", none, "give lora_rank");
    if (!step_.lora_modules.empty()) fail("training.lora_modules", none, "give lora_rank");
    if (step_.lora_targets != LoraTargets::all)
      fail("training.lora_targets", none, "give lora_rank");
    return;
  }
  check_adapted_modules();
  if (model_.window_kv_heads > 0 || (model_.q_rank > 0 && model_.kv_rank == 0))
    fail("training.lora_rank",
         "beside model.window_kv_heads, or model.q_rank without kv_rank, is not simulated",
         "use 0");
  if (model_.family != ModelFamily::llama)
    fail("training.lora_rank", "is simulated for family llama", "use such a model, or 0");
  if (step_.framework.modules == ModuleTree::hugging_face) check_adapters_of_peft();
  if (step_.mode != StepMode::training)
    fail("training.lora_rank", "is for mode: training", "use mode: training, or 0");
  if (step_.lora_dropout > 0 && step_.framework.modules == ModuleTree::megatron)
    fail("training.lora_dropout", "is simulated under Hugging Face's modules",
         "use framework: hf-eager, or 0");
  check_gathered_adapters();
  if (!step_.dora) return;
  if (step_.layout.tensor > 1)
    fail("training.dora", "is not simulated over tensor-parallel ranks, which gather factors",
         "use parallelism.tensor: 1, or false");
  if (is_cast_for_products(step_.precision))
    fail("training.dora", "is not simulated with weights that are cast for their products",
         "use precision: bf16, or false");
}

/// As the kernels and the code of it are published.
void FrameworkRules::check_indexer() {
  if (model_.index_heads == 0) return;
  const std::string beside = "beside model.index_heads is not simulated: ";
  if (step_.layout.tensor > 1 && !step_.layout.sequence_parallel)
    fail("parallelism.tensor",
         beside + "ranks with whole sequences would sum gradients of the rank",
         "use parallelism.sequence_parallel: true");
  if (step_.layout.context > 1)
    fail("parallelism.context", beside + "each token may choose rows of all ranks", "use 1");
  if (step_.mean_document > 0)
    fail("training.mean_document", beside + "tokens are chosen of whole sequences", "use 0");
  if (step_.lora_rank > 0)
    fail("training.lora_rank", beside + "its layers have no adapters", "use 0");
  if (is_muon(step_.optimizer))
    fail("training.optimizer", beside + "Muon's matrices of heads are not known", "use adam");
  if (!uses_fused_attention(step_.framework))
    fail("training.framework.attention", "unfused " + beside + "it would write scores of all pairs",
         "use attention: transformer_engine in 16 bit");
}

/// Under Megatron.
void FrameworkRules::check_features() {
  check_indexer();
  const int tensor = step_.layout.tensor;
  if (model_.experts > 0)
    require_divisor(
        step_.layout.expert_tensor > 0 ? "parallelism.expert_tensor" : "parallelism.tensor",
        step_.layout.expert_parts(), "the experts' feed-forward size", expert_ffn_of(model_));
  require_divisor("parallelism.tensor", tensor, "the shared experts' feed-forward size",
                  model_.shared_ffn);
  if (model_.qk_norm_wide && tensor > 1)
    fail("model.qk_norm_wide",
         "norms go over heads of several tensor-parallel ranks, which is not simulated",
         "use parallelism.tensor: 1");
  const bool fused = uses_fused_attention(step_.framework);
  if (!fused && (model_.attention_sinks || model_.window_sinks))
    fail(model_.attention_sinks ? "model.attention_sinks" : "model.window_sinks",
         "unfused attention has no sinks",
         "use training.framework.attention: transformer_engine, flash3 or cudnn in 16 bit");
  if (!fused && model_.attention_softcap)
    fail("model.attention_softcap", "unfused attention caps no scores",
         "use training.framework.attention: transformer_engine, flash2 or flash3 in 16 bit");
  if (model_.window > 0 && step_.layout.context > 1 &&
      step_.context_attention == ContextAttention::ring)
    fail("parallelism.context_attention", "ring: Transformer Engine has no windows there",
         "use all_gather or ulysses");
}

/// What nanotron's Llama has.
void FrameworkRules::check_packed_attention() {
  if (!step_.framework.packed_attention) return;
  if (model_.family != ModelFamily::llama)
    fail("training.framework", step_.framework.name + " trains Llama models only",
         "use framework: megatron");
  for (const std::string& field : fields_of_step(model_, step_))
    fail("model." + field, "is not simulated with the modules of " + step_.framework.name,
         way_out(field));
  for (const auto& [field, given] :
       {std::pair{"qk_norm", model_.qk_norm}, std::pair{"qkv_bias", model_.qkv_bias},
        std::pair{"experts", model_.experts > 0}}) {
    if (given)
      fail("model." + std::string(field), step_.framework.name + " has none",
           "use framework: megatron");
  }
  if (!uses_fused_attention(step_.framework))
    fail("training.framework.attention", "packed_attention calls FlashAttention",
         "use attention: flash2 and a 16-bit precision");
  if (step_.layout.context > 1)
    fail("parallelism.context", step_.framework.name + " sees whole sequences",
         "use framework: megatron, or 1");
}

void FrameworkRules::check_megatron_alone() {
  for (const std::string& field : fields_of_step(model_, step_))
    fail("model." + field, "is not simulated with the modules of " + step_.framework.name,
         way_out(field));
}

}  // namespace tessera
