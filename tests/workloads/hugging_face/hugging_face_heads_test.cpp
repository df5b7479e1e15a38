// config.json of models whose heads and gates are of their own make: Trinity, MiMo-V2-Flash,
// Step-3. Sizes are their files' (recalled), parameters counted by hand.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/hugging_face/read_config.h"
#include "workloads/hugging_face/hugging_face.h"

namespace tessera {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

/// `text` with what is behind `key` changed; the key stands in it once.
std::string changed(std::string text, const std::string& from, const std::string& to) {
  const auto place = text.find(from);
  if (place == std::string::npos) throw std::runtime_error("no " + from);
  return text.replace(place, from.size(), to);
}

std::string trinity_mini(const std::string& more = "") {
  return R"({"model_type": "afmoe", "architectures": ["AfmoeForCausalLM"],
    "num_hidden_layers": 32, "hidden_size": 2048, "num_attention_heads": 32,
    "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144, "vocab_size": 200192,
    "moe_intermediate_size": 1024, "num_experts": 128, "num_experts_per_tok": 8,
    "num_shared_experts": 1, "num_dense_layers": 2, "n_group": 1, "topk_group": 1,
    "num_expert_groups": 1, "num_limited_groups": 1, "sliding_window": 2048,
    "global_attn_every_n_layers": 4, "mup_enabled": true, "score_func": "sigmoid",
    "route_norm": true, "route_scale": 2.826, "load_balance_coeff": 0.001, "use_grouped_mm": true,
    "rope_theta": 10000, "tie_word_embeddings": false)" +
         more + "}";
}

