// config.json of models of gated delta nets (Qwen3-Next), of attention beside Mamba-2 (Falcon-H1)
// and of diffusion transformers.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/hugging_face/read_config.h"
#include "workloads/hugging_face/hugging_face.h"

namespace tessera {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::string qwen3_next(const std::string& more = "") {
  return R"({"model_type": "qwen3_next", "num_hidden_layers": 48, "hidden_size": 2048,
    "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256,
    "intermediate_size": 5120, "vocab_size": 151936, "partial_rotary_factor": 0.25,
    "linear_num_value_heads": 32, "linear_num_key_heads": 16, "linear_key_head_dim": 128,
    "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "num_experts": 512,
    "num_experts_per_tok": 10, "moe_intermediate_size": 512, "decoder_sparse_step": 1,
    "shared_expert_intermediate_size": 512, "mlp_only_layers": [], "norm_topk_prob": true,
    "attention_bias": false, "tie_word_embeddings": false)" +
         more + "}";
}

TEST(HuggingFaceMixers, ReadsQwen3Next) {
  const HuggingFaceModel read_model =
      test::read_config(qwen3_next(R"(, "full_attention_interval": 4)"));
  const ModelSpec& model = read_model.model;
  EXPECT_EQ(parameter_count(model), 79'674'391'296);  // delta_net_test.cpp counts it by hand
  EXPECT_EQ(model.layer_pattern.substr(0, 8), "GEGEGE*E");
  EXPECT_EQ(model.rope_dim, 64);
  EXPECT_TRUE(model.attention_gate && model.qk_norm && model.shared_gate);
  EXPECT_THAT(read_model.approximations,
              Contains(HasSubstr("kernels of gated delta nets were never measured")));
}

std::string falcon_h1(const std::string& more = "") {
  return R"({"model_type": "falcon_h1", "num_hidden_layers": 36, "hidden_size": 1024,
    "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64, "intermediate_size": 2048,
    "vocab_size": 32784, "mamba_d_ssm": 1536, "mamba_n_heads": 24, "mamba_d_head": 64,
    "mamba_d_state": 128, "mamba_n_groups": 1, "mamba_d_conv": 4, "mamba_conv_bias": true,
    "mamba_expand": 2, "mamba_chunk_size": 128, "mamba_proj_bias": false,
    "projectors_bias": false, "mlp_bias": false, "attention_bias": false,
    "tie_word_embeddings": false, "embedding_multiplier": 5.65, "lm_head_multiplier": 0.039,
    "ssm_multipliers": [0.35, 0.25, 0.35, 0.5, 0.35], "mlp_multipliers": [0.88, 0.58])" +
         more + "}";
}

TEST(HuggingFaceMixers, FalconH1HasThePublishedSizeToTheLastParameter) {
  const HuggingFaceModel read_model = test::read_config(falcon_h1(R"(, "mamba_rms_norm": false)"));
  const ModelSpec& model = read_model.model;
  EXPECT_EQ(model.layers, 72) << "a layer of both mixers, a layer of the feed-forward";
  EXPECT_EQ(model.layer_pattern.substr(0, 4), "H-H-");
  // Falcon-H1-0.5B. A layer: attention, projections and convolution of Mamba-2 with its three
  // numbers a head, the feed-forward, two norms.
  const std::int64_t attention = 2 * 1024 * 512 + 2 * 1024 * 128;
  const std::int64_t mamba = 1024 * (1536 + 1792 + 24) + 5 * 1792 + 3 * 24 + 1536 * 1024;
  const std::int64_t layer = attention + mamba + 3 * 1024 * 2048 + 2 * 1024;
  EXPECT_EQ(parameter_count(model), 36 * layer + 2 * 32784 * 1024 + 1024);
  EXPECT_EQ(parameter_count(model), 521'411'104);
  EXPECT_TRUE(model.embedding_scale && model.logit_scale && model.residual_scale);
  EXPECT_THAT(read_model.approximations, Contains(HasSubstr("one pass a branch")));
}

