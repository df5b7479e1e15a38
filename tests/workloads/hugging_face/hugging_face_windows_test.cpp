// Which layers have windows, positions and experts, by the lists of config.json.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "workloads/hugging_face/hugging_face.h"
#include "workloads/layer_patterns.h"
#include "workloads/model_features.h"

namespace tessera {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// A small Llama of four layers with more fields.
std::string llama(const std::string& more, const std::string& model_type) {
  return R"({"num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4,
    "intermediate_size": 128, "vocab_size": 100, "model_type": ")" +
         model_type + "\",\n" + more + "}";
}

ModelSpec model_of(const std::string& more, const std::string& model_type) {
  return read_hugging_face_config(llama(more, model_type), "config.json").model;
}

std::string error_of(const std::string& more, const std::string& model_type) {
  try {
    model_of(more, model_type);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

/// "wffw": which of the layers attend within the window, and n for those without positions.
std::string layers_of(const ModelSpec& model) {
  std::string letters;
  for (std::int64_t i = 0; i < model.layers; ++i)
    letters += has_window(model, i) ? 'w' : has_positions(model, i) ? 'f' : 'n';
  return letters;
}

TEST(LayerPatterns, ThePeriodIsTheShortestThatRepeats) {
  EXPECT_EQ(shortest_period("wwfwwfww"), "wwf");
  EXPECT_EQ(shortest_period("wwww"), "w");
  EXPECT_EQ(shortest_period("wfff"), "wfff");
  EXPECT_EQ(shortest_period(""), "");
}

TEST(LayerPatterns, FieldsSayWhatTheLettersSay) {
  for (const std::string letters :
       {"ffff", "wwww", "wwwf", "wfwf", "fwww", "wffw", "nfff", "wwwn", "fffn", "nnnn", "wwff"}) {
    ModelSpec model;
    model.layers = 4;
    set_attention_pattern(model, 128, letters);
    EXPECT_EQ(layers_of(model), letters);
    EXPECT_EQ(model.window > 0, letters.find('w') != std::string::npos) << letters;
  }
  for (const std::string letters : {"EEEE", "-EEE", "---E", "-E-E", "E-E-", "EE-E"}) {
    ModelSpec model;
    model.layers = 4;
    model.experts = 8;
    ASSERT_TRUE(set_expert_pattern(model, letters));
    std::string read;
    for (std::int64_t i = 0; i < 4; ++i) read += has_experts(model, i) ? 'E' : '-';
    EXPECT_EQ(read, letters);
    EXPECT_EQ(expert_layers_of(model), std::ranges::count(letters, 'E'));
  }
  ModelSpec none;
  EXPECT_FALSE(set_expert_pattern(none, "----"));
}

TEST(HuggingFaceWindows, AreReadWhereLayersHaveThem) {
  EXPECT_EQ(layers_of(model_of(R"("sliding_window": 4096)", "mistral")), "wwww");
  EXPECT_EQ(model_of(R"("sliding_window": 4096)", "mistral").window, 4096);
  EXPECT_EQ(layers_of(model_of(R"("sliding_window": null)", "mistral")), "ffff");
  EXPECT_EQ(layers_of(model_of(R"("sliding_window": 4096)", "qwen2")), "ffff")
      << "use_sliding_window is false";
  const std::string used = R"("sliding_window": 4096, "use_sliding_window": true)";
  EXPECT_EQ(layers_of(model_of(used, "qwen2")), "ffff") << "transformers begins at the 28th layer";
  EXPECT_EQ(layers_of(model_of(used + R"(, "max_window_layers": 0)", "qwen3")), "wwww");
  EXPECT_EQ(layers_of(model_of(used + R"(, "max_window_layers": 3)", "qwen2")), "fffw");
  EXPECT_EQ(layers_of(model_of(used + R"(, "max_window_layers": 4)", "qwen2")), "ffff");
}

/// What transformers' code does not read is said, and not simulated.
TEST(HuggingFaceWindows, OfLlamaItselfAreIgnoredAsItsCodeDoes) {
  const HuggingFaceModel read =
      read_hugging_face_config(llama(R"("sliding_window": 4096)", "llama"), "config.json");
  EXPECT_EQ(read.model.window, 0);
  EXPECT_THAT(read.harmless, Contains("sliding_window (LlamaForCausalLM does not read it)"));
  const HuggingFaceModel null =
      read_hugging_face_config(llama(R"("sliding_window": null)", "llama"), "config.json");
  EXPECT_THAT(null.harmless, Not(Contains(HasSubstr("does not read"))));
}

TEST(HuggingFaceBiases, AreThoseOfTheCodeWhereItReadsNoKey) {
  const std::string both = R"("attention_bias": true, "mlp_bias": true)";
  for (const std::string type : {"mistral", "phi3", "qwen2"}) {
    const HuggingFaceModel read = read_hugging_face_config(llama(both, type), "config.json");
    EXPECT_EQ(read.model.qkv_bias, type == "qwen2") << "which has them without a key";
    EXPECT_FALSE(read.model.output_bias || read.model.mlp_bias) << type;
    EXPECT_THAT(read.harmless, Contains(::testing::StartsWith("attention_bias ("))) << type;
    EXPECT_THAT(read.harmless, Contains(::testing::StartsWith("mlp_bias ("))) << type;
  }
  const ModelSpec llama = model_of(both, "llama");
  EXPECT_TRUE(llama.qkv_bias && llama.output_bias && llama.mlp_bias) << "LlamaAttention reads it";
}

TEST(HuggingFaceWindows, AnyListOfLayersIsRead) {
  const std::string list = R"("sliding_window": 512, "layer_types": ["full_attention",
    "sliding_attention", "sliding_attention", "full_attention"])";
  EXPECT_EQ(layers_of(model_of(list, "mistral")), "fwwf");
  EXPECT_EQ(layers_of(model_of(list, "olmo3")), "fwwf");
  EXPECT_EQ(model_of(list, "olmo3").window, 512);
}

TEST(HuggingFaceWindows, ListsThatLieAreRefusedWithTheirLine) {
  EXPECT_THAT(
      error_of(R"("sliding_window": 512, "layer_types": ["full_attention"])", "mistral"),
      HasSubstr("config.json:3: layer_types has 1 entries for 4 layers; give one for each"));
  EXPECT_THAT(error_of(R"("sliding_window": 512, "use_sliding_window": false, "layer_types":
      ["full_attention", "full_attention", "sliding_attention", "sliding_attention"])",
                       "qwen2"),
              HasSubstr("layer_types has layers with a window, and use_sliding_window is not true; "
                        "make both agree"));
  EXPECT_THAT(error_of(R"("sliding_window": -5)", "mistral"),
              HasSubstr("config.json:3: sliding_window is -5; use a whole number from 1"));
  EXPECT_THAT(
      error_of(R"("sliding_window": 5, "use_sliding_window": true, "max_window_layers": -3)",
               "qwen2"),
      HasSubstr("max_window_layers is -3"));
  EXPECT_THAT(error_of(R"("layer_types": ["sliding_attention", "full_attention", "full_attention",
                          "full_attention"])",
                       "mistral"),
              HasSubstr("layer_types has layers with a window, and there is no sliding_window"));
  EXPECT_THAT(error_of(R"("layer_types": ["linear_attention", "full_attention", "full_attention",
                          "full_attention"])",
                       "mistral"),
              HasSubstr("layer_types has \"linear_attention\", which is not simulated"));
}

