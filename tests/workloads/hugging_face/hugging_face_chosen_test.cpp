// config.json of models whose indexer chooses tokens; their sizes as recalled.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/hugging_face/read_config.h"
#include "workloads/parameter_count.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

std::string deepseek_v32(const std::string& more = "") {
  return R"({"architectures": ["DeepseekV32ForCausalLM"], "model_type": "deepseek_v32",
    "attention_bias": false, "attention_dropout": 0.0, "ep_size": 1, "first_k_dense_replace": 3,
    "hidden_act": "silu", "hidden_size": 7168, "index_head_dim": 128, "index_n_heads": 64,
    "index_topk": 2048, "initializer_range": 0.02, "intermediate_size": 18432,
    "kv_lora_rank": 512, "max_position_embeddings": 163840, "moe_intermediate_size": 2048,
    "moe_layer_freq": 1, "n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1,
    "norm_topk_prob": true, "num_attention_heads": 128, "num_experts_per_tok": 8,
    "num_hidden_layers": 61, "num_key_value_heads": 128, "num_nextn_predict_layers": 1,
    "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06,
    "rope_theta": 10000, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid",
    "tie_word_embeddings": false, "topk_group": 4, "topk_method": "noaux_tc",
    "torch_dtype": "bfloat16", "use_cache": true, "v_head_dim": 128, "vocab_size": 129280)" +
         more + "}";
}

TEST(HuggingFaceChosen, DeepSeekV32IsV3WithAnIndexerInEveryLayer) {
  const ModelSpec model = test::read_config(deepseek_v32()).model;
  EXPECT_EQ(model.index_heads, 64);
  EXPECT_EQ(model.index_head_dim, 128);
  EXPECT_EQ(model.index_topk, 2048);
  EXPECT_TRUE(model.index_loss);
  EXPECT_EQ(model.mtp_layers, 1);
  constexpr std::int64_t kV3 = 671'026'419'200;  // hugging_face_siblings_test.cpp
  EXPECT_EQ(parameter_count(model), kV3 + 61 * 13'959'424);
}

/// 744 billion, 40 billion active, as published; the file's sizes are recalled.
TEST(HuggingFaceChosen, Glm5HasThePublishedSize) {
  const ModelSpec model = test::read_config(R"({"architectures": ["GlmMoeDsaForCausalLM"],
    "model_type": "glm_moe_dsa", "attention_bias": false, "attention_dropout": 0.0,
    "first_k_dense_replace": 3, "hidden_act": "silu", "hidden_size": 6144, "index_head_dim": 128,
    "index_n_heads": 32, "index_topk": 2048, "indexer_rope_interleave": true,
    "intermediate_size": 12288, "kv_lora_rank": 512, "max_position_embeddings": 202752,
    "moe_intermediate_size": 2048, "n_group": 1, "n_routed_experts": 256, "n_shared_experts": 1,
    "num_attention_heads": 64, "num_experts_per_tok": 8, "num_hidden_layers": 78,
    "num_key_value_heads": 64, "num_nextn_predict_layers": 1, "q_lora_rank": 2048,
    "qk_head_dim": 256, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64,
    "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "tie_word_embeddings": false,
    "topk_group": 1, "topk_method": "noaux_tc", "v_head_dim": 256, "vocab_size": 154880})")
                              .model;
  const std::int64_t indexer = 2048 * 32 * 128 + 6144 * 128 + 2 * 128 + 6144 * 32;
  const std::int64_t attention = 6144 * 2048 + 2048 + 2048 * 64 * 256 + 6144 * 576 + 512 +
                                 512 * 64 * (192 + 256) + 64 * 256 * 6144 + indexer;
  const std::int64_t expert = 3 * 6144 * 2048, dense = 3 * 6144 * 12288;
  const std::int64_t sparse = 257 * expert + 256 * 6144 + 256;
  EXPECT_EQ(parameter_count(model),
            78 * (attention + 2 * 6144) + 3 * dense + 75 * sparse + 6144 + 2 * 154880L * 6144);
  EXPECT_NEAR(static_cast<double>(parameter_count(model)), 744e9, 2e9);
  EXPECT_NEAR(static_cast<double>(parameter_counts(model).active), 40e9, 2e9);
}

TEST(HuggingFaceChosen, IndexersThatLieAreRefused) {
  std::string lie = deepseek_v32();
  lie.replace(lie.find("\"index_topk\": 2048"), 18, "\"index_topk\": 0   ");
  EXPECT_THAT(test::config_error(lie), HasSubstr("config.json:4: index_topk"));
  lie = deepseek_v32();
  lie.replace(lie.find("\"index_head_dim\": 128"), 21, "\"index_head_dim\": 32 ");
  EXPECT_THAT(test::config_error(lie), HasSubstr("index_head_dim is less than qk_rope_head_dim"));
}

}  // namespace
}  // namespace tessera
