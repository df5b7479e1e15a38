#include "workloads/hugging_face/hugging_face.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/hugging_face/read_config.h"
#include "tests/workloads/models.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

constexpr const char* kGpt2Large = R"({
  "model_type": "gpt2", "n_layer": 36, "n_embd": 1280, "n_head": 20, "n_inner": null,
  "vocab_size": 50257, "n_positions": 1024, "activation_function": "gelu_new",
  "resid_pdrop": 0.1, "attn_pdrop": 0.1, "torch_dtype": "float32"})";

ModelSpec model_of(const std::string& text, const std::string& where) {
  return read_hugging_face_config(text, where).model;
}

TEST(HuggingFaceConfig, ReadsGpt2) {
  const ModelSpec model = model_of(kGpt2Large, "config.json");
  EXPECT_EQ(model.family, ModelFamily::gpt2);
  EXPECT_EQ(model.ffn, 4 * 1280);  // n_inner null
  EXPECT_EQ(model.head_dim, 64);
  EXPECT_EQ(parameter_count(model), 774'030'080);
}

TEST(HuggingFaceConfig, ReadsLlamaWithGroupedQueries) {
  const ModelSpec model = model_of(R"({
    "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
    "vocab_size": 128256, "hidden_act": "silu", "tie_word_embeddings": false})",
                                   "config.json");
  EXPECT_EQ(model.kv_heads, 8);
  EXPECT_EQ(model.max_positions, 0);
  EXPECT_EQ(parameter_count(model), 8'030'261'248);  // Llama-3.1-8B
}

