#include "workloads/hugging_face.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/workloads/models.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

constexpr const char* kGpt2Large = R"({
  "model_type": "gpt2", "n_layer": 36, "n_embd": 1280, "n_head": 20, "n_inner": null,
  "vocab_size": 50257, "n_positions": 1024, "activation_function": "gelu_new",
  "resid_pdrop": 0.1, "attn_pdrop": 0.1, "torch_dtype": "float32"})";

std::string error_of(const std::string& text) {
  try {
    read_hugging_face_config(text, "config.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(HuggingFaceConfig, ReadsGpt2) {
  const ModelSpec model = read_hugging_face_config(kGpt2Large, "config.json");
  EXPECT_EQ(model.family, ModelFamily::gpt2);
  EXPECT_EQ(model.ffn, 4 * 1280);  // n_inner null
  EXPECT_EQ(model.head_dim, 64);
  EXPECT_EQ(parameter_count(model), 774'030'080);
}

TEST(HuggingFaceConfig, ReadsLlamaWithGroupedQueries) {
  const ModelSpec model = read_hugging_face_config(R"({
    "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
    "vocab_size": 128256, "hidden_act": "silu", "tie_word_embeddings": false})",
                                                   "config.json");
  EXPECT_EQ(model.kv_heads, 8);
  EXPECT_EQ(model.max_positions, 0);
  EXPECT_EQ(parameter_count(model), 8'030'261'248);  // Llama-3.1-8B
}

TEST(HuggingFaceConfig, ReadsBertOptAndSwitchTransformers) {
  EXPECT_EQ(parameter_count(read_hugging_face_config(R"({
    "model_type": "bert", "num_hidden_layers": 24, "hidden_size": 1024,
    "num_attention_heads": 16, "intermediate_size": 4096, "vocab_size": 30522,
    "max_position_embeddings": 512, "type_vocab_size": 2})",
                                                     "config.json")),
            parameter_count(test::bert_large()));
  EXPECT_EQ(parameter_count(read_hugging_face_config(R"({
    "model_type": "opt", "num_hidden_layers": 24, "hidden_size": 2048,
    "num_attention_heads": 32, "ffn_dim": 8192, "vocab_size": 50272,
    "max_position_embeddings": 2048, "word_embed_proj_dim": 2048})",
                                                     "config.json")),
            parameter_count(test::opt_1_3b()));
  const ModelSpec model = read_hugging_face_config(R"({
    "model_type": "switch_transformers", "num_layers": 24, "num_decoder_layers": 24,
    "d_model": 1024, "num_heads": 32, "d_kv": 128, "d_ff": 16384, "vocab_size": 32128,
    "num_experts": 4, "expert_capacity": 64, "num_sparse_encoder_layers": 12,
    "num_sparse_decoder_layers": 12, "dense_act_fn": "relu"})",
                                                   "config.json");
  EXPECT_EQ(model.moe_every, 2);
  EXPECT_EQ(parameter_count(model), parameter_count(test::switch_xl4()));
}

