// Megatron-LM's arguments: what family llama has beside plain layers.
#include <set>
#include <sstream>
#include <string>

#include "app/import/job/megatron/megatron_job.h"

namespace tessera {
void MegatronJob::read_features() {
  read_latent_attention();
  read_attention_pattern();
  if (text("--softmax-type").value_or("vanilla") == "learnable")
    draft_.set("model.attention_sinks", "true");
  if (const auto further = integer("--mtp-num-layers", 0); further && *further > 0) {
    if (paired_)
      cannot("--mtp-num-layers", "beside delta nets is not simulated");
    else
      draft_.set("model.mtp_layers", *further);
  }
  if (has_experts_) read_expert_features();
  read_loss_fusion();
}

/// The sizes that are not given are those of Megatron's arguments.py.
void MegatronJob::read_latent_attention() {
  if (!flag("--multi-latent-attention")) return;
  const std::int64_t rope = integer("--qk-pos-emb-head-dim").value_or(64);
  draft_.set("model.kv_rank", integer("--kv-lora-rank").value_or(32));
  if (const auto rank = integer("--q-lora-rank")) draft_.set("model.q_rank", *rank);
  draft_.set("model.rope_dim", rope);
  draft_.set("model.head_dim", integer("--qk-head-dim").value_or(128) + rope);
  draft_.set("model.v_head_dim", integer("--v-head-dim").value_or(128));
  text("--rope-type");
  // Its norms are those of the ranks.
  if (flag("--qk-layernorm")) draft_.set("model.qk_norm", "false");
}

/// --cross-entropy-fusion-impl alone has no effect.
void MegatronJob::read_loss_fusion() {
  const std::string kind = text("--cross-entropy-fusion-impl").value_or("native");
  if (!flag("--cross-entropy-loss-fusion")) return;
  if (kind == "native" || kind == "te") return set_profile("loss_fusion", kind);
  cannot("--cross-entropy-fusion-impl", "is no fusion of Megatron's", "use native or te");
}

void MegatronJob::read_expert_features() {
  if (flag("--moe-router-fusion")) set_profile("fused_router", "true");
  if (const auto ffn = integer("--moe-shared-expert-intermediate-size", 0); ffn && *ffn > 0)
    draft_.set("model.shared_ffn", *ffn);
  if (flag("--moe-shared-expert-gate")) draft_.set("model.shared_gate", "true");
  if (text("--moe-router-score-function").value_or("softmax") == "sigmoid")
    draft_.set("model.router_sigmoid", "true");
  if (flag("--moe-router-enable-expert-bias")) draft_.set("model.router_bias", "true");
  if (const auto groups = integer("--moe-router-num-groups"); groups && *groups > 1)
    draft_.set("model.router_groups", *groups);
  integer("--moe-router-group-topk");
}

/// What a graph holds is what --cuda-graph-scope lists; nothing listed is whole layers.
void MegatronJob::read_graphs() {
  const bool by_engine = flag("--external-cuda-graph");
  const bool local = flag("--enable-cuda-graph");
  const std::string kind = text("--cuda-graph-impl")
                               .value_or(by_engine ? "transformer_engine"
                                         : local   ? "local"
                                                   : "none");
  std::istringstream scope(text("--cuda-graph-scope").value_or(""));
  if (kind == "none") return;
  if (kind != "local" && kind != "transformer_engine")
    return cannot("--cuda-graph-impl", "is not simulated: local and transformer_engine are");
  std::string modules;
  for (std::string module; scope >> module;) {
    if (module == "full_iteration") return set_profile("cuda_graphs", "full_iteration");
    if (module == "full") continue;
    static const std::set<std::string> kModules{"attn", "mlp", "moe_router", "moe_preprocess",
                                                "mamba"};
    if (!kModules.contains(module))
      return cannot("--cuda-graph-scope", "names " + module + ", which is not simulated");
    modules += (modules.empty() ? "" : ", ") + module;
  }
  set_profile("cuda_graphs", "layers");
  graph_modules_ = modules;
}

/// Small parts of a step that no field has.
void MegatronJob::note_left_out() {
  if (integer("--empty-unused-memory-level", 0).value_or(0) > 0)
    draft_.approximate(
        "--empty-unused-memory-level: that the allocator gives its memory back in every step, and "
        "asks for it again, is left out");
  const std::string router = text("--moe-router-dtype").value_or("none");
  if (router == "fp32" || router == "fp64")
    draft_.approximate("--moe-router-dtype " + router +
                       ": the router's product is counted in the format of the others");
  if (flag("--moe-router-padding-for-fp8") || flag("--moe-router-padding-for-quantization"))
    draft_.approximate("--moe-router-padding-for-quantization: rows that it adds are left out");
  if (flag("--moe-shared-expert-overlap"))
    draft_.approximate(
        "--moe-shared-expert-overlap: shared experts run behind the others, not beside their "
        "exchange");
}

}  // namespace tessera
