#pragma once

#include <cstdint>

#include "workloads/hugging_face/config_reader.h"

namespace tessera {

constexpr std::int64_t kMostHuggingFaceLayers = 10'000;

/// A head_dim of its own needs no divisor.
void set_heads(ConfigReader& in, ModelSpec& model, const char* heads, const char* hidden);

/// Layers (under the key `layers`), widths (the feed-forward's under `ffn`), heads and vocabulary,
/// as most of these files write them.
void read_llama_sizes(ConfigReader& in, ModelSpec& model, const char* layers,
                      const char* ffn = "intermediate_size");

// Readers of one model_type each, named as transformers names its code: models/NAME/.

void read_llama(ConfigReader& in, ModelSpec& model);
/// The same with the feed-forward's size under another key.
void read_llama_of_ffn(ConfigReader& in, ModelSpec& model, const char* ffn);
/// Of siblings whose code has no biases, whatever the file says; `whose` code that is.
void read_llama_without_biases(ConfigReader& in, ModelSpec& model, const std::string& whose);
void read_llama_itself(ConfigReader& in, ModelSpec& model);
void read_mistral(ConfigReader& in, ModelSpec& model);
void read_qwen2(ConfigReader& in, ModelSpec& model);
void read_qwen3(ConfigReader& in, ModelSpec& model);

// hugging_face_dense.cpp
void read_gemma(ConfigReader& in, ModelSpec& model);
void read_gemma2(ConfigReader& in, ModelSpec& model);
void read_gemma3(ConfigReader& in, ModelSpec& model);
void read_phi3(ConfigReader& in, ModelSpec& model);
void read_olmo2(ConfigReader& in, ModelSpec& model);
void read_olmo3(ConfigReader& in, ModelSpec& model);
void read_internlm2(ConfigReader& in, ModelSpec& model);
void read_granite(ConfigReader& in, ModelSpec& model);
void read_minicpm(ConfigReader& in, ModelSpec& model);
/// Whether it ties, and what it multiplies embeddings, branches and logits by.
void read_scales_of_minicpm(ConfigReader& in, ModelSpec& model);
void read_exaone(ConfigReader& in, ModelSpec& model);
void read_baichuan(ConfigReader& in, ModelSpec& model);
// hugging_face_beside_weights.cpp
void read_chatglm(ConfigReader& in, ModelSpec& model);
void read_qwen(ConfigReader& in, ModelSpec& model);
void read_internlm3(ConfigReader& in, ModelSpec& model);
void read_minicpm3(ConfigReader& in, ModelSpec& model);
void read_dbrx(ConfigReader& in, ModelSpec& model);
// hugging_face_recent.cpp
void read_smollm3(ConfigReader& in, ModelSpec& model);
void read_seed_oss(ConfigReader& in, ModelSpec& model);
void read_ernie4_5(ConfigReader& in, ModelSpec& model);
void read_hunyuan_dense(ConfigReader& in, ModelSpec& model);
void read_glm(ConfigReader& in, ModelSpec& model);
void read_glm4(ConfigReader& in, ModelSpec& model);
void read_exaone4(ConfigReader& in, ModelSpec& model);
void read_arcee(ConfigReader& in, ModelSpec& model);
void read_nemotron(ConfigReader& in, ModelSpec& model);
void read_ministral3(ConfigReader& in, ModelSpec& model);
void read_apertus(ConfigReader& in, ModelSpec& model);
void read_mimo(ConfigReader& in, ModelSpec& model);
// hugging_face_layer_norm.cpp
void read_stablelm(ConfigReader& in, ModelSpec& model);
void read_falcon(ConfigReader& in, ModelSpec& model);
void read_gpt_neox(ConfigReader& in, ModelSpec& model);
void read_gptj(ConfigReader& in, ModelSpec& model);
void read_phi(ConfigReader& in, ModelSpec& model);
void read_cohere(ConfigReader& in, ModelSpec& model);
void read_cohere2(ConfigReader& in, ModelSpec& model);
void read_starcoder2(ConfigReader& in, ModelSpec& model);
// hugging_face_sparse.cpp
void read_deepseek_v2(ConfigReader& in, ModelSpec& model);
void read_deepseek_v3(ConfigReader& in, ModelSpec& model);
void read_deepseek_v32(ConfigReader& in, ModelSpec& model);
void read_glm4_moe(ConfigReader& in, ModelSpec& model);
void read_gpt_oss(ConfigReader& in, ModelSpec& model);
void read_qwen2_moe(ConfigReader& in, ModelSpec& model);
/// first_k_dense_replace.
void set_dense_layers(ConfigReader& in, ModelSpec& model);
/// Groups of the `experts` by the key `groups`, and topk_group.
void set_groups(ConfigReader& in, ModelSpec& model, const char* experts,
                const char* groups = "n_group");
/// DeepSeek's latent attention between dense feed-forwards. `value_dim`: of a file that gives no
/// v_head_dim; 0: it has to.
void read_latent_model(ConfigReader& in, ModelSpec& model, std::int64_t value_dim = 0);
/// n_routed_experts, shared ones of the same size, dense layers ahead, groups.
void read_deepseek_experts(ConfigReader& in, ModelSpec& model);
/// num_nextn_predict_layers.
void read_further_layers(ConfigReader& in, ModelSpec& model);
/// The same by another key.
void set_further_layers(ConfigReader& in, ModelSpec& model, const char* key);
/// A count of 1 and more, or none: 0, null and nothing.
std::int64_t count_or_none(ConfigReader& in, const char* key);
// hugging_face_experts.cpp
void read_llama4(ConfigReader& in, ModelSpec& model);
void read_bailing_moe(ConfigReader& in, ModelSpec& model);
void read_deepseek_moe(ConfigReader& in, ModelSpec& model);
void read_dots1(ConfigReader& in, ModelSpec& model);
void read_olmoe(ConfigReader& in, ModelSpec& model);
void read_minimax_m2(ConfigReader& in, ModelSpec& model);
void read_phimoe(ConfigReader& in, ModelSpec& model);
/// With experts, shared ones, both or neither.
void read_granite_moe(ConfigReader& in, ModelSpec& model);
void read_ernie4_5_moe(ConfigReader& in, ModelSpec& model);
void read_hunyuan_moe(ConfigReader& in, ModelSpec& model);
/// What Hunyuan's files say that `whose` code, of transformers, does not read.
void ignore_of_hunyuan(ConfigReader& in, const char* whose);
/// Number of experts and how many a token meets, by these keys.
void set_experts(ConfigReader& in, ModelSpec& model, const char* experts, const char* per_token);
/// Layers of experts by `letters`, E or - each; where none is one, refused by the key that gives
/// them.
void set_expert_layers(ConfigReader& in, ModelSpec& model, const std::string& letters,
                       const char* key);
/// Which layers have experts by decoder_sparse_step and mlp_only_layers.
void read_sparse_step(ConfigReader& in, ModelSpec& model);
/// Refuses more experts per token than there are.
void check_experts_per_token(ConfigReader& in, const ModelSpec& model, const char* experts,
                             const char* per_token);
// hugging_face_hybrid.cpp
void read_nemotron_h(ConfigReader& in, ModelSpec& model);
void read_mamba2(ConfigReader& in, ModelSpec& model);
void read_granite_hybrid(ConfigReader& in, ModelSpec& model);
void read_bamba(ConfigReader& in, ModelSpec& model);
void read_falcon_h1(ConfigReader& in, ModelSpec& model);
void read_jamba(ConfigReader& in, ModelSpec& model);
// hugging_face_delta.cpp
void read_qwen3_next(ConfigReader& in, ModelSpec& model);
void read_qwen3_5(ConfigReader& in, ModelSpec& model);
void read_qwen3_5_moe(ConfigReader& in, ModelSpec& model);
void read_kimi_linear(ConfigReader& in, ModelSpec& model);
// hugging_face_heads.cpp
void read_afmoe(ConfigReader& in, ModelSpec& model);
void read_mimo_v2_flash(ConfigReader& in, ModelSpec& model);
void read_step3(ConfigReader& in, ModelSpec& model);
// hugging_face_convolution.cpp
void read_lfm2(ConfigReader& in, ModelSpec& model);
void read_lfm2_moe(ConfigReader& in, ModelSpec& model);
// hugging_face_diffusion.cpp
void read_dit(ConfigReader& in, ModelSpec& model);
// hugging_face_encoder_decoder.cpp
void read_switch_transformer(ConfigReader& in, ModelSpec& model);
void read_t5(ConfigReader& in, ModelSpec& model);

// hugging_face_windows.cpp
/// Windows of layers as `layer_types` lists them, or every `pattern`-th without one (0: all have
/// one). Sets nothing where no layer has a window.
void read_window(ConfigReader& in, ModelSpec& model, std::int64_t window, std::int64_t pattern);
/// The same by the keys that most files have: sliding_window, max_window_layers (from there on),
/// use_sliding_window; `by_default`: whether a file without that key means its window. Where it
/// does not, layers from the 28th on have one unless the file says otherwise.
void read_usual_window(ConfigReader& in, ModelSpec& model, bool by_default);
/// Where there are windows: layers without one have no positions either.
void leave_full_layers_unturned(ModelSpec& model);
/// Behind a window's reader: layers without positions, as no_rope_layers lists them, else every
/// `every`-th (0: none).
void read_positions(ConfigReader& in, ModelSpec& model, std::int64_t every);

/// Numbers of a head that `factor` of it turns, by partial_rotary_factor or another key.
void read_partial_rotary(ConfigReader& in, ModelSpec& model, const char* key, double usual);

}  // namespace tessera