TEST(HuggingFaceConfig, ReadsBertOptAndSwitchTransformers) {
  EXPECT_EQ(parameter_count(model_of(R"({
    "model_type": "bert", "num_hidden_layers": 24, "hidden_size": 1024,
    "num_attention_heads": 16, "intermediate_size": 4096, "vocab_size": 30522,
    "max_position_embeddings": 512, "type_vocab_size": 2})",
                                     "config.json")),
            parameter_count(test::bert_large()));
  EXPECT_EQ(parameter_count(model_of(R"({
    "model_type": "opt", "num_hidden_layers": 24, "hidden_size": 2048,
    "num_attention_heads": 32, "ffn_dim": 8192, "vocab_size": 50272,
    "max_position_embeddings": 2048, "word_embed_proj_dim": 2048})",
                                     "config.json")),
            parameter_count(test::opt_1_3b()));
  const ModelSpec model = model_of(R"({
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
    return parameter_count(model_of("{" + fields + "}", "config.json"));
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
  // 24 dense layers of 3 * 2048 * 6144 in place of 128 experts of 3 * 2048 * 768 and their router.
  EXPECT_EQ(parameters(sparse + R"(, "decoder_sparse_step": 2)"),
            30'532'122'624 - 24LL * (128 * (3 * 2048 * 768 + 2048) - 3 * 2048 * 6144));
}

TEST(HuggingFaceConfig, ReadsBloomUnderBothOfItsNames) {
  for (const std::string names : {R"("n_layer": 70, "n_head": 112, "hidden_size": 14336)",
                                  R"("num_hidden_layers": 70, "num_attention_heads": 112,
                                     "n_embed": 14336)"}) {
    const ModelSpec model = model_of(
        R"({"model_type": "bloom", "vocab_size": 250880, "attention_dropout": 0.0, )" + names + "}",
        "config.json");
    EXPECT_EQ(model.family, ModelFamily::bloom);
    EXPECT_EQ(model.max_positions, 0);
    EXPECT_EQ(parameter_count(model), 176'247'271'424);
  }
  EXPECT_THAT(
      test::config_error(R"({"model_type": "bloom", "n_layer": 2, "n_head": 3, "hidden_size": 64,
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
  const ModelSpec model = model_of(mpt("true", "true", "0.25"), "config.json");
  EXPECT_EQ(model.family, ModelFamily::mpt);
  EXPECT_EQ(model.attention_dropout, 0.25);
  EXPECT_EQ(model.activation, Activation::gelu);
  EXPECT_EQ(parameter_count(model), 6'649'286'656);
}

TEST(HuggingFaceConfig, RefusesMptThatTransformersDoesNotRun) {
  EXPECT_THAT(test::config_error(mpt("false", "true", "0")),
              HasSubstr("config.json:2: no_bias is false"));
  EXPECT_THAT(test::config_error(mpt("true", "false", "0")),
              HasSubstr("config.json:3: attn_config.alibi is false"));
  EXPECT_THAT(test::config_error(mpt("true", "true", "7")),
              HasSubstr("attn_config.attn_pdrop is 7"));
  EXPECT_THAT(
      test::config_error(R"({"model_type": "mpt", "attn_config": [], "d_model": 64, "n_heads": 4,
                           "n_layers": 2, "vocab_size": 100})"),
      HasSubstr("attn_config is a list"));
}

TEST(HuggingFaceConfig, UnknownModelTypeNamesTheSupportedOnes) {
  const std::string error = test::config_error(R"({"model_type": "odd"})");
  EXPECT_THAT(
      error, HasSubstr("config.json:1: model_type \"odd\" is unknown; supported: afmoe, "
                       "apertus, arcee, baichuan, bailing_moe, bailing_moe_v2, bamba, bert, bloom, "
                       "camembert, chatglm, codegen, cohere, cohere2, dbrx, deepseek"));
  EXPECT_THAT(error, HasSubstr("t5"));
  EXPECT_THAT(error, ::testing::Not(HasSubstr("_vl")));
  EXPECT_THAT(test::config_error("{}"), HasSubstr("model_type is missing"));
}

/// A small Llama with more fields, "..., more".
std::string llama(const std::string& more, const std::string& model_type = "llama") {
  return R"({"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 100, "model_type": ")" +
         model_type + "\",\n" + more + "}";
}

TEST(HuggingFaceConfig, WhatNoFamilyExpressesIsRefusedByName) {
  const auto refused = [](const std::string& field, const std::string& text) {
    EXPECT_THAT(test::config_error(llama(field)), HasSubstr("config.json:3: " + text)) << field;
    const HuggingFaceModel read = read_hugging_face_config(llama(field), "config.json", true);
    ASSERT_EQ(read.approximations.size(), 1U) << field;
    EXPECT_THAT(read.approximations.front(), HasSubstr(text));
  };
  refused(R"("quantization_config": {"load_in_4bit": true})",
          "quantization_config = an object says that weights are quantized");
  refused(R"("kv_lora_rank": 512)", "kv_lora_rank = 512 is latent attention");
  refused(R"("n_shared_experts": 2)", "n_shared_experts = 2 gives experts that all tokens share");
  refused(R"("num_nextn_predict_layers": 1)",
          "num_nextn_predict_layers = 1 predicts more than the next token");
  refused(R"("pretraining_tp": 4)", "pretraining_tp = 4 cuts products into slices");
  refused(R"("partial_rotary_factor": 0.5)", "partial_rotary_factor = 0.5 rotates a part");
  refused(R"("rope_scaling": {"rope_type": "spiral"})", "rope_scaling is an object of an unknown");
  refused(R"("layer_types": ["full_attention", "linear_attention"])",
          "layer_types has \"linear_attention\"");
  refused(R"("architectures": ["LlamaForSequenceClassification"])",
          "architectures has LlamaForSequenceClassification: its head");
  refused(R"("wild_new_field": [1])", "wild_new_field = a list is not known");
}

TEST(HuggingFaceConfig, AHeadThatTheModelLacksIsSaid) {
  const std::string file = llama(R"("architectures": ["MistralModel"])", "mistral");
  const HuggingFaceModel read = read_hugging_face_config(file, "config.json");
  ASSERT_EQ(read.approximations.size(), 1U);
  EXPECT_THAT(read.approximations.front(), HasSubstr("MistralModel has no head; a language model"));
  EXPECT_THAT(test::config_error(llama(R"("architectures": ["T5EncoderModel"])")),
              HasSubstr("has T5EncoderModel: an encoder without its decoder is not simulated"));
}

TEST(HuggingFaceConfig, WhatChangesNothingIsListed) {
  const HuggingFaceModel read = read_hugging_face_config(
      llama(R"("architectures": ["LlamaForCausalLM"], "rope_theta": 5e5, "bos_token_id": 1,
               "rope_scaling": {"rope_type": "llama3", "factor": 8.0}, "torch_dtype": "bfloat16",
               "quantization_config": null, "attention_bias": false, "pretraining_tp": 1,
               "max_position_embeddings": 8192, "partial_rotary_factor": 1.0)"),
      "config.json");
  EXPECT_EQ(read.longest, 8192);
  EXPECT_EQ(read.approximations.size(), 0U);
  EXPECT_THAT(read.harmless, testing::Contains("rope_theta"));
  EXPECT_THAT(read.harmless, testing::Contains("quantization_config"));
}

TEST(HuggingFaceConfig, PythonsInfinityAndNanAreValues) {
  const HuggingFaceModel read = read_hugging_face_config(
      llama(R"("rope_theta": Infinity, "initializer_range": NaN, "rms_norm_eps": -Infinity,
               "_name_or_path": "NaN \" Infinity")"),
      "config.json");
  EXPECT_EQ(read.model.name, "NaN \" Infinity");
  EXPECT_THAT(test::config_error(R"({"model_type": "gpt2", "n_layer": Infinity})"),
              HasSubstr("n_layer is \"Infinity\"; use a whole number"));
}

TEST(HuggingFaceConfig, ArchitecturesStandInForModelType) {
  std::string text = llama(R"("architectures": ["Qwen2ForCausalLM"])");
  text.replace(text.find(R"("model_type": "llama",)"), 22, "");
  EXPECT_TRUE(model_of(text, "config.json").qkv_bias);
  text.replace(text.find("Qwen2For"), 8, "SwishFor");
  EXPECT_THAT(test::config_error(text),
              HasSubstr("model_type is missing, and architectures = SwishForCausalLM is unknown"));
}

TEST(HuggingFaceConfig, WellKnownModelsThatAreNotSimulatedSayWhy) {
  const auto why = [](const std::string& model_type) {
    return test::config_error(llama("\"a\": 1", model_type));
  };
  EXPECT_THAT(why("aria"), HasSubstr("experts that all tokens share"));
  EXPECT_THAT(why("gpt_neo"), HasSubstr("attention in windows"));
  EXPECT_THAT(why("zamba2"), HasSubstr("linear attention"));
  EXPECT_THAT(why("mamba"), HasSubstr("state spaces"));
  EXPECT_THAT(why("deberta-v2"), HasSubstr("an encoder other than BERT"));
  EXPECT_THAT(why("minimax_m1"), HasSubstr("lightning attention"));
}

TEST(HuggingFaceConfig, WhatTheWholeIsDecidesAheadOfWhatLiesWithin) {
  EXPECT_THAT(
      test::config_error(R"({"model_type": "clip", "text_config": {"model_type": "llama"}})"),
      HasSubstr("model_type \"clip\" is not simulated: two towers"));
}

TEST(HuggingFaceConfig, TheLanguageModelHasSeveralNames) {
  for (const std::string key : {"text_config", "llm_config", "language_config"}) {
    const HuggingFaceModel read = read_hugging_face_config(
        R"({"model_type": "internvl_chat", "select_layer": -1, "vision_config": {}, ")" + key +
            "\": " + llama("\"rope_theta\": 1e6", "qwen2") + "}",
        "config.json");
    EXPECT_TRUE(read.model.qkv_bias) << key;
    EXPECT_THAT(read.approximations, ::testing::ElementsAre(HasSubstr("vision tower")));
  }
}

TEST(HuggingFaceConfig, TheLanguageModelOfAVisionModelIsRead) {
  const HuggingFaceModel nested = read_hugging_face_config(
      R"({"model_type": "llava", "architectures": ["LlavaForConditionalGeneration"],
          "image_token_index": 32000, "projector_hidden_act": "gelu", "tie_word_embeddings": true,
          "text_config": {"model_type": "mistral", "vocab_size": 1000, "num_hidden_layers": 2},
          "vision_config": {"model_type": "clip_vision_model", "hidden_size": 1024}})",
      "config.json");
  EXPECT_EQ(nested.model.hidden, 4096) << "transformers' default for Mistral";
  EXPECT_EQ(nested.model.kv_heads, 8);
  EXPECT_EQ(nested.model.layers, 2);
  EXPECT_TRUE(nested.model.tied_embeddings);
  ASSERT_EQ(nested.approximations.size(), 1U);
  EXPECT_THAT(nested.approximations.front(), HasSubstr("vision tower not simulated"));
  const HuggingFaceModel flat = read_hugging_face_config(
      llama(R"("vision_config": {"depth": 32}, "vision_start_token_id": 7)", "qwen2_vl"),
      "config.json");
  EXPECT_TRUE(flat.model.qkv_bias);
  EXPECT_EQ(flat.approximations.size(), 1U);
  EXPECT_THAT(
      test::config_error(R"({"model_type": "llava", "text_config": {"model_type": "gemma3n"}})"),
      HasSubstr("text_config.model_type \"gemma3n\" is not simulated"));
}

TEST(HuggingFaceConfig, AHeadSizeOfItsOwnNeedsNoDivisor) {
  EXPECT_EQ(model_of(R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 100,
    "num_attention_heads": 3, "head_dim": 32, "intermediate_size": 128, "vocab_size": 100})",
                     "c")
                .head_dim,
            32);
}

TEST(HuggingFaceConfig, ReportsEveryProblemAtOnce) {
  const std::string text = test::config_error(R"({
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
  EXPECT_THAT(test::config_error(R"({"model_type": "gpt2", "n_layer": )" + deep + "}"),
              HasSubstr("n_layer is a list"));
}

TEST(HuggingFaceConfig, ANumberBeyondDoubleIsNoJson) {
  EXPECT_THAT(test::config_error(R"({"model_type": "gpt2", "n_layer": 4.8e444})"),
              HasSubstr("4.8e444"));
}

TEST(HuggingFaceConfig, RejectsWhatIsNoConfig) {
  EXPECT_THAT(test::config_error("not json"), HasSubstr("is not JSON"));
  EXPECT_THAT(test::config_error("[1, 2]"), HasSubstr("holds no JSON object"));
  EXPECT_THAT(test::config_error(R"({"model_type": "gpt2", "n_layer": 1e99})"),
              HasSubstr("n_layer is 1e+99"));
  EXPECT_THAT(test::config_error(R"({"model_type": "gpt2", "n_layer": 2.5})"),
              HasSubstr("n_layer is 2.5"));
}

}  // namespace
}  // namespace tessera