TEST(HuggingFaceHeads, TrinityMiniByHand) {
  const ModelSpec model = test::read_config(trinity_mini()).model;
  const std::int64_t attention = 3 * 2048 * 4096 + 2 * 2048 * 512 + 2 * 128;  // with the gate
  const std::int64_t sparse = 129 * 3 * 2048 * 1024 + 128 * 2048 + 128;
  const std::int64_t dense = 3 * 2048 * 6144;
  EXPECT_EQ(parameter_count(model),
            2 * 200192 * 2048 + 2048 + 32 * (attention + 4 * 2048) + 30 * sparse + 2 * dense);
  EXPECT_EQ(parameter_count(model), 26'123'974'400) << "26B";
  EXPECT_EQ(model.attention_pattern, "wwwn");
  EXPECT_EQ(model.window, 2048);
  EXPECT_EQ(model.dense_layers, 2);
  EXPECT_EQ(model.norm_placement, NormPlacement::both);
  EXPECT_TRUE(model.attention_gate && model.qk_norm && model.embedding_scale);
  EXPECT_TRUE(model.router_sigmoid && model.router_bias);
}

TEST(HuggingFaceHeads, TrinityThatLiesIsRefused) {
  EXPECT_THAT(test::config_error(
                  changed(trinity_mini(), "\"num_dense_layers\": 2", "\"num_dense_layers\": 32")),
              HasSubstr("config.json:5: num_dense_layers leaves no layer experts"));
  EXPECT_THAT(
      test::config_error(changed(trinity_mini(), "\"num_experts_per_tok\": 8", "\"top\": false")),
      HasSubstr("num_experts_per_tok is missing"));
  EXPECT_THAT(test::config_error(trinity_mini(R"(, "layer_types": ["full_attention"])")),
              HasSubstr("layer_types has 1 entries for 32 layers"));
  EXPECT_THAT(test::config_error(trinity_mini(R"(, "gate_rank": 8)")),
              HasSubstr("gate_rank = 8 is not known"));
}

std::string mimo(const std::string& more = "") {
  std::string windows = "0", experts = "0";
  for (int layer = 1; layer < 48; ++layer) {
    windows += layer == 5 || layer % 6 == 5 ? ", 0" : ", 1";
    experts += ", 1";
  }
  return R"({"model_type": "mimo_v2_flash", "architectures": ["MiMoV2FlashForCausalLM"],
    "num_hidden_layers": 48, "hidden_size": 4096, "num_attention_heads": 64,
    "num_key_value_heads": 4, "head_dim": 192, "v_head_dim": 128, "intermediate_size": 16384,
    "swa_num_attention_heads": 64, "swa_num_key_value_heads": 8, "swa_head_dim": 192,
    "swa_v_head_dim": 128, "sliding_window": 128, "sliding_window_size": 128,
    "attention_chunk_size": 128, "add_full_attention_sink_bias": false,
    "add_swa_attention_sink_bias": true, "attention_value_scale": 0.707,
    "attention_bias": false, "partial_rotary_factor": 0.334, "rope_theta": 5000000,
    "swa_rope_theta": 10000, "vocab_size": 152576, "moe_intermediate_size": 2048,
    "n_routed_experts": 256, "n_shared_experts": null, "num_experts_per_tok": 8, "n_group": 1,
    "topk_group": 1, "topk_method": "noaux_tc", "scoring_func": "sigmoid",
    "norm_topk_prob": true, "routed_scaling_factor": null, "layernorm_epsilon": 1e-05,
    "tie_word_embeddings": false, "hybrid_layer_pattern": [)" +
         windows + "],\n\"moe_layer_freq\": [" + experts + "]" + more + "}";
}

TEST(HuggingFaceHeads, MimoV2FlashByHand) {
  const HuggingFaceModel read_model = test::read_config(mimo());
  const ModelSpec& model = read_model.model;
  const std::int64_t queries = 4096 * 64 * 192, output = 64 * 128 * 4096;
  const std::int64_t full = queries + 4096 * 4 * (192 + 128) + output;
  const std::int64_t window = queries + 4096 * 8 * (192 + 128) + output + 64;  // sinks
  const std::int64_t sparse = 256 * 3LL * 4096 * 2048 + 256 * 4096 + 256;
  EXPECT_EQ(parameter_count(model), 2 * 152576 * 4096 + 4096 + 48 * 2 * 4096 + 9 * full +
                                        39 * window + 47 * sparse + 3 * 4096 * 16384);
  EXPECT_NEAR(static_cast<double>(parameter_count(model)), 309e9, 0.5e9) << "its card";
  EXPECT_EQ(model.window_kv_heads, 8);
  EXPECT_TRUE(model.window_sinks);
  EXPECT_FALSE(model.attention_sinks);
  EXPECT_EQ(model.rope_dim, 64);
  EXPECT_EQ(model.dense_layers, 1);
  EXPECT_THAT(read_model.approximations, Contains(HasSubstr("attention_value_scale")));
}

TEST(HuggingFaceHeads, MimoV2FlashThatLiesIsRefused) {
  EXPECT_THAT(test::config_error(changed(mimo(), "\"swa_head_dim\": 192", "\"swa_head_dim\": 128")),
              HasSubstr("config.json:4: swa_head_dim differs from head_dim = 192"));
  EXPECT_THAT(test::config_error(changed(mimo(), "\"swa_num_key_value_heads\": 8",
                                         "\"swa_num_key_value_heads\": 7")),
              HasSubstr("swa_num_key_value_heads = 7 does not divide num_attention_heads = 64"));
  EXPECT_THAT(test::config_error(changed(mimo(), "[0, 1,", "[0, 2,")),
              HasSubstr("hybrid_layer_pattern is no list of 0 or 1 for each of 48 layers"));
  EXPECT_THAT(
      test::config_error(changed(mimo(), "\"moe_layer_freq\": [0, ", "\"moe_layer_freq\": [")),
      HasSubstr("config.json:14: moe_layer_freq is no list of 0 or 1"));
  EXPECT_THAT(test::config_error(changed(mimo(),
                                         "\"add_full_attention_sink_bias\": false,\n"
                                         "    \"add_swa_attention_sink_bias\": true",
                                         "\"add_full_attention_sink_bias\": true")),
              HasSubstr("add_full_attention_sink_bias is true without"));
  EXPECT_THAT(test::config_error(mimo(R"(, "num_nextn_predict_layers": 3)")),
              HasSubstr("num_nextn_predict_layers = 3 predicts more than the next token"));
}

std::string step3(const std::string& layers) {
  return R"({"model_type": "step3_vl", "vision_config": {"hidden_size": 1792},
    "image_token_id": 128001, "text_config": {"architectures": ["Step3TextForCausalLM"],
    "num_hidden_layers": 61, "hidden_size": 7168, "num_attention_heads": 64, "head_dim": 256,
    "num_attention_groups": 1, "share_q_dim": 2048, "intermediate_size": 18432,
    "vocab_size": 128815, "moe_intermediate_size": 5120, "moe_num_experts": 48, "moe_top_k": 3,
    "share_expert_dim": 5120, "norm_expert_weight": false, "max_seq_len": 65536,
    "rope_theta": 500000, "rope_scaling": null, "moe_layers_enum": ")" +
         layers + "\"}}";
}

std::string from_to(int first, int last) {
  std::string text = std::to_string(first);
  for (int layer = first + 1; layer <= last; ++layer) text += "," + std::to_string(layer);
  return text;
}

TEST(HuggingFaceHeads, Step3ByHand) {
  const HuggingFaceModel read_model = test::read_config(step3(from_to(4, 59)));
  const ModelSpec& model = read_model.model;
  const std::int64_t attention =
      7168 * 2048 + 2048 + 2048 * 64 * 256 + 2 * 7168 * 256 + 64 * 256 * 7168;
  const std::int64_t sparse = 49 * 3LL * 7168 * 5120 + 48 * 7168;
  const std::int64_t dense = 3 * 7168 * 18432;
  EXPECT_EQ(parameter_count(model),
            2 * 128815 * 7168 + 7168 + 61 * (attention + 2 * 7168) + 56 * sparse + 5 * dense);
  EXPECT_NEAR(static_cast<double>(parameter_count(model)), 316e9, 0.5e9) << "its report";
  EXPECT_EQ(model.kv_heads, 1);
  EXPECT_EQ(model.q_rank, 2048);
  EXPECT_TRUE(has_experts(model, 4) && has_experts(model, 59));
  EXPECT_FALSE(has_experts(model, 3) || has_experts(model, 60));
  EXPECT_EQ(read_model.longest, 65536);
  EXPECT_THAT(read_model.approximations, Contains(HasSubstr("vision tower not simulated")));
}

TEST(HuggingFaceHeads, LayersThatStep3DoesNotHaveAreRefused) {
  EXPECT_THAT(test::config_error(step3("4,61")),
              HasSubstr("config.json:7: text_config.moe_layers_enum has \"61\"; name layers from 0 "
                        "to 60 between commas"));
  EXPECT_THAT(test::config_error(step3("4-59")), HasSubstr("moe_layers_enum has \"4-59\""));
}

}  // namespace
}  // namespace tessera
