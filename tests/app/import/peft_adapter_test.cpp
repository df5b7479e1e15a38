#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/import/job/imported_job.h"
#include "hw/units/input_error.h"
#include "tests/app/import/yaml_leaves.h"
#include "tests/hw/units/scratch.h"

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kLlama = R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100})";
const std::string kMixtral = R"({"model_type": "mixtral", "hidden_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
    "vocab_size": 100, "num_local_experts": 4, "num_experts_per_tok": 2})";
const std::string kAllOfAttention = R"(["q_proj", "k_proj", "v_proj", "o_proj"])";

/// `more` begins with a comma.
std::string adapter(const std::string& targets, const std::string& more = "") {
  return R"({"peft_type": "LORA", "r": 16, "target_modules": )" + targets + more + "}";
}

ImportedJob import(const std::string& text, bool lenient = false,
                   const std::string& model = kLlama) {
  const ScratchFolder folder;
  JobOptions options;
  options.adapter = folder.write("adapter_config.json", text);
  options.lenient = lenient;
  return import_hugging_face(folder.write("config.json", model), options);
}

std::string refusal(const std::string& text, const std::string& model = kLlama) {
  try {
    import(text, false, model);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

/// lora_targets of the scenario.
std::string targets_of(const std::string& targets) {
  return test::leaves_of(import(adapter(targets)).scenario)["training.lora_targets"];
}

/// lora_modules of the scenario, with blanks between.
std::string modules_of(const std::string& targets) {
  const ImportedJob job = import(adapter(targets));
  const YamlEntry* training = job.scenario.find("training");
  const YamlEntry* modules = training == nullptr ? nullptr : training->value.find("lora_modules");
  std::string text;
  if (modules == nullptr) return text;
  for (const YamlNode& item : modules->value.items) text += (text.empty() ? "" : " ") + item.text;
  return text;
}

TEST(PeftAdapter, BecomesAdaptersUnderMegatronWhereTheModelHasExperts) {
  const ImportedJob job = import(adapter(kAllOfAttention, R"(, "lora_alpha": 32, "bias": "none",
      "lora_dropout": 0.0, "modules_to_save": null, "rank_pattern": {}, "use_dora": true,
      "task_type": "CAUSAL_LM", "inference_mode": true)"),
                                 false, kMixtral);
  auto fields = test::leaves_of(job.scenario);
  EXPECT_EQ(fields["training.lora_rank"], "16");
  EXPECT_EQ(fields["training.lora_targets"], "attention");
  EXPECT_EQ(fields["training.dora"], "true");
  EXPECT_EQ(fields["training.framework"], "megatron");
  EXPECT_THAT(job.ignored, AllOf(Contains("lora_alpha"), Contains("inference_mode")));
  EXPECT_THAT(job.approximate, Contains(HasSubstr("queries, keys and values are one")));
}

TEST(PeftAdapter, StandsBesideTheLayersOfTransformers) {
  const ImportedJob job =
      import(adapter("\"all-linear\"", R"(, "use_dora": true, "lora_dropout": 0.1)"));
  auto fields = test::leaves_of(job.scenario);
  EXPECT_EQ(fields["training.framework.extends"], "hf-eager");
  EXPECT_EQ(fields["training.framework.attention"], "flash2");
  EXPECT_EQ(fields["training.dora"], "true");
  EXPECT_EQ(fields["training.lora_dropout"], "0.1");
  EXPECT_EQ(fields["training.base_weights"], "in_precision");
  EXPECT_EQ(fields["training.mixed_precision.parameters"], "fp32");
  EXPECT_THAT(job.approximate, Not(Contains(HasSubstr("queries, keys and values are one"))));
  const ImportedJob experts = import(adapter(kAllOfAttention), false, kMixtral);
  EXPECT_EQ(test::leaves_of(experts.scenario)["training.framework"], "megatron");
}

TEST(PeftAdapter, TargetsAreNamesAPatternOrAllLinearLayers) {
  EXPECT_EQ(targets_of("\"all-linear\""), "all");
  EXPECT_EQ(targets_of(R"(["qkv_proj", "o_proj"])"), "attention");
  EXPECT_EQ(modules_of(R"(["q_proj", "v_proj"])"), "q_proj v_proj");
  EXPECT_EQ(modules_of(R"(["model.layers.0.mlp.up_proj"])"), "up_proj");
  EXPECT_EQ(modules_of(kAllOfAttention), "k_proj o_proj q_proj v_proj");
  EXPECT_EQ(modules_of(R"(".*\\.self_attn\\.(q|v)_proj")"), "q_proj v_proj");
  EXPECT_EQ(targets_of(R"(".*_proj")"), "all");
  EXPECT_THAT(refusal(adapter(R"("(")")), HasSubstr("is no regular expression"));
  for (const char* endless : {R"("((.*)*)*x")", R"(".*.*.*.*x")"})
    EXPECT_THAT(refusal(adapter(endless)), HasSubstr("or repeats a group; write a list of names"));
}

TEST(PeftAdapter, APartOfTheLayersIsRefusedByName) {
  EXPECT_THAT(refusal(adapter(R"(["qkv_proj"])")), HasSubstr("target_modules has qkv_proj alone"));
  EXPECT_THAT(refusal(adapter(kAllOfAttention, R"(, "lora_dropout": 0.1)"), kMixtral),
              HasSubstr("lora_dropout drops inputs"));
  EXPECT_THAT(refusal(adapter(R"(["q_proj", "k_proj", "v_proj", "o_proj", "lm_head"])")),
              HasSubstr("has lm_head, of which adapters are not simulated"));
  EXPECT_THAT(refusal(R"({"peft_type": "LORA", "r": 8, "target_modules": null})"),
              HasSubstr("target_modules is missing"));
  EXPECT_THAT(refusal(adapter("\"all-linear\""), kMixtral), HasSubstr("routed experts"));
}

TEST(PeftAdapter, WhatAStepDependsOnIsRefusedByNameAndLineOrApproximated) {
  for (const std::string said :
       {R"("bias": "all")", R"("modules_to_save": ["embed_tokens"])",
        R"("layers_to_transform": [0])", R"("rank_pattern": {"q_proj": 4})",
        R"("exclude_modules": "lm_head")", R"("task_type": "SEQ_CLS")", R"("brand_new": 1)"}) {
    const std::string text = adapter(kAllOfAttention, ",\n" + said);
    const std::string key = said.substr(1, said.find('"', 1) - 1);
    EXPECT_THAT(refusal(text),
                AllOf(HasSubstr("adapter_config.json:2:1: " + key + " "), HasSubstr("--lenient")));
    EXPECT_THAT(import(text, true).approximate, Contains(HasSubstr(key)));
  }
  EXPECT_THAT(refusal(R"({"peft_type": "IA3", "target_modules": "all-linear"})"),
              HasSubstr("peft_type is IA3, which is not simulated; known: LORA"));
}

}  // namespace
}  // namespace tessera
