// config.json of Qwen 3.5 (gated delta nets), Kimi Linear (Kimi delta attention) and Jamba
// (Mamba-1). Sizes are their files' (recalled), parameters counted by hand.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/hugging_face/read_config.h"
#include "workloads/hugging_face/hugging_face.h"
#include "workloads/parameter_count.h"

namespace tessera {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

/// The language model's part of Qwen 3.5's files, within a vision-language model's.
std::string qwen3_5(const std::string& type, const std::string& sizes,
                    const std::string& share = "0.25") {
  return R"({"model_type": ")" + type + R"(", "architectures": ["X"], "image_token_id": 248056,
    "vision_config": {"depth": 27}, "tie_word_embeddings": false, "text_config": {
    "model_type": ")" +
         type + R"(_text", "head_dim": 256, "vocab_size": 248320,
    "full_attention_interval": 4, "linear_num_key_heads": 16, "linear_key_head_dim": 128,
    "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "attn_output_gate": true,
    "attention_bias": false, "mamba_ssm_dtype": "float32", "mlp_only_layers": [],
    "mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": false, "hidden_act": "silu",
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000000,
      "mrope_interleaved": true, "mrope_section": [11, 11, 10],
      "partial_rotary_factor": )" +
         share + "},\n" + sizes + "}}";
}

constexpr const char* kDense27B = R"("num_hidden_layers": 64, "hidden_size": 5120,
    "num_attention_heads": 24, "num_key_value_heads": 4, "intermediate_size": 17408,
    "linear_num_value_heads": 48)";

TEST(HuggingFaceStates, ReadsQwen35WithDenseFeedForwards) {
  const HuggingFaceModel read_model = test::read_config(qwen3_5("qwen3_5", kDense27B));
  const ModelSpec& model = read_model.model;
  const std::int64_t values = 48 * 128, convolved = 2 * 16 * 128 + values;
  const std::int64_t delta =
      5120 * (convolved + values + 2 * 48) + 4 * convolved + 2 * 48 + 128 + values * 5120;
  const std::int64_t attention = 5120 * (2 * 24 + 2 * 4) * 256 + 2 * 256 + 24 * 256 * 5120;
  EXPECT_EQ(parameter_count(model), 2 * 248320LL * 5120 + 5120 + 48 * delta + 16 * attention +
                                        64LL * (3 * 5120 * 17408 + 2 * 5120));
  EXPECT_NEAR(static_cast<double>(parameter_count(model)), 27e9, 0.5e9) << "its name";
  EXPECT_EQ(model.layer_pattern.substr(0, 8), "G-G-G-*-");
  EXPECT_EQ(model.layers, 128);
  EXPECT_EQ(model.rope_dim, 64) << "a share within rope_parameters";
  EXPECT_TRUE(model.attention_gate && model.qk_norm);
  EXPECT_EQ(model.experts, 0);
  EXPECT_THAT(read_model.approximations, Contains(HasSubstr("mtp_num_hidden_layers")));
}

