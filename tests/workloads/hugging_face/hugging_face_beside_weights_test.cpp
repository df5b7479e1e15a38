// config.json of models whose code lies beside their weights, and of others of 2023 and 2024, as
// published, by the totals that huggingface.co shows beside the weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/hugging_face/read_config.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

HuggingFaceModel read(const std::string& model_type, const std::string& fields) {
  return test::read_config("{\"model_type\": \"" + model_type + "\",\n" + fields + "}");
}

std::int64_t count(const std::string& model_type, const std::string& fields) {
  return parameter_count(read(model_type, fields).model);
}

std::string error_of(const std::string& model_type, const std::string& fields) {
  return test::config_error("{\"model_type\": \"" + model_type + "\",\n" + fields + "}");
}

constexpr const char* kChatGlm = R"("add_bias_linear": false, "add_qkv_bias": true,
    "ffn_hidden_size": 13696, "hidden_size": 4096, "kv_channels": 128, "post_layer_norm": true,
    "multi_query_attention": true, "multi_query_group_num": 2, "num_attention_heads": 32,
    "original_rope": true, "rmsnorm": true, "apply_query_key_layer_scaling": true, )";

TEST(BesideWeights, ChatGlm) {
  const std::string fields = kChatGlm;
  EXPECT_EQ(count("chatglm", fields + R"("num_layers": 28, "padded_vocab_size": 65024)"),
            6'243'584'000);
  const std::string glm4 =
      fields + R"("num_layers": 40, "num_hidden_layers": 40, "padded_vocab_size": 151552)";
  EXPECT_EQ(count("chatglm", glm4), 9'399'951'360);
  EXPECT_EQ(read("chatglm", glm4).model.rope_dim, 64);
  EXPECT_THAT(error_of("chatglm", glm4 + R"(, "fp32_residual_connection": true)"),
              HasSubstr("fp32_residual_connection = true is not simulated"));
}

TEST(BesideWeights, TheFirstQwenHasAFeedForwardOfHalfTheSize) {
  const std::string fields = R"("hidden_size": 4096, "intermediate_size": 22016,
    "kv_channels": 128, "no_bias": true, "num_attention_heads": 32, "num_hidden_layers": 32,
    "rotary_pct": 1.0, "use_logn_attn": true, "use_dynamic_ntk": true, "vocab_size": 151936)";
  EXPECT_EQ(count("qwen", fields), 7'721'324'544);
  EXPECT_TRUE(read("qwen", fields).model.qkv_bias);
}

TEST(BesideWeights, InternLm3) {
  EXPECT_EQ(count("internlm3", R"("bias": false, "qkv_bias": false, "head_dim": 128,
    "hidden_size": 4096, "intermediate_size": 10240, "num_attention_heads": 32,
    "num_hidden_layers": 48, "num_key_value_heads": 2, "vocab_size": 128512)"),
            8'804'241'408);
}

/// 62 x (768 (2,560 + 1 + 40 x 96) + 2,560 x 288 + 256 (1 + 40 x 128) + 40 x 64 x 2,560
///       + 3 x 2,560 x 6,400 + 2 x 2,560) + 73,448 x 2,560 + 2,560
TEST(BesideWeights, MiniCpm3) {
  const HuggingFaceModel model = read("minicpm3", R"("hidden_size": 2560,
    "intermediate_size": 6400, "num_attention_heads": 40, "num_hidden_layers": 62,
    "q_lora_rank": 768, "kv_lora_rank": 256, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32,
    "num_key_value_heads": 40, "vocab_size": 73448, "scale_emb": 12, "dim_model_base": 256,
    "scale_depth": 1.4)");
  EXPECT_EQ(parameter_count(model.model), 4'073'875'968);
  EXPECT_EQ(model.model.v_head_dim, 64);
  EXPECT_TRUE(model.model.embedding_scale && model.model.residual_scale);
}

TEST(BesideWeights, DbrxSaysThatItsClippingIsLeftOut) {
  const HuggingFaceModel model = read("dbrx", R"("d_model": 6144, "n_heads": 48, "n_layers": 40,
    "vocab_size": 100352, "resid_pdrop": 0.0, "emb_pdrop": 0.0, "attn_config": {"clip_qkv": 8,
    "kv_n_heads": 8, "rope_theta": 500000}, "ffn_config": {"ffn_hidden_size": 10752,
    "moe_jitter_eps": 0, "moe_loss_weight": 0.05, "moe_num_experts": 16, "moe_top_k": 4})");
  EXPECT_EQ(parameter_count(model.model), 131'596'523'520);
  EXPECT_THAT(model.approximations, ElementsAre(HasSubstr("attn_config.clip_qkv")));
  EXPECT_THAT(error_of("dbrx", R"("d_model": 64, "n_heads": 4, "n_layers": 2, "vocab_size": 100,
    "ffn_config": {"ffn_hidden_size": 96, "moe_num_experts": 2, "moe_top_k": 1, "wild": 3})"),
              HasSubstr("ffn_config.wild = 3 is not known"));
}

TEST(BesideWeights, Mamba2Alone) {
  const std::string fields = R"("hidden_size": 4096, "num_hidden_layers": 64, "num_heads": 128,
    "head_dim": 64, "state_size": 128, "n_groups": 8, "conv_kernel": 4, "expand": 2,
    "use_bias": false, "use_conv_bias": true, "chunk_size": 256, "rms_norm": true,
    "vocab_size": 32768, "tie_word_embeddings": false)";
  const HuggingFaceModel codestral = read("mamba2", fields);
  EXPECT_EQ(parameter_count(codestral.model), 7'285'403'648);
  EXPECT_EQ(codestral.model.layer_pattern, std::string(64, 'M'));
  EXPECT_THAT(error_of("mamba2", fields + R"(, "expand": 3)"),
              HasSubstr("num_heads * head_dim is not expand * hidden_size"));
}

TEST(BesideWeights, OthersWithPlainLayers) {
  EXPECT_EQ(count("codegen", R"("n_embd": 1024, "n_layer": 20, "n_head": 16, "rotary_dim": 32,
    "n_positions": 2048, "n_inner": null, "vocab_size": 51200)"),
            356'712'448);
  const std::string neox = R"("hidden_act": "gelu_fast", "hidden_dropout_prob": 0,
    "attention_probs_dropout_prob": 0, "hidden_size": 6144, "intermediate_size": 24576,
    "num_attention_heads": 64, "num_hidden_layers": 44, "rotary_pct": 0.25, "vocab_size": 50432)";
  EXPECT_EQ(count("gpt_neox", neox), 20'554'567'680);
}

/// BERT's count less the pooler and the head for the next sentence is RoBERTa's.
TEST(BesideWeights, RobertaSaysWhatItHasTooMuch) {
  const HuggingFaceModel model = read("roberta", R"("hidden_size": 768,
    "intermediate_size": 3072, "num_attention_heads": 12, "num_hidden_layers": 12,
    "max_position_embeddings": 514, "type_vocab_size": 1, "vocab_size": 50265)");
  EXPECT_EQ(parameter_count(model.model) - (768 * 768 + 768) - (2 * 768 + 2), 124'697'433);
  EXPECT_THAT(model.approximations, ElementsAre(HasSubstr("next sentence")));
  EXPECT_EQ(model.longest, 512) << "two of its rows are of no position";
}

TEST(BesideWeights, NormsOfEachHeadAreSaid) {
  const HuggingFaceModel model = read("cohere", R"("hidden_size": 12288,
    "intermediate_size": 33792, "num_attention_heads": 96, "num_hidden_layers": 64,
    "num_key_value_heads": 8, "vocab_size": 256000, "use_qk_norm": true)");
  EXPECT_TRUE(model.model.qk_norm);
  EXPECT_EQ(parameter_count(model.model) + 64 * (96 + 8 - 2) * 128, 103'810'674'688);
  EXPECT_THAT(model.approximations, ElementsAre(HasSubstr("of which the model has some for each")));
}

TEST(BesideWeights, KeysOfPublishedFilesAreKnown) {
  const std::string llama = R"("hidden_size": 576, "intermediate_size": 1536, "vocab_size": 49152,
    "num_attention_heads": 9, "num_key_value_heads": 3, "num_hidden_layers": 30,
    "tie_word_embeddings": true, "is_llama_config": true, "activation": "swiglu",
    "transformers.js_config": {"kv_cache_dtype": {"fp16": "float16"}})";
  EXPECT_EQ(count("llama", llama), 134'515'008);  // SmolLM2 135M
  const std::string starcoder = R"("hidden_size": 4608, "intermediate_size": 18432,
    "num_attention_heads": 36, "num_key_value_heads": 4, "num_hidden_layers": 32,
    "vocab_size": 49152, "residual_dropout": 0.1, "scale_attention_softmax_in_fp32": true, )";
  EXPECT_EQ(count("starcoder2", starcoder + R"("embedding_dropout": 0.1)"), 7'173'923'840);
  EXPECT_THAT(error_of("starcoder2", starcoder + R"("embedding_dropout": 0.0)"),
              HasSubstr("embedding_dropout and residual_dropout: dropout in one of the two"));
}

}  // namespace
}  // namespace tessera
