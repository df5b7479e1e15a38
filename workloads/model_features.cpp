#include "workloads/model_features.h"

#include <string>
#include <vector>

#include "workloads/families/modules.h"

namespace tessera {

namespace {

struct Field {
  const char* name;
  bool is_given;
};

std::vector<Field> fields_of_attention(const ModelSpec& m, std::int64_t tokens) {
  const bool holds_all = tokens > 0 && m.window >= tokens;
  const bool turns_all =
      m.attention_pattern.find(attention_letter::kWithoutPositions) == std::string::npos;
  return {{"window", m.window > 0 && !holds_all},
          {"attention_pattern", !m.attention_pattern.empty() && !(holds_all && turns_all)},
          {"attention_sinks", m.attention_sinks},
          {"window_kv_heads", m.window_kv_heads > 0},
          {"window_sinks", m.window_sinks},
          {"attention_softcap", m.attention_softcap},
          {"kv_rank", m.kv_rank > 0},
          {"q_rank", m.q_rank > 0 && m.kv_rank == 0},
          {"index_heads", m.index_heads > 0},
          {"v_head_dim", m.kv_rank == 0 && value_dim_of(m) != m.head_dim},
          {"rope_dim", rope_dim_of(m) != m.head_dim},
          {"qk_norm_wide", m.qk_norm_wide},
          {"qk_norm_plain", m.qk_norm_plain},
          {"attention_gate", m.attention_gate},
          {"output_bias", m.output_bias}};
}

std::vector<Field> fields_of_experts(const ModelSpec& m) {
  return {{"expert_pattern", !m.expert_pattern.empty()},
          {"expert_ffn", m.experts > 0 && expert_ffn_of(m) != m.ffn},
          {"shared_ffn", m.shared_ffn > 0},
          {"dense_layers", m.dense_layers > 0},
          {"router_groups", m.router_groups > 0},
          {"router_sigmoid", m.router_sigmoid},
          {"router_bias", m.router_bias},
          {"expert_bias", m.expert_bias}};
}

std::vector<Field> fields_of_layers(const ModelSpec& m) {
  return {{"hidden_dropout", m.hidden_dropout > 0},
          {"layer_pattern", !m.layer_pattern.empty()},
          {"logit_softcap", m.logit_softcap},
          {"norm", m.norm != NormKind::rms_norm},
          {"norm_placement", m.norm_placement != NormPlacement::before},
          {"block_order", m.block_order != BlockOrder::sequential},
          {"mlp_bias", m.mlp_bias},
          {"head_bias", m.head_bias},
          {"embedding_scale", m.embedding_scale},
          {"residual_scale", m.residual_scale},
          {"logit_scale", m.logit_scale},
          {"mtp_layers", m.mtp_layers > 0},
          {"activation", m.activation != Activation::swiglu && m.activation != Activation::silu}};
}

}  // namespace

std::vector<std::string> fields_of_megatron_alone(const ModelSpec& m, std::int64_t tokens) {
  if (m.family != ModelFamily::llama) return {};
  std::vector<std::string> given;
  for (const std::vector<Field>& fields :
       {fields_of_attention(m, tokens), fields_of_experts(m), fields_of_layers(m)})
    for (const Field& field : fields)
      if (field.is_given) given.emplace_back(field.name);
  return given;
}

}  // namespace tessera