TEST(HuggingFaceStates, ReadsQwen35WithExperts) {
  const ModelSpec model =
      test::read_config(qwen3_5("qwen3_5_moe", R"("num_hidden_layers": 60, "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 2, "linear_num_value_heads": 64,
    "num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 1024,
    "shared_expert_intermediate_size": 1024, "router_aux_loss_coef": 0.001)"))
          .model;
  const std::int64_t values = 64 * 128, convolved = 2 * 16 * 128 + values;
  const std::int64_t delta =
      4096 * (convolved + values + 2 * 64) + 4 * convolved + 2 * 64 + 128 + values * 4096;
  const std::int64_t attention = 4096 * (2 * 32 + 2 * 2) * 256 + 2 * 256 + 32 * 256 * 4096;
  const std::int64_t experts = 513 * 3LL * 4096 * 1024 + 512 * 4096 + 4096;
  EXPECT_EQ(parameter_count(model),
            2 * 248320LL * 4096 + 4096 + 45 * delta + 15 * attention + 60 * (experts + 2 * 4096));
  EXPECT_NEAR(static_cast<double>(parameter_count(model)), 397e9, 1e9) << "its name";
  EXPECT_NEAR(static_cast<double>(parameter_counts(model).active), 17e9, 0.5e9) << "its name";
  EXPECT_EQ(model.layer_pattern.substr(0, 8), "GEGEGE*E");
  EXPECT_TRUE(model.shared_gate);
}

TEST(HuggingFaceStates, Qwen35ThatLiesIsRefused) {
  EXPECT_THAT(test::config_error(qwen3_5("qwen3_5", kDense27B, "1.5")),
              HasSubstr("text_config.rope_parameters.partial_rotary_factor is 1.5; use a share"));
  EXPECT_THAT(test::config_error(qwen3_5("qwen3_5_moe", kDense27B)),
              HasSubstr("text_config.num_experts is missing"));
  EXPECT_THAT(
      test::config_error(qwen3_5("qwen3_5", R"("state_rank": 8, )" + std::string(kDense27B))),
      HasSubstr("config.json:11: text_config.state_rank = 8 is not known"));
}

std::string kimi_linear(const std::string& attending = "4, 8, 12, 16, 20, 24, 27",
                        const std::string& more = "") {
  return R"({"model_type": "kimi_linear", "architectures": ["KimiLinearForCausalLM"],
    "num_hidden_layers": 27, "hidden_size": 2304, "num_attention_heads": 32,
    "num_key_value_heads": 32, "head_dim": 72, "intermediate_size": 9216, "vocab_size": 163840,
    "kv_lora_rank": 512, "q_lora_rank": null, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "v_head_dim": 128, "mla_use_nope": true, "num_experts": 256, "num_experts_per_token": 8,
    "num_shared_experts": 1, "moe_intermediate_size": 1024, "first_k_dense_replace": 1,
    "moe_layer_freq": 1, "moe_renormalize": true, "moe_router_activation_func": "sigmoid",
    "num_expert_group": 1, "topk_group": 1, "use_grouped_topk": true,
    "routed_scaling_factor": 2.446, "num_nextn_predict_layers": 0, "model_max_length": 1048576,
    "rope_theta": 10000.0, "rope_scaling": null, "tie_word_embeddings": false,
    "linear_attn_config": {"head_dim": 128, "num_heads": 32, "short_conv_kernel_size": 4,
      "kda_layers": [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23, 25, 26],
      "full_attn_layers": [)" +
         attending + "]}" + more + "}";
}

TEST(HuggingFaceStates, KimiLinearHasThePublishedSizeToTheLastParameter) {
  const HuggingFaceModel read_model = test::read_config(kimi_linear());
  const ModelSpec& model = read_model.model;
  EXPECT_EQ(parameter_count(model), 49'122'681'728);  // kimi_delta_test.cpp counts a layer by hand
  EXPECT_EQ(model.layer_pattern.substr(0, 8), "K-KEKE*E");
  EXPECT_EQ(model.attention_pattern, "n") << "it has no positions";
  EXPECT_TRUE(model.router_sigmoid && model.router_bias);
  EXPECT_EQ(read_model.longest, 1048576);
  EXPECT_THAT(read_model.approximations,
              Contains(HasSubstr("kernels of Kimi delta attention were never measured")));
}

TEST(HuggingFaceStates, KimiLinearThatLiesIsRefused) {
  EXPECT_THAT(test::config_error(kimi_linear("4, 8, 12, 16, 20, 24, 26")),
              HasSubstr("config.json:13: linear_attn_config.full_attn_layers has 26; name each "
                        "layer once, from 1 to 27"));
  EXPECT_THAT(test::config_error(kimi_linear("4, 8, 12, 16, 20, 24")),
              HasSubstr("kda_layers and full_attn_layers do not name layer 27"));
  EXPECT_THAT(test::config_error(kimi_linear("4, 8, 12, 16, 20, 24, 28")),
              HasSubstr("full_attn_layers has 28"));
  EXPECT_THAT(test::config_error(kimi_linear("4, 8, 12, 16, 20, 24, 27", R"(, "decay": 2)")),
              HasSubstr("decay = 2 is not known"));
  std::string turned = kimi_linear();
  turned.replace(turned.find("nope\": true"), 11, "nope\": false");
  EXPECT_THAT(test::config_error(turned), HasSubstr("mla_use_nope is false"));
}

std::string jamba(const std::string& more = "", const std::string& experts = "16") {
  return R"({"model_type": "jamba", "architectures": ["JambaForCausalLM"],
    "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 65536,
    "attn_layer_period": 8, "attn_layer_offset": 4, "expert_layer_period": 2,
    "expert_layer_offset": 1, "num_experts_per_tok": 2, "mamba_conv_bias": true,
    "mamba_d_conv": 4, "mamba_d_state": 16, "mamba_expand": 2, "mamba_proj_bias": false,
    "use_mamba_kernels": true, "num_logits_to_keep": 1, "sliding_window": null, "n_ctx": 262144,
    "tie_word_embeddings": false, "num_experts": )" +
         experts + more + "}";
}

TEST(HuggingFaceStates, JambaHasThePublishedSizeToTheLastParameter) {
  const HuggingFaceModel read_model = test::read_config(jamba(R"(, "mamba_dt_rank": 256)"));
  const ModelSpec& model = read_model.model;
  EXPECT_EQ(parameter_count(model), 51'570'323'328);  // selective_scan_test.cpp counts by hand
  EXPECT_EQ(model.layer_pattern.substr(0, 16), "S-SES-SE*-SES-SE");
  EXPECT_EQ(model.attention_pattern, "n") << "it has no positions";
  EXPECT_THAT(read_model.approximations, Contains(HasSubstr("scan of Mamba-1 layers was never")));
  EXPECT_EQ(test::read_config(jamba("", "1")).model.experts, 0) << "Jamba Reasoning 3B";
}

TEST(HuggingFaceStates, JambaThatLiesIsRefused) {
  EXPECT_THAT(test::config_error(jamba(R"(, "mamba_dt_rank": 128)")),
              HasSubstr("config.json:8: mamba_dt_rank is not hidden_size / 16 = 256"));
  EXPECT_THAT(test::config_error(jamba(R"(, "mamba_inner_layernorms": false)")),
              HasSubstr("mamba_inner_layernorms is false"));
  std::string beyond = jamba();
  beyond.replace(beyond.find("_offset\": 4"), 11, "_offset\": 8");
  EXPECT_THAT(test::config_error(beyond),
              HasSubstr("attn_layer_offset = 8 is not below attn_layer_period"));
}

}  // namespace
}  // namespace tessera
