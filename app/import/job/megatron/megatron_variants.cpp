// Megatron-LM's arguments: attention of other kinds in all layers or most of them. Source:
// Megatron-LM training/arguments.py, _add_experimental_attention_variant_args (recalled).
#include <string>

#include "app/import/job/layer_list.h"
#include "app/import/job/megatron/megatron_job.h"
#include "workloads/layer_patterns.h"

namespace tessera {

void MegatronJob::read_attention_variant() {
  if (flag("--attention-output-gate")) draft_.set("model.attention_gate", "true");
  const char* name = given("--experimental-attention-variant") ? "--experimental-attention-variant"
                                                               : "--linear-attention-type";
  const std::string variant = text(name).value_or("none");
  if (variant == "none" || variant == "None") return;
  if (!is_llama_) return cannot(name, "is simulated in family llama (--normalization RMSNorm)");
  if (variant == "gated_delta_net") return read_delta_layers(name);
  if (variant == "dsa") return read_indexer();
  cannot(name, "is not simulated: gated_delta_net and dsa are");
}

/// Of --linear-attention-freq n every n-th layer attends; a list has 1 for delta nets. Sizes that
/// are not given are those of Megatron's TransformerConfig.
void MegatronJob::read_delta_layers(const std::string& variant) {
  const std::string freq = text("--linear-attention-freq").value_or("");
  const auto flags = layer_flags(freq, layers_, true);
  if (!flags)
    return problem("--linear-attention-freq",
                   freq.empty() ? "is missing beside " + variant
                                : "is neither a number nor a list of 0 and 1 for " +
                                      std::to_string(layers_) + " layers",
                   "use n, where every n-th layer attends, or ([1]*3+[0]*1)*n");
  const bool sparse = integer("--num-experts").value_or(1) > 1;
  const std::string seconds =
      sparse ? expert_letters() : std::string(flags->size(), layer_letter::kFeedForward);
  if (seconds.empty())
    return problem("--moe-layer-freq", "is no list for " + std::to_string(layers_) + " layers",
                   "use [0]*a+[1]*b with a + b layers");
  paired_ = true;
  std::string mixers;
  for (const int delta : *flags)
    mixers += delta != 0 ? layer_letter::kDelta : layer_letter::kAttention;
  ModelSpec model;
  set_layer_pairs(model, mixers, seconds);
  draft_.set("model.layers", model.layers);
  draft_.set_text("model.layer_pattern", model.layer_pattern);
  draft_.set("model.delta_heads", integer("--linear-num-value-heads").value_or(32));
  draft_.set("model.delta_key_heads", integer("--linear-num-key-heads").value_or(16));
  draft_.set("model.delta_key_dim", integer("--linear-key-head-dim").value_or(128));
  draft_.set("model.delta_value_dim", integer("--linear-value-head-dim").value_or(128));
  if (integer("--linear-conv-kernel-dim").value_or(4) != 4)
    cannot("--linear-conv-kernel-dim", "is not 4: convolutions over 4 positions are simulated");
  draft_.approximate("the kernels of gated delta nets were never measured");
}

/// Its loss is over the chosen tokens, or there is none.
void MegatronJob::read_indexer() {
  if (!flag("--multi-latent-attention"))
    cannot("--experimental-attention-variant", "dsa is of latent attention",
           "add --multi-latent-attention");
  draft_.set("model.index_heads", needed("--dsa-indexer-n-heads"));
  draft_.set("model.index_head_dim", needed("--dsa-indexer-head-dim"));
  draft_.set("model.index_topk", needed("--dsa-indexer-topk"));
  const bool sparse = flag("--dsa-indexer-use-sparse-loss");
  const bool learns = in_.number("--dsa-indexer-loss-coeff").value_or(0) > 0;
  if (!learns) draft_.set("model.index_loss", "false");
  if (learns && !sparse)
    cannot("--dsa-indexer-loss-coeff",
           "without --dsa-indexer-use-sparse-loss is a loss over all pairs, which is not simulated",
           "add it, or use a coefficient of 0");
  draft_.approximate(
      "--experimental-attention-variant dsa: Megatron-Core's own code writes scores of all pairs; "
      "fused kernels are simulated");
}

}  // namespace tessera
