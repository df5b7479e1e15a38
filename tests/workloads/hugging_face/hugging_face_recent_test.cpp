// config.json of models of 2024 to 2026, by their published parameter counts (the totals that
// huggingface.co shows beside the weights; Llama 4 without its vision tower).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "workloads/hugging_face/hugging_face.h"

namespace tessera {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

HuggingFaceModel read(const std::string& model_type, const std::string& fields) {
  return read_hugging_face_config("{\"model_type\": \"" + model_type + "\",\n" + fields + "}",
                                  "config.json");
}

ModelSpec model_of(const std::string& model_type, const std::string& fields) {
  return read(model_type, fields).model;
}

std::string error_of(const std::string& model_type, const std::string& fields) {
  try {
    read(model_type, fields);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(HuggingFaceRecent, DenseModels) {
  EXPECT_EQ(parameter_count(model_of("smollm3", R"("num_hidden_layers": 36, "hidden_size": 2048,
    "num_attention_heads": 16, "num_key_value_heads": 4, "intermediate_size": 11008,
    "vocab_size": 128256, "pretraining_tp": 2, "tie_word_embeddings": true)")),
            3'075'098'624);
  const ModelSpec seed = model_of("seed_oss", R"("num_hidden_layers": 64, "hidden_size": 5120,
    "num_attention_heads": 80, "num_key_value_heads": 8, "head_dim": 128,
    "intermediate_size": 27648, "vocab_size": 155136, "attention_bias": true,
    "attention_out_bias": false, "residual_dropout": 0.1, "tie_word_embeddings": false)");
  EXPECT_EQ(parameter_count(seed), 36'151'104'512);
  EXPECT_EQ(seed.hidden_dropout, 0.1) << "its file says residual_dropout";
  EXPECT_EQ(parameter_count(model_of("ernie4_5", R"("num_hidden_layers": 18, "hidden_size": 1024,
    "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 128,
    "intermediate_size": 3072, "vocab_size": 103424, "use_bias": false)")),
            360'748'032);
  EXPECT_EQ(parameter_count(model_of("glm4", R"("num_hidden_layers": 40, "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128,
    "intermediate_size": 13696, "vocab_size": 151552, "attention_bias": true)")),
            9'400'279'040);
  EXPECT_EQ(parameter_count(model_of("exaone4", R"("num_hidden_layers": 64, "hidden_size": 5120,
    "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128,
    "intermediate_size": 27392, "vocab_size": 102400, "sliding_window": null,
    "sliding_window_pattern": "LLLG")")),
            32'003'216'384);
}

TEST(HuggingFaceRecent, ModelsWithExperts) {
  EXPECT_EQ(parameter_count(model_of("olmoe", R"("num_hidden_layers": 16, "hidden_size": 2048,
    "num_attention_heads": 16, "intermediate_size": 1024, "vocab_size": 50304, "num_experts": 64,
    "num_experts_per_tok": 8, "clip_qkv": null)")),
            6'919'161'856);
  EXPECT_EQ(parameter_count(model_of("deepseek", R"("num_hidden_layers": 28, "hidden_size": 2048,
    "num_attention_heads": 16, "intermediate_size": 10944, "moe_intermediate_size": 1408,
    "vocab_size": 102400, "n_routed_experts": 64, "n_shared_experts": 2,
    "num_experts_per_tok": 6, "first_k_dense_replace": 1)")),
            16'375'728'128);
  EXPECT_EQ(parameter_count(model_of("dots1", R"("num_hidden_layers": 62, "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 10944,
    "moe_intermediate_size": 1408, "vocab_size": 152064, "n_routed_experts": 128,
    "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1, "n_group": 1,
    "topk_group": 1, "scoring_func": "noaux_tc", "sliding_window": null,
    "max_window_layers": 62)")),
            142'774'381'696);
  EXPECT_EQ(parameter_count(model_of("phimoe", R"("num_hidden_layers": 32, "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 6400,
    "vocab_size": 32064, "num_local_experts": 16, "num_experts_per_tok": 2,
    "attention_bias": true, "lm_head_bias": true, "router_jitter_noise": 0.01,
    "input_jitter_noise": 0.01)")),
            41'873'153'344);
  EXPECT_EQ(parameter_count(model_of("ernie4_5_moe", R"("num_hidden_layers": 28,
    "hidden_size": 2560, "num_attention_heads": 20, "num_key_value_heads": 4, "head_dim": 128,
    "intermediate_size": 12288, "moe_intermediate_size": 1536, "vocab_size": 103424,
    "moe_num_experts": 64, "moe_k": 6, "moe_num_shared_experts": 2,
    "moe_layer_start_index": 1, "moe_layer_interval": 1, "moe_capacity": [64, 64, 64],
    "moe_gate": "topk", "use_bias": false, "tie_word_embeddings": true)")),
            21'825'437'888);
  EXPECT_EQ(parameter_count(model_of("hunyuan_v1_moe", R"("num_hidden_layers": 32,
    "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
    "intermediate_size": 3072, "vocab_size": 128167, "num_experts": 64,
    "moe_topk": [8, 8], "moe_intermediate_size": [3072, 3072], "num_shared_expert": [1, 1],
    "use_mixed_mlp_moe": true, "use_qk_norm": true, "tie_word_embeddings": true)")),
            80'393'183'232);
}

std::string llama4(const std::string& experts, const std::string& more) {
  return R"("num_hidden_layers": 48, "hidden_size": 5120, "num_attention_heads": 40,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 8192,
    "intermediate_size_mlp": 16384, "vocab_size": 202048, "num_experts_per_tok": 1,
    "attention_chunk_size": 8192, "no_rope_layers": [], "num_local_experts": )" +
         experts + ", " + more;
}

/// Both published totals (108,641,793,536 and 401,583,781,376) less their vision towers, which are
/// equal: 871,932,416.
TEST(HuggingFaceRecent, Llama4) {
  const ModelSpec scout = model_of("llama4_text", llama4("16", R"("interleave_moe_layer_step": 1,
    "use_qk_norm": true)"));
  EXPECT_EQ(parameter_count(scout), 108'641'793'536 - 871'932'416);
  EXPECT_EQ(scout.attention_pattern, "wwwn");
  EXPECT_EQ(scout.window, 8192);
  EXPECT_TRUE(scout.window_chunks && scout.qk_norm_plain && scout.expert_pattern.empty());
  const ModelSpec maverick = model_of("llama4_text", llama4("128", R"("use_qk_norm": false,
    "interleave_moe_layer_step": 2)"));
  EXPECT_EQ(parameter_count(maverick), 401'583'781'376 - 871'932'416);
  EXPECT_EQ(maverick.expert_pattern, "-E");
  EXPECT_FALSE(maverick.qk_norm);
}

TEST(HuggingFaceRecent, Llama4SaysThatItLeavesOutTheTemperature) {
  const HuggingFaceModel scout = read("llama4_text", llama4("16", R"("use_qk_norm": true,
    "attn_temperature_tuning": 4, "attn_scale": 0.1, "floor_scale": 8192)"));
  EXPECT_THAT(scout.approximations, Contains(HasSubstr("attn_temperature_tuning")));
}

/// Hidden 64; Mamba-2: 8 heads of 16, state 32, 2 groups; attention 4 heads of 16, 2 of keys.
constexpr const char* kNemotron = R"("hidden_size": 64, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 96, "vocab_size": 100,
    "mamba_num_heads": 8, "mamba_head_dim": 16, "ssm_state_size": 32, "n_groups": 2,
    "conv_kernel": 4, "use_conv_bias": true, "mlp_hidden_act": "relu2", )";

TEST(HuggingFaceRecent, HybridsByHand) {
  const ModelSpec model = model_of("nemotron_h", std::string(kNemotron) + R"(
    "num_hidden_layers": 4, "hybrid_override_pattern": "M-M*")");
  const std::int64_t convolved = 8 * 16 + 2 * 2 * 32;
  const std::int64_t mamba =
      64 * (8 * 16 + convolved + 8) + 5 * convolved + 3 * 8 + 8 * 16 + 8 * 16 * 64;
  const std::int64_t attention = 2 * 64 * 64 + 2 * 64 * 32;
  EXPECT_EQ(parameter_count(model),
            2 * 100 * 64 + 64 + 4 * 64 + 2 * mamba + attention + 2 * 64 * 96);
  EXPECT_EQ(model.attention_pattern, "n") << "it has no positions";
  EXPECT_THAT(error_of("nemotron_h", std::string(kNemotron) + R"(
    "num_hidden_layers": 5, "hybrid_override_pattern": "M-M*")"),
              HasSubstr("hybrid_override_pattern is no text of a letter M, *, - or E for each of "
                        "num_hidden_layers = 5"));
}

TEST(HuggingFaceRecent, GraniteHybridsAreTwoLayersOfOneBranchEach) {
  const std::string fields = R"("num_hidden_layers": 2, "hidden_size": 64,
    "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 32,
    "shared_intermediate_size": 48, "vocab_size": 100, "mamba_n_heads": 8, "mamba_d_head": 16,
    "mamba_d_state": 32, "mamba_n_groups": 1, "mamba_d_conv": 4, "mamba_expand": 2,
    "position_embedding_type": "nope", "tie_word_embeddings": true, "residual_multiplier": 0.22,
    "embedding_multiplier": 12, "logits_scaling": 16, "layer_types": ["mamba", "attention"], )";
  const ModelSpec sparse = model_of("granitemoehybrid", fields + R"("num_local_experts": 4,
    "num_experts_per_tok": 2)");
  EXPECT_EQ(sparse.layer_pattern, "ME*E");
  EXPECT_EQ(sparse.layers, 4);
  const std::int64_t convolved = 8 * 16 + 2 * 32;
  const std::int64_t mamba =
      64 * (8 * 16 + convolved + 8) + 5 * convolved + 3 * 8 + 8 * 16 + 8 * 16 * 64;
  const std::int64_t attention = 2 * 64 * 64 + 2 * 64 * 32;
  const std::int64_t experts = 4 * (3 * 64 * 32 + 64) + 3 * 64 * 48;
  EXPECT_EQ(parameter_count(sparse), 100 * 64 + 64 + 4 * 64 + mamba + attention + 2 * experts);
  EXPECT_TRUE(sparse.residual_scale && sparse.embedding_scale && sparse.logit_scale);
  const ModelSpec dense = model_of("granitemoehybrid", fields + R"("num_local_experts": 0,
    "num_experts_per_tok": 0)");
  EXPECT_EQ(dense.layer_pattern, "M-*-");
  EXPECT_EQ(dense.ffn, 48) << "what is called shared is all there is";
  EXPECT_EQ(parameter_count(dense), 100 * 64 + 64 + 4 * 64 + mamba + attention + 2 * 3 * 64 * 48);
}

/// GLM-4.7 Flash: DeepSeek-V3's attention with heads of 256. Its file counts 31,221,488,576: a
/// layer behind the last (21,763,328 + 613,548,096 + a projection and three norms of 8,394,752),
/// and that layer's own embedding and head (634,388,480), are in it as well.
TEST(HuggingFaceRecent, LatentAttentionOfGlm) {
  const ModelSpec model = model_of("glm4_moe_lite", R"("num_hidden_layers": 47,
    "hidden_size": 2048, "num_attention_heads": 20, "num_key_value_heads": 20,
    "intermediate_size": 10240, "moe_intermediate_size": 1536, "vocab_size": 154880,
    "q_lora_rank": 768, "kv_lora_rank": 512, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64,
    "v_head_dim": 256, "n_routed_experts": 64, "n_shared_experts": 1, "num_experts_per_tok": 4,
    "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1, "topk_method": "noaux_tc",
    "norm_topk_prob": true, "routed_scaling_factor": 1.8, "num_nextn_predict_layers": 1,
    "partial_rotary_factor": 1.0, "attention_bias": false, "tie_word_embeddings": false)");
  EXPECT_EQ(parameter_count(model),
            31'221'488'576 - (21'763'328 + 613'548'096 + 8'394'752) - 634'388'480);
  EXPECT_EQ(model.mtp_layers, 1);
  EXPECT_TRUE(model.router_sigmoid && model.router_bias);
}

std::string ling_mini(const std::string& more = "") {
  return R"("num_hidden_layers": 20, "hidden_size": 2048, "num_attention_heads": 16,
    "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 5120,
    "moe_intermediate_size": 512, "vocab_size": 157184, "num_experts": 256,
    "num_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 1, "n_group": 8,
    "topk_group": 4, "partial_rotary_factor": 0.5, "score_function": "sigmoid",
    "moe_router_enable_expert_bias": true, "router_dtype": "fp32", "use_qk_norm": true,
    "use_bias": false, "use_qkv_bias": false, "use_rmsnorm": true, "embedding_dropout": 0.0,
    "output_dropout": 0.0, "num_nextn_predict_layers": 0, "tie_word_embeddings": false)" +
         more;
}

TEST(HuggingFaceRecent, GroupedQueriesAheadOfLingsExperts) {
  const ModelSpec model = model_of("bailing_moe", ling_mini());
  EXPECT_EQ(parameter_count(model), 16'255'643'392);
  EXPECT_EQ(model.router_groups, 8);
  EXPECT_EQ(model.rope_dim, 64);
  EXPECT_TRUE(model.router_sigmoid && model.router_bias && model.qk_norm);
  EXPECT_FALSE(model.qkv_bias || model.output_bias);
}

TEST(HuggingFaceRecent, WhatLingsFileSaysAndNoFamilyHasIsRefused) {
  EXPECT_THAT(error_of("bailing_moe_v2", ling_mini(R"(, "output_dropout": 0.1)")),
              HasSubstr("output_dropout = 0.1 is a dropout that is not simulated"));
  EXPECT_THAT(error_of("bailing_moe", ling_mini(R"(, "n_group": 7)")),
              HasSubstr("n_group = 7 does not divide num_experts = 256"));
  EXPECT_THAT(error_of("bailing_moe", ling_mini(R"(, "topk_group": 9)")),
              HasSubstr("topk_group = 9 exceeds n_group; check both"));
}

/// Granite 4.0 Micro has the keys of Mamba-2 and no such layer.
TEST(HuggingFaceRecent, AGraniteOfAttentionAloneIsNoHybrid) {
  std::string layers;
  for (int i = 0; i < 40; ++i) layers += i > 0 ? ", \"attention\"" : "\"attention\"";
  const HuggingFaceModel micro = read("granitemoehybrid", R"("num_hidden_layers": 40,
    "hidden_size": 2560, "num_attention_heads": 40, "num_key_value_heads": 8,
    "intermediate_size": 8192, "shared_intermediate_size": 8192, "vocab_size": 100352,
    "num_local_experts": 0, "num_experts_per_tok": 0, "attention_multiplier": 0.015625,
    "embedding_multiplier": 12, "residual_multiplier": 0.22, "logits_scaling": 10,
    "mamba_n_heads": 80, "mamba_d_state": 256, "mamba_d_conv": 4, "mamba_conv_bias": true,
    "position_embedding_type": "rope", "tie_word_embeddings": true, "layer_types": [)" +
                                                              layers + "]");
  EXPECT_EQ(parameter_count(micro.model), 3'402'836'480);
  EXPECT_EQ(micro.model.layer_pattern, "");
  EXPECT_EQ(micro.model.layers, 40);
  EXPECT_TRUE(micro.approximations.empty());
}

/// Left from files of other models: transformers' code for these reads none of them.
TEST(HuggingFaceRecent, KeysThatTheCodeDoesNotReadAreIgnoredByName) {
  const std::string sizes = R"("num_hidden_layers": 2, "hidden_size": 64,
    "num_attention_heads": 4, "head_dim": 16, "intermediate_size": 128, "vocab_size": 100, )";
  EXPECT_THAT(
      read("hunyuan_v1_moe", sizes + R"("num_experts": 4, "moe_topk": [2, 2],
    "enable_lm_head_fp32": true)")
          .harmless,
      Contains(HasSubstr("enable_lm_head_fp32 (HunYuanMoEV1ForCausalLM does not read it)")));
  EXPECT_THAT(read("minimax_m2", sizes + R"("num_local_experts": 4, "num_experts_per_tok": 2,
    "mlp_intermediate_size": 512)")
                  .harmless,
              Contains(HasSubstr("mlp_intermediate_size (MiniMaxM2ForCausalLM does not")));
}

/// Mistral Large 3 is of model_type deepseek_v3, and its queries grow with the position.
TEST(HuggingFaceRecent, WhatPositionsDoBesideTurningIsSaidOfAnyModel) {
  const std::string sizes = R"("num_hidden_layers": 2, "hidden_size": 64,
    "num_attention_heads": 4, "head_dim": 16, "intermediate_size": 128, "vocab_size": 100, )";
  for (const char* model_type : {"qwen3", "ministral3"})
    EXPECT_THAT(read(model_type, sizes + R"("rope_parameters": {"rope_type": "yarn",
    "llama_4_scaling_beta": 0.1})")
                    .approximations,
                Contains(HasSubstr("rope_parameters.llama_4_scaling_beta: a product over")))
        << model_type;
  EXPECT_THAT(error_of("qwen3", sizes + R"("rope_parameters": {
    "full_attention": {"rope_type": "default", "partial_rotary_factor": 0.25},
    "sliding_attention": {"rope_type": "default"}})"),
              HasSubstr("rope_parameters rotates a part of each head"));
}

TEST(HuggingFaceRecent, ModelsWithoutAFamilySayWhatIsMissing) {
  EXPECT_THAT(error_of("gemma3n_text", "\"laurel_rank\": 64"), HasSubstr("AltUp, LAuReL"));
}

TEST(HuggingFaceRecent, T5) {
  const std::string base = R"("d_model": 768, "d_kv": 64, "num_heads": 12, "num_layers": 12,
    "vocab_size": 32128, "n_positions": 512, "is_encoder_decoder": true, )";
  EXPECT_EQ(parameter_count(model_of("t5", base + "\"d_ff\": 3072")), 222'903'552);
  const std::string gated = R"("feed_forward_proj": "gated-gelu", "tie_word_embeddings": false)";
  EXPECT_EQ(parameter_count(model_of("t5", base + "\"d_ff\": 2048, " + gated)), 247'577'856)
      << "Flan-T5 base";
  EXPECT_EQ(parameter_count(model_of("mt5", R"("d_model": 512, "d_kv": 64, "num_heads": 6,
    "num_layers": 8, "vocab_size": 250112, "d_ff": 1024, )" +
                                                gated)),
            300'176'768);
  EXPECT_THAT(error_of("t5", base + R"("d_ff": 3072, "feed_forward_proj": "gated-silu")"),
              HasSubstr("feed_forward_proj is gated-silu; known: relu, gated-gelu"));
  EXPECT_THAT(error_of("t5", base + R"("d_ff": 3072, "relative_attention_num_buckets": 64)"),
              HasSubstr("relative_attention_num_buckets is not 32"));
}

TEST(HuggingFaceRecent, StoredFormatsAreSaidAndWeightsInFewBitsRefused) {
  const std::string fields = R"("num_hidden_layers": 2, "hidden_size": 64,
    "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100,
    "quantization_config": )";
  EXPECT_THAT(read("llama", fields + R"({"quant_method": "fp8"})").approximations,
              Contains(HasSubstr("stored as fp8 are trained in the step's precision")));
  EXPECT_THAT(read("llama", fields + R"({"quant_method": "compressed-tensors"})").approximations,
              Contains(HasSubstr("stored as compressed-tensors")))
      << "Kimi K2 Thinking";
  EXPECT_THAT(error_of("llama", fields + R"({"quant_method": "gptq", "bits": 4})"),
              HasSubstr("config.json:4: quantization_config = an object says that weights are "
                        "quantized"));
}

TEST(HuggingFaceRecent, WhatChangesTheStepIsNotDropped) {
  const std::string gemma = R"("num_hidden_layers": 2, "hidden_size": 64,
    "num_attention_heads": 4, "head_dim": 16, "intermediate_size": 128, "vocab_size": 100, )";
  EXPECT_THAT(error_of("gemma3_text", gemma + R"("use_bidirectional_attention": true)"),
              HasSubstr("config.json:3: use_bidirectional_attention = true lets tokens see those "
                        "behind them, which is not simulated"));
  EXPECT_THAT(error_of("phi3", gemma + R"("embd_pdrop": 0.1)"),
              HasSubstr("embd_pdrop = 0.1 is a dropout that is not simulated"));
  EXPECT_THAT(error_of("llama", gemma + R"("resid_pdrop": 0.1)"),
              HasSubstr("resid_pdrop = 0.1 is a dropout that is not simulated"));
  EXPECT_THAT(error_of("llama", gemma + R"("use_rotary_pos_emb": false)"),
              HasSubstr("use_rotary_pos_emb = false takes positions away"));
}

}  // namespace
}  // namespace tessera