TEST(HuggingFaceMixers, FalconH1SaysWhatItsLayersDoNotHave) {
  EXPECT_THAT(test::config_error(falcon_h1(R"(, "mamba_rms_norm": true)")),
              HasSubstr("mamba_rms_norm is true: no norm is simulated behind the scan"));
  EXPECT_THAT(test::config_error(falcon_h1(R"(, "mamba_use_mlp": false)")),
              HasSubstr("mamba_use_mlp"));
  EXPECT_THAT(test::config_error(falcon_h1(R"(, "attn_layer_indices": [1])")),
              HasSubstr("attn_layer_indices"));
  std::string wide = falcon_h1();
  wide.replace(wide.find("1536"), 4, "2048");
  EXPECT_THAT(test::config_error(wide),
              HasSubstr("mamba_d_ssm is not mamba_n_heads * mamba_d_head"));
}

TEST(HuggingFaceMixers, TypesAndDenseLayersSayWhatALayerIs) {
  const std::string two = R"({"model_type": "qwen3_next", "num_hidden_layers": 2,
    "hidden_size": 64, "num_attention_heads": 4, "head_dim": 16, "intermediate_size": 128,
    "vocab_size": 100, "linear_num_value_heads": 4, "linear_num_key_heads": 2,
    "linear_key_head_dim": 16, "linear_value_head_dim": 16, "num_experts": 4,
    "num_experts_per_tok": 2, "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32, "mlp_only_layers": [0], "layer_types": )";
  EXPECT_EQ(
      test::read_config(two + R"(["full_attention", "linear_attention"]})").model.layer_pattern,
      "*-GE");
  EXPECT_THAT(test::config_error(two + R"(["full_attention"]})"),
              HasSubstr("config.json:6: layer_types is no list of a type for each of 2 layers"));
  EXPECT_THAT(test::config_error(two + R"(["full_attention", "sliding_attention"]})"),
              HasSubstr("known: linear_attention, full_attention"));
  EXPECT_THAT(test::config_error(two + R"(["full_attention", "linear_attention"],
    "use_sliding_window": true})"),
              HasSubstr("config.json:7: use_sliding_window is true"));
}

TEST(HuggingFaceMixers, SizesThatLieAreRefused) {
  std::string lie = qwen3_next();
  lie.replace(lie.find("\"linear_num_key_heads\": 16"), 26, "\"linear_num_key_heads\": 5 ");
  EXPECT_THAT(test::config_error(lie),
              HasSubstr("config.json:4: linear_num_key_heads = 5 does not divide "
                        "linear_num_value_heads = 32"));
  lie = qwen3_next();
  lie.replace(lie.find("_dim\": 4,"), 9, "_dim\": 0,");
  EXPECT_THAT(test::config_error(lie), HasSubstr("linear_conv_kernel_dim is 0"));
}

std::string dit(const std::string& more) {
  return R"({"_class_name": "Transformer2DModel", "_diffusers_version": "0.12.0.dev0",
    "activation_fn": "gelu-approximate", "attention_bias": true, "attention_head_dim": 72,
    "cross_attention_dim": null, "dropout": 0.0, "in_channels": 4,
    "norm_elementwise_affine": false, "norm_num_groups": 32, "num_attention_heads": 16,
    "num_embeds_ada_norm": 1000, "num_vector_embeds": null, "only_cross_attention": false,
    "out_channels": 8, "patch_size": 2, "sample_size": 64, "use_linear_projection": false,
    )" + more +
         "}";
}

TEST(HuggingFaceMixers, ReadsDiffusersDit) {
  const HuggingFaceModel model =
      test::read_config(dit(R"("norm_type": "ada_norm_zero", "num_layers": 28)"));
  EXPECT_EQ(model.model.architecture, VisionArchitecture::dit_xl_2);
  EXPECT_EQ(model.model.image_size, 64);
  EXPECT_THAT(model.approximations, Contains(HasSubstr("embedded once")));
  EXPECT_THAT(
      test::config_error(dit(R"("norm_type": "ada_norm_zero", "num_layers": 29)")),
      HasSubstr("config.json:7: num_layers = 29 with 16 heads and a width of 1152 is no DiT "
                "of its paper"));
  EXPECT_THAT(test::config_error(dit(R"("norm_type": "layer_norm", "num_layers": 28)")),
              HasSubstr("norm_type is not ada_norm_zero"));
}

}  // namespace
}  // namespace tessera
