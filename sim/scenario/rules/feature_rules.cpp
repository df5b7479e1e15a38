// What windows, latent attention, shared experts and the like ask of a framework and a layout.
#include <utility>

#include "sim/scenario/rules/framework_rules.h"
#include "workloads/families/modules.h"
#include "workloads/model_features.h"

namespace tessera {

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
  if (step_.dora)
    fail("training.dora", "is simulated under Megatron", "use framework: megatron, or false");
}

/// Adapters of linear layers; all else is frozen.
void FrameworkRules::check_adapters() {
  if (step_.lora_rank == 0) {
    if (step_.dora) fail("training.dora", "is of adapters, and there are none", "give lora_rank");
    return;
  }
  if (model_.family != ModelFamily::llama)
    fail("training.lora_rank", "is simulated for family llama", "use such a model, or 0");
  if (step_.framework.modules == ModuleTree::hugging_face) check_adapters_of_peft();
  if (step_.mode != StepMode::training)
    fail("training.lora_rank", "is for mode: training", "use mode: training, or 0");
  if (step_.data_parallel.sharding != Sharding::none &&
      step_.data_parallel.sharding != Sharding::optimizer)
    fail("training.data_parallel.sharding", "of frozen weights is not simulated",
         "use none or optimizer with training.lora_rank");
  if (!step_.dora) return;
  if (step_.layout.tensor > 1)
    fail("training.dora", "is not simulated over tensor-parallel ranks, which gather factors",
         "use parallelism.tensor: 1, or false");
  if (is_cast_for_products(step_.precision))
    fail("training.dora", "is not simulated with weights that are cast for their products",
         "use precision: bf16, or false");
}

/// Under Megatron.
void FrameworkRules::check_features() {
  const int tensor = step_.layout.tensor;
  if (model_.experts > 0 && !step_.layout.whole_experts())
    require_divisor("parallelism.tensor", tensor, "the experts' feed-forward size",
                    expert_ffn_of(model_));
  require_divisor("parallelism.tensor", tensor, "the shared experts' feed-forward size",
                  model_.shared_ffn);
  if (model_.qk_norm_wide && tensor > 1)
    fail("model.qk_norm_wide",
         "norms go over heads of several tensor-parallel ranks, which is not simulated",
         "use parallelism.tensor: 1");
  const bool fused = uses_fused_attention(step_.framework);
  if (!fused && model_.attention_sinks)
    fail("model.attention_sinks", "unfused attention has no sinks",
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
  for (const std::string& field : fields_of_megatron_alone(model_, step_.sequence_length))
    fail("model." + field, "is not simulated with the modules of " + step_.framework.name,
         "use framework: megatron");
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
  for (const std::string& field : fields_of_megatron_alone(model_, step_.sequence_length))
    fail("model." + field, "is not simulated with the modules of " + step_.framework.name,
         "use framework: megatron");
}

}  // namespace tessera