TEST(HuggingFaceConfig, ReadsMistralAndQwen) {
  const auto parameters = [](const std::string& fields) {
    return parameter_count(read_hugging_face_config("{" + fields + "}", "config.json"));
  };
  EXPECT_EQ(parameters(R"("model_type": "mistral", "num_hidden_layers": 32, "hidden_size": 4096,
                "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
                "vocab_size": 32000, "sliding_window": 4096)"),
            7'241'732'096);
  EXPECT_EQ(parameters(R"("model_type": "qwen2", "num_hidden_layers": 28, "hidden_size": 3584,
                "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944,
                "vocab_size": 152064, "tie_word_embeddings": false)"),
            7'615'616'512);  // Qwen2.5-7B
  EXPECT_EQ(parameters(R"("model_type": "qwen3", "num_hidden_layers": 36, "hidden_size": 4096,
                "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
                "intermediate_size": 12288, "vocab_size": 151936)"),
            8'190'735'360);
  const std::string sparse = R"("model_type": "qwen3_moe", "num_hidden_layers": 48,
      "hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
      "intermediate_size": 6144, "moe_intermediate_size": 768, "vocab_size": 151936,
      "num_experts": 128, "num_experts_per_tok": 8)";
  EXPECT_EQ(parameters(sparse), 30'532'122'624);
  EXPECT_THAT(error_of("{" + sparse + R"(, "decoder_sparse_step": 2})"),
              HasSubstr("decoder_sparse_step"));
}

TEST(HuggingFaceConfig, ReadsBloomUnderBothOfItsNames) {
  for (const std::string names : {R"("n_layer": 70, "n_head": 112, "hidden_size": 14336)",
                                  R"("num_hidden_layers": 70, "num_attention_heads": 112,
                                     "n_embed": 14336)"}) {
    const ModelSpec model = read_hugging_face_config(
        R"({"model_type": "bloom", "vocab_size": 250880, "attention_dropout": 0.0, )" + names + "}",
        "config.json");
    EXPECT_EQ(model.family, ModelFamily::bloom);
    EXPECT_EQ(model.max_positions, 0);
    EXPECT_EQ(parameter_count(model), 176'247'271'424);
  }
  EXPECT_THAT(error_of(R"({"model_type": "bloom", "n_layer": 2, "n_head": 3, "hidden_size": 64,
                           "vocab_size": 100})"),
              HasSubstr("n_head = 3 does not divide hidden_size = 64"));
}

constexpr const char* kMpt = R"({"model_type": "mpt", "d_model": 4096, "n_heads": 32,
  "n_layers": 32, "expansion_ratio": 4, "vocab_size": 50432, "no_bias": BIAS,
  "attn_config": {"alibi": ALIBI, "attn_pdrop": DROP, "attn_impl": "torch"}})";

std::string mpt(const std::string& no_bias, const std::string& alibi, const std::string& drop) {
  std::string text = kMpt;
  for (const auto& [mark, value] :
       {std::pair<std::string, std::string>{"BIAS", no_bias}, {"ALIBI", alibi}, {"DROP", drop}})
    text.replace(text.find(mark), mark.size(), value);
  return text;
}

TEST(HuggingFaceConfig, ReadsMptWithAlibiAndWithoutBiases) {
  const ModelSpec model = read_hugging_face_config(mpt("true", "true", "0.25"), "config.json");
  EXPECT_EQ(model.family, ModelFamily::mpt);
  EXPECT_EQ(model.attention_dropout, 0.25);
  EXPECT_EQ(model.activation, Activation::gelu);
  EXPECT_EQ(parameter_count(model), 6'649'286'656);
}

TEST(HuggingFaceConfig, RefusesMptThatTransformersDoesNotRun) {
  EXPECT_THAT(error_of(mpt("false", "true", "0")), HasSubstr("config.json: no_bias is false"));
  EXPECT_THAT(error_of(mpt("true", "false", "0")),
              HasSubstr("config.json: attn_config.alibi is false"));
  EXPECT_THAT(error_of(mpt("true", "true", "7")), HasSubstr("attn_config.attn_pdrop is 7"));
  EXPECT_THAT(error_of(R"({"model_type": "mpt", "attn_config": [], "d_model": 64, "n_heads": 4,
                           "n_layers": 2, "vocab_size": 100})"),
              HasSubstr("attn_config is a list"));
}

TEST(HuggingFaceConfig, UnknownModelTypeNamesTheSupportedOnes) {
  EXPECT_EQ(
      error_of(R"({"model_type": "mamba"})"),
      "config.json: model_type \"mamba\" is unknown; supported: bert, bloom, gpt2, llama, mistral, "
      "mixtral, mpt, opt, qwen2, qwen3, qwen3_moe, switch_transformers");
  EXPECT_THAT(error_of("{}"), HasSubstr("model_type is missing"));
}

TEST(HuggingFaceConfig, ReportsEveryProblemAtOnce) {
  const std::string text = error_of(R"({
    "model_type": "gpt2", "n_layer": "36", "n_embd": 1280, "n_head": 7,
    "vocab_size": -1, "resid_pdrop": 1.5, "activation_function": "swoosh"})");
  EXPECT_THAT(text, HasSubstr("n_layer is \"36\"; use a whole number from 1 to 10000"));
  EXPECT_THAT(text, HasSubstr("n_head = 7 does not divide n_embd = 1280"));
  EXPECT_THAT(text, HasSubstr("vocab_size is -1"));
  EXPECT_THAT(text, HasSubstr("n_positions is missing"));
  EXPECT_THAT(text, HasSubstr("resid_pdrop is 1.5"));
  EXPECT_THAT(text, HasSubstr("activation_function is \"swoosh\""));
}

TEST(HuggingFaceConfig, SurvivesDeepNesting) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_THAT(error_of(R"({"model_type": "gpt2", "n_layer": )" + deep + "}"),
              HasSubstr("n_layer is a list"));
}

TEST(HuggingFaceConfig, ANumberBeyondDoubleIsNoJson) {
  EXPECT_THAT(error_of(R"({"model_type": "gpt2", "n_layer": 4.8e444})"), HasSubstr("4.8e444"));
}

TEST(HuggingFaceConfig, RejectsWhatIsNoConfig) {
  EXPECT_THAT(error_of("not json"), HasSubstr("is not JSON"));
  EXPECT_THAT(error_of("[1, 2]"), HasSubstr("holds no JSON object"));
  EXPECT_THAT(error_of(R"({"model_type": "gpt2", "n_layer": 1e99})"),
              HasSubstr("n_layer is 1e+99"));
  EXPECT_THAT(error_of(R"({"model_type": "gpt2", "n_layer": 2.5})"), HasSubstr("n_layer is 2.5"));
}

}  // namespace
}  // namespace tessera
