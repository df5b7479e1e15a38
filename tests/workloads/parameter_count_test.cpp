#include "workloads/parameter_count.h"

#include <gtest/gtest.h>

#include "tests/workloads/models.h"
#include "workloads/model_graph.h"

namespace tessera {
namespace {

TEST(ParameterCount, MatchesPublishedModels) {
  EXPECT_EQ(parameter_count(test::gpt2_large()), 774'030'080);  // Hugging Face gpt2-large
  EXPECT_NEAR(static_cast<double>(parameter_count(test::gpt3_175b())), 175e9, 0.5e9);
  // BertForPreTraining of bert-large-uncased; its encoder with pooler alone: 335'141'888
  EXPECT_EQ(parameter_count(test::bert_large()), 336'226'108);
  EXPECT_EQ(parameter_count(test::llama2_7b()), 6'738'415'616);
  EXPECT_EQ(parameter_count(test::opt_1_3b()), 1'315'758'080);
  EXPECT_EQ(parameter_count(test::bloom_176b()), 176'247'271'424);  // bigscience/bloom
  EXPECT_EQ(parameter_count(test::mpt_7b()), 6'649'286'656);        // mosaicml/mpt-7b
}

TEST(ParameterCount, OfRoutedExpertsThoseThatATokenMeetsAreActive) {
  ModelSpec mixtral = test::llama2_7b();  // Mixtral-8x7B: 46.7B, of which 12.9B active
  mixtral.kv_heads = 8;
  mixtral.ffn = 14336;
  mixtral.experts = 8;
  mixtral.experts_per_token = 2;
  EXPECT_EQ(parameter_counts(mixtral).total, 46'702'792'704);
  EXPECT_EQ(parameter_counts(mixtral).active, 12'879'925'248);
  EXPECT_EQ(to_text(parameter_counts(mixtral)), "46.70 billion parameters, 12.88 billion active");
  EXPECT_EQ(to_text(parameter_counts(test::gpt2_large())), "774.03 million parameters");
  // one expert of each sparse layer
  ModelSpec dense = test::switch_xl4();
  dense.experts = 0;
  const std::int64_t routers = parameter_counts(test::switch_xl4()).active - parameter_count(dense);
  EXPECT_GT(routers, 0);
  EXPECT_LT(routers, 48 * 4 * dense.hidden + 1);
}

class FamilyGraph : public ::testing::TestWithParam<ModelSpec> {};

TEST_P(FamilyGraph, HoldsTheParametersOfTheClosedForm) {
  const StepOptions step = test::single_gpu(test::hf_eager(), StepMode::training, 2, 512);
  EXPECT_EQ(build_model_graph(GetParam(), step).parameters(), parameter_count(GetParam()));
}

TEST_P(FamilyGraph, NumbersItsLayersAndNothingElse) {
  const StepOptions step = test::single_gpu(test::hf_eager(), StepMode::training, 2, 512);
  const ModelGraph graph = build_model_graph(GetParam(), step);
  ASSERT_EQ(graph.layer_numbers.size(), graph.order.size());
  int next = 0;
  for (std::size_t position = 0; position < graph.order.size(); ++position) {
    const std::string& name = graph.at(static_cast<int>(position)).name;
    const bool layer = name.ends_with("layer");
    EXPECT_EQ(graph.layer_numbers[position], layer ? next++ : kNoLayer) << name;
  }
  EXPECT_EQ(next, GetParam().layers + GetParam().encoder_layers);
}

std::vector<ModelSpec> one_of_each_family() {
  ModelSpec untied = test::gpt2_large();
  untied.name = "gpt2-untied";
  untied.tied_embeddings = false;
  ModelSpec grouped = test::llama2_7b();
  grouped.name = "llama-gqa";
  grouped.kv_heads = 8;
  ModelSpec biased = grouped;
  biased.name = "llama-qkv-bias";
  biased.qkv_bias = true;
  ModelSpec normed = grouped;
  normed.name = "llama-qk-norm";
  normed.qk_norm = true;
  ModelSpec placeless = test::gpt2_large();
  placeless.name = "gpt2-without-positions";
  placeless.max_positions = 0;
  return {test::gpt2_large(),
          untied,
          placeless,
          test::bert_large(),
          test::opt_1_3b(),
          grouped,
          biased,
          normed,
          test::llama2_7b(),
          test::switch_xl4(),
          test::bloom_176b(),
          test::mpt_7b()};
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyGraph, ::testing::ValuesIn(one_of_each_family()),
                         [](const auto& test) {
                           std::string name = test.param.name;
                           std::erase_if(name, [](char c) { return !std::isalnum(c); });
                           return name;
                         });

}  // namespace
}  // namespace tessera