TEST(HuggingFaceWindows, LayersWithoutPositions) {
  EXPECT_EQ(layers_of(model_of(R"("tie_word_embeddings": true)", "smollm3")), "fffn")
      << "every fourth by default";
  EXPECT_EQ(layers_of(model_of(R"("no_rope_layers": [1, 0, 1, 1])", "smollm3")), "fnff");
  EXPECT_EQ(layers_of(model_of(R"("sliding_window": 8, "sliding_window_pattern": 4)", "cohere2")),
            "wwwn")
      << "Cohere 2 turns what has a window";
  EXPECT_EQ(layers_of(model_of(R"("sliding_window": 8, "layer_types": ["sliding_attention",
      "sliding_attention", "sliding_attention", "full_attention"])",
                               "exaone4")),
            "wwwn");
  EXPECT_EQ(layers_of(model_of(R"("sliding_window": null)", "exaone4")), "ffff");
}

TEST(HuggingFaceWindows, ThePatternOfExaoneIsATextOrANumber) {
  const auto exaone = [](const std::string& more) {
    return layers_of(model_of(R"("sliding_window": 8)" + more, "exaone4"));
  };
  EXPECT_EQ(exaone(R"(, "sliding_window_pattern": "LLLG")"), "wwwn");
  EXPECT_EQ(exaone(R"(, "sliding_window_pattern": "LG")"), "wnwn");
  EXPECT_EQ(exaone(R"(, "sliding_window_pattern": "L")"), "wwwn") << "the last sees all tokens";
  EXPECT_EQ(exaone(R"(, "sliding_window_pattern": 2)"), "wnwn");
  EXPECT_EQ(exaone(""), "wwwn") << "every fourth by default";
  EXPECT_THAT(error_of(R"("sliding_window": 8, "sliding_window_pattern": "LX")", "exaone4"),
              HasSubstr("sliding_window_pattern is LX; use a number, or a text of L and G"));
}

TEST(HuggingFaceWindows, ExpertsInSomeLayers) {
  const std::string experts =
      R"("num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32, )";
  const ModelSpec model = model_of(experts + R"("decoder_sparse_step": 2)", "qwen3_moe");
  EXPECT_EQ(model.expert_pattern, "-E");
  EXPECT_EQ(model.ffn, 128);
  EXPECT_EQ(model.expert_ffn, 32);
  EXPECT_EQ(model_of(experts + R"("mlp_only_layers": [0, 1])", "qwen3_moe").dense_layers, 2);
  EXPECT_EQ(model_of(experts + R"("mlp_only_layers": [])", "qwen3_moe").ffn, 32);
  EXPECT_THAT(error_of(experts + R"("mlp_only_layers": [0, 1, 2, 3])", "qwen3_moe"),
              HasSubstr("decoder_sparse_step leaves no layer experts"));
  EXPECT_THAT(error_of(R"("num_local_experts": 8, "num_experts_per_tok": 12)", "mixtral"),
              HasSubstr("config.json:3: num_experts_per_tok = 12 exceeds num_local_experts = 8"));
}

TEST(ModelFeatures, AWindowThatHoldsTheSequenceIsNone) {
  const ModelSpec model = model_of(R"("sliding_window": 4096)", "mistral");
  EXPECT_THAT(fields_of_megatron_alone(model, 4096), ElementsAre());
  EXPECT_THAT(fields_of_megatron_alone(model, 4097), ElementsAre("window"));
  EXPECT_THAT(fields_of_megatron_alone(model), ElementsAre("window"));
  const ModelSpec unturned = model_of(R"("tie_word_embeddings": true)", "smollm3");
  EXPECT_THAT(fields_of_megatron_alone(unturned, 16), ElementsAre("attention_pattern"));
}

}  // namespace
}  // namespace tessera
