// Models with layer norms and rotary positions: transformers 4.57, models/NAME/modeling_NAME.py.
#include <nlohmann/json.hpp>
#include <string>

#include "workloads/hugging_face/hugging_face_llama.h"

namespace tessera {
namespace {

/// Without a gate; what it reads of the feed-forward is its activation.
void read_plain_activation(ConfigReader& in, ModelSpec& model, const char* key, Activation usual) {
  model.activation = in.activation_or(key, usual);
  if (model.activation != Activation::gelu && model.activation != Activation::gelu_new)
    in.fail(key, "is neither gelu nor gelu_new", "this model_type is simulated with gelu");
}

void read_layer_norm_base(ConfigReader& in, ModelSpec& model) {
  model.family = ModelFamily::llama;
  model.norm = NormKind::layer_norm;
  model.layers =
      in.dimension(in.name_in_use("num_hidden_layers", "n_layer"), kMostHuggingFaceLayers);
  const char* hidden = in.name_in_use("hidden_size", "n_embd");
  model.hidden = in.dimension(hidden);
  set_heads(in, model, in.name_in_use("num_attention_heads", "n_head"), hidden);
  model.head_dim = in.dimension_or("head_dim", model.head_dim);
  model.vocab = in.dimension("vocab_size");
}

/// Norms of queries and keys whose weights differ from head to head.
void read_norm_of_each_head(ConfigReader& in, ModelSpec& model, const char* key) {
  model.qk_norm = in.flag_or(key, false);
  if (model.qk_norm)
    in.approximate(in.prefix() + key +
                   ": norms of queries and keys are simulated with the same weights for all heads, "
                   "of which the model has some for each");
}

void all_biases(ModelSpec& model) {
  model.qkv_bias = model.output_bias = model.mlp_bias = true;
}

}  // namespace

void read_stablelm(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  model.norm = NormKind::layer_norm;
  model.hidden_dropout = in.probability_or("hidden_dropout", 0.0);
  model.qkv_bias = in.flag_or("use_qkv_bias", false);
  model.output_bias = false;
  read_norm_of_each_head(in, model, "qk_layernorm");
  if (in.flag_or("use_parallel_residual", false)) model.block_order = BlockOrder::parallel;
  read_partial_rotary(in, model, in.name_in_use("partial_rotary_factor", "rope_pct"), 0.25);
}

void read_falcon(ConfigReader& in, ModelSpec& model) {
  read_layer_norm_base(in, model);
  const bool newer = in.flag_or("new_decoder_architecture", false);
  const bool one_key = in.flag_or("multi_query", true);
  const char* kv = in.name_in_use("num_kv_heads", "n_head_kv");
  model.kv_heads = newer ? in.dimension_or(kv, model.heads) : one_key ? 1 : model.heads;
  in.has("num_kv_heads");
  in.has("n_head_kv");
  in.require_divisor(kv, model.kv_heads, "num_attention_heads", model.heads);
  model.ffn = in.dimension_or("ffn_hidden_size", 4 * model.hidden);
  read_plain_activation(in, model, "activation", Activation::gelu);
  model.hidden_dropout = in.probability_or("hidden_dropout", 0.0);
  model.attention_dropout = in.probability_or("attention_dropout", 0.0);
  model.tied_embeddings = in.flag_or("tie_word_embeddings", true);
  if (in.flag_or("bias", false)) all_biases(model);
  if (in.flag_or("alibi", false))
    in.leave_out("alibi", "is true: ALiBi is not simulated with Falcon's layers", "");
  const bool two = newer && in.dimension_or("num_ln_in_parallel_attn", 2) == 2;
  if (newer || in.flag_or("parallel_attn", true))
    model.block_order = two ? BlockOrder::parallel_two_norms : BlockOrder::parallel;
  in.has("parallel_attn");
  in.ignore("ff_factor", "FalconForCausalLM");
}

void read_gpt_neox(ConfigReader& in, ModelSpec& model) {
  read_layer_norm_base(in, model);
  model.ffn = in.dimension("intermediate_size");
  read_plain_activation(in, model, "hidden_act", Activation::gelu);
  model.hidden_dropout = in.probability_or("hidden_dropout", 0.0);
  model.attention_dropout = in.probability_or("attention_dropout", 0.0);
  model.tied_embeddings = in.flag_or("tie_word_embeddings", false);
  model.mlp_bias = true;
  model.qkv_bias = model.output_bias = in.flag_or("attention_bias", true);
  if (in.flag_or("use_parallel_residual", true)) model.block_order = BlockOrder::parallel_two_norms;
  read_partial_rotary(in, model, "rotary_pct", 0.25);
  in.has("rotary_emb_base");
  for (const char* of_bert : {"attention_probs_dropout_prob", "hidden_dropout_prob"})
    in.ignore(of_bert, "GPTNeoXForCausalLM");
}

void read_gptj(ConfigReader& in, ModelSpec& model) {
  read_layer_norm_base(in, model);
  model.ffn = in.dimension_or("n_inner", 4 * model.hidden);
  read_plain_activation(in, model, "activation_function", Activation::gelu_new);
  model.hidden_dropout = in.probability_or("resid_pdrop", 0.0);
  model.attention_dropout = in.probability_or("attn_pdrop", 0.0);
  model.tied_embeddings = in.flag_or("tie_word_embeddings", false);
  model.mlp_bias = model.head_bias = true;
  model.block_order = BlockOrder::parallel;
  model.rope_dim = in.dimension_or("rotary_dim", 64);
  for (const char* unused : {"n_positions", "rotary", "scale_attn_weights"}) in.has(unused);
}

void read_phi(ConfigReader& in, ModelSpec& model) {
  read_layer_norm_base(in, model);
  model.kv_heads = in.dimension_or("num_key_value_heads", model.heads);
  in.require_divisor("num_key_value_heads", model.kv_heads, "num_attention_heads", model.heads);
  model.ffn = in.dimension("intermediate_size");
  read_plain_activation(in, model, "hidden_act", Activation::gelu_new);
  model.hidden_dropout = in.probability_or("resid_pdrop", 0.0);
  model.attention_dropout = in.probability_or("attention_dropout", 0.0);
  model.tied_embeddings = in.flag_or("tie_word_embeddings", false);
  all_biases(model);
  model.head_bias = true;
  model.block_order = BlockOrder::parallel;
  read_partial_rotary(in, model, "partial_rotary_factor", 0.5);
}

/// Its logits are multiplied by logit_scale.
void read_cohere(ConfigReader& in, ModelSpec& model) {
  read_llama(in, model);
  model.norm = NormKind::layer_norm_without_bias;
  model.block_order = BlockOrder::parallel;
  model.tied_embeddings = in.flag_or("tie_word_embeddings", true);
  model.logit_scale = true;
  in.has("logit_scale");
  read_norm_of_each_head(in, model, "use_qk_norm");
}

void read_cohere2(ConfigReader& in, ModelSpec& model) {
  read_cohere(in, model);
  const char* key = in.name_in_use("sliding_window_pattern", "_sliding_window_pattern");
  const std::int64_t switches = in.dimension_or("layer_switch", 4);  // the same, of Command A
  const std::int64_t pattern = in.dimension_or(key, switches);
  in.has("_sliding_window_pattern");  // the same, of files that have both
  if (in.has("layer_switch") && pattern != switches)
    in.fail("layer_switch", "differs from " + std::string(key), "give one of them");
  read_window(in, model, in.dimension_or("sliding_window", 4096), pattern);
  leave_full_layers_unturned(model);
  for (const char* unused : {"order_of_interleaved_layers", "position_embedding_type", "rotary_pct",
                             "use_embedding_sharing", "use_gated_activation", "use_parallel_block",
                             "use_parallel_embedding"})
    in.has(unused);
}

void read_starcoder2(ConfigReader& in, ModelSpec& model) {
  read_layer_norm_base(in, model);
  model.kv_heads = in.dimension_or("num_key_value_heads", model.heads);
  in.require_divisor("num_key_value_heads", model.kv_heads, "num_attention_heads", model.heads);
  model.ffn = in.dimension("intermediate_size");
  read_plain_activation(in, model, "hidden_act", Activation::gelu);
  for (const char* within : {"activation_function", "mlp_type", "scale_attention_softmax_in_fp32"})
    in.has(within);
  model.hidden_dropout = in.probability_or("residual_dropout", 0.0);
  if ((in.probability_or("embedding_dropout", 0.0) > 0) != (model.hidden_dropout > 0))
    in.leave_out("embedding_dropout",
                 "and residual_dropout: dropout in one of the two places is not simulated",
                 "set both or none");
  model.attention_dropout = in.probability_or("attention_dropout", 0.0);
  model.tied_embeddings = in.flag_or("tie_word_embeddings", true);
  if (in.flag_or("use_bias", true)) all_biases(model);
  if (in.has("sliding_window")) read_window(in, model, in.dimension("sliding_window"), 0);
}

}  // namespace tessera
