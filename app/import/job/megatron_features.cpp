// Megatron-LM's arguments: what family llama has beside plain layers.
#include <array>
#include <cstdlib>
#include <string>
#include <utility>

#include "app/import/job/megatron_job.h"

namespace tessera {
namespace {

bool is_none(const std::string& text) {
  return text.empty() || text == "None" || text == "none";
}

}  // namespace

void MegatronJob::read_features() {
  read_latent_attention();
  read_windows();
  if (text("--softmax-type").value_or("vanilla") == "learnable")
    draft_.set("model.attention_sinks", "true");
  if (const auto further = integer("--mtp-num-layers", 0); further && *further > 0) {
    draft_.set("model.mtp_layers", 1);
    if (*further > 1) cannot("--mtp-num-layers", "is above 1, which is not simulated");
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

/// "128,0": a token sees so many before it, and itself.
void MegatronJob::read_windows() {
  const std::string sizes = text("--window-size").value_or("");
  const std::string skip = text("--window-attn-skip-freq").value_or("");
  if (is_none(sizes) || sizes.starts_with("-1")) return;
  const std::int64_t before = std::atoll(sizes.c_str() + (sizes.front() == '(' ? 1 : 0));
  if (before < 0 || sizes.find(',') == std::string::npos)
    return cannot("--window-size", "is no pair of tokens before and behind", "use 128,0");
  draft_.set("model.window", before + 1);
  if (is_none(skip)) return;
  if (skip.find_first_not_of("0123456789") != std::string::npos)
    return cannot("--window-attn-skip-freq", "is a list of layers, which is not simulated",
                  "use a number n: every n-th layer has no window");
  draft_.set("model.full_every", std::atoll(skip.c_str()));
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

/// "[0]*3+[1]*58": so many dense layers ahead of those with experts; -1: another pattern.
std::int64_t MegatronJob::dense_layers_ahead(const std::string& pattern) const {
  std::string plain;
  for (const char c : pattern) {
    if (c != ' ' && c != '(' && c != ')' && c != '\'' && c != '"') plain += c;
  }
  const std::string head = "[0]*";
  const std::string tail = "+[1]*";
  const auto plus = plain.find(tail);
  if (!plain.starts_with(head) || plus == std::string::npos) return -1;
  const std::int64_t dense = std::atoll(plain.c_str() + head.size());
  const std::int64_t sparse = std::atoll(plain.c_str() + plus + tail.size());
  return dense > 0 && dense + sparse == layers_ ? dense : -1;
}

}  // namespace tessera
