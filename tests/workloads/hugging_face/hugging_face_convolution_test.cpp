// config.json of models of short convolutions (LFM2), of xIELU (Apertus), and of what reads like a
// sibling (MiMo, Command A).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/hugging_face/read_config.h"
#include "workloads/hugging_face/hugging_face.h"

namespace tessera {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::string lfm2(const std::string& more = "") {
  return R"({"model_type": "lfm2", "num_hidden_layers": 16, "hidden_size": 2048,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 65536,
    "block_ff_dim": 12288, "block_multiple_of": 256, "block_ffn_dim_multiplier": 1.0,
    "block_auto_adjust_ff_dim": true, "conv_bias": false, "block_dim": 2048, "conv_dim": 2048,
    "tie_embedding": true, "norm_eps": 1e-05)" +
         more + "}";
}
const std::string kAttending = R"(, "full_attn_idxs": [2, 5, 8, 10, 12, 14])";

TEST(HuggingFaceConvolutions, ReadsLfm2) {
  const HuggingFaceModel read_model =
      test::read_config(lfm2(R"(, "conv_L_cache": 3)" + kAttending));
  const ModelSpec& model = read_model.model;
  EXPECT_EQ(model.layer_pattern.substr(0, 12), "C-C-*-C-C-*-");
  EXPECT_EQ(model.ffn, 8192);  // two thirds of 12288
  EXPECT_EQ(model.hidden_dropout, 0);
  // Mixers: ten convolutions of two gates and x, back, and three positions; six of attention with
  // norms of heads. Feed-forwards, two norms a layer, one embedding, the last norm.
  const std::int64_t convolution = 4 * 2048 * 2048 + 3 * 2048;
  const std::int64_t attention = 2 * 2048 * 2048 + 2 * 2048 * 512 + 2 * 64;
  EXPECT_EQ(parameter_count(model), 10 * convolution + 6 * attention +
                                        16 * (3 * 2048 * 8192 + 2 * 2048) + 65536 * 2048 + 2048);
  EXPECT_EQ(parameter_count(model), 1'170'340'608);  // published
  EXPECT_THAT(read_model.approximations, Contains(HasSubstr("short convolutions were never")));
}

TEST(HuggingFaceConvolutions, RefusesWhatTheSimulatedLayersAreNot) {
  EXPECT_EQ(test::config_error(lfm2(kAttending)), "accepted");
  EXPECT_THAT(test::config_error(lfm2()), HasSubstr("layer_types is missing"));
  EXPECT_THAT(test::config_error(lfm2(R"(, "conv_L_cache": 4)" + kAttending)),
              HasSubstr("conv_L_cache"));
  EXPECT_THAT(test::config_error(lfm2(R"(, "full_attn_idxs": [16])")),
              HasSubstr("name layers from 0 to 15"));
  EXPECT_THAT(test::config_error(lfm2(R"(, "layer_types": ["conv"])")),
              HasSubstr("has 1 entries for 16"));
  EXPECT_THAT(test::config_error(lfm2(R"(, "conv_dim_out": 1024)" + kAttending)),
              HasSubstr("conv_dim_out"));
}

TEST(HuggingFaceConvolutions, ReadsLfm2WithExperts) {
  const ModelSpec model =
      test::read_config(R"({"model_type": "lfm2_moe", "num_hidden_layers": 4, "hidden_size": 2048,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 65536,
    "intermediate_size": 7168, "moe_intermediate_size": 1792, "num_dense_layers": 2,
    "num_experts": 32, "num_experts_per_tok": 4, "norm_topk_prob": true, "use_expert_bias": true,
    "routed_scaling_factor": 1.0, "conv_L_cache": 3, "conv_bias": false,
    "layer_types": ["conv", "conv", "full_attention", "conv"]})")
          .model;
  EXPECT_EQ(model.layer_pattern, "C-C-*ECE");
  const std::int64_t convolution = 4 * 2048 * 2048 + 3 * 2048;
  const std::int64_t attention = 2 * 2048 * 2048 + 2 * 2048 * 512 + 2 * 64;
  const std::int64_t experts = 32 * (3 * 2048 * 1792 + 2048 + 1);  // router and correction
  EXPECT_EQ(parameter_count(model), 3 * convolution + attention + 4 * 2 * 2048 +
                                        2 * 3 * 2048 * 7168 + 2 * experts + 65536 * 2048 + 2048);
}

std::string apertus(const std::string& more = "") {
  return R"({"model_type": "apertus", "num_hidden_layers": 32, "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 21504,
    "vocab_size": 131072, "attention_bias": false, "mlp_bias": false, "hidden_dropout": 0.0,
    "qk_norm": true, "tie_word_embeddings": false, "hidden_act": "xielu")" +
         more + "}";
}

TEST(HuggingFaceConvolutions, ReadsApertus) {
  const ModelSpec model = test::read_config(apertus(R"(, "post_norm": false)")).model;
  EXPECT_EQ(model.activation, Activation::xielu);
  // Two matrices a feed-forward and xIELU's two numbers; norms of heads.
  const std::int64_t layer =
      2 * 4096 * 4096 + 2 * 4096 * 1024 + 2 * 128 + 2 * 4096 * 21504 + 2 + 2 * 4096;
  EXPECT_EQ(parameter_count(model), 32 * layer + 2 * 131072 * 4096 + 4096);
  EXPECT_EQ(parameter_count(model), 8'053'338'176);
  EXPECT_THAT(test::config_error(apertus(R"(, "post_norm": true)")), HasSubstr("post_norm"));
}

TEST(HuggingFaceConvolutions, ReadsMimoAsQwen2ThatPredictsFurther) {
  const ModelSpec model =
      test::read_config(R"({"model_type": "mimo", "num_hidden_layers": 36, "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
    "intermediate_size": 11008, "vocab_size": 151680, "num_nextn_predict_layers": 1,
    "attention_bias": true, "tie_word_embeddings": false, "use_mrope": false})")
          .model;
  EXPECT_TRUE(model.qkv_bias);
  EXPECT_EQ(model.mtp_layers, 1);
  const std::int64_t layer =
      2 * 4096 * 4096 + 2 * 4096 * 1024 + 4096 + 2 * 1024 + 3 * 4096 * 11008 + 2 * 4096;
  EXPECT_EQ(parameter_count(model), 36 * layer + 2 * 151680 * 4096 + 4096);
}

std::string command_a(const std::string& more) {
  return R"({"model_type": "cohere2", "num_hidden_layers": 64, "hidden_size": 12288,
    "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128,
    "intermediate_size": 36864, "vocab_size": 256000, "logit_scale": 0.25,
    "sliding_window": 4096, "attention_bias": false)" +
         more + "}";
}

TEST(HuggingFaceConvolutions, CommandACallsItsPatternBySwitches) {
  EXPECT_EQ(parameter_count(test::read_config(command_a(R"(, "layer_switch": 4)")).model),
            111'057'580'032);
  EXPECT_THAT(test::config_error(command_a(R"(, "layer_switch": 4, "sliding_window_pattern": 2)")),
              HasSubstr("layer_switch differs from sliding_window_pattern"));
}

TEST(HuggingFaceConvolutions, SaysWhatIsMissingOfFamiliesThatAreNotSimulated) {
  for (const auto& [model_type, why] : {std::pair{"gemma3n_text", "several streams between layers"},
                                        {"longcat_flash", "two attentions a layer"},
                                        {"falcon_mamba", "linear attention"}})
    EXPECT_THAT(test::config_error(R"({"model_type": ")" + std::string(model_type) + "\"}"),
                HasSubstr(why));
}

}  // namespace
}  // namespace tessera
