// Megatron-LM's arguments: vocabularies, positions and how experts are balanced.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/import/job/imported_job.h"
#include "hw/units/input_error.h"
#include "sim/config/files/yaml_text.h"

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string with(const std::string& arguments) {
  return "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 1024 "
         "--num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 "
         "--micro-batch-size 2 --global-batch-size 64 --bf16 " +
         arguments + "\n";
}

const std::string kExperts =
    "--normalization RMSNorm --disable-bias-linear --position-embedding-type rope "
    "--num-experts 8 --moe-grouped-gemm --moe-token-dispatcher-type alltoall ";

std::string yaml_of(const std::string& text, const JobOptions& options = {}) {
  return to_yaml(import_megatron(text, "job.sh", options).scenario);
}

std::string refusal_of(const std::string& text) {
  try {
    yaml_of(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(MegatronModel, PaddingOfTheVocabularyIsTheJobs) {
  EXPECT_THAT(yaml_of(with("")), HasSubstr("vocab: 50257"));
  EXPECT_THAT(yaml_of(with("--vocab-size 50257 --make-vocab-size-divisible-by 1024")),
              HasSubstr("vocab: 51200"));
  EXPECT_THAT(yaml_of(with("--pad-vocab-size-to 65536")), HasSubstr("vocab: 65536"));
  EXPECT_THAT(yaml_of(with("--padded-vocab-size 51200 --vocab-size 7")), HasSubstr("vocab: 51200"));
  EXPECT_THAT(refusal_of(with("--vocab-size 257 --make-vocab-size-divisible-by 1")),
              HasSubstr("gives an embedding of 257 rows: the simulated one has 384"));
  EXPECT_THAT(yaml_of(with("--vocab-size 50257 --make-vocab-size-divisible-by 1")),
              HasSubstr("the embedding has 50257 rows: a multiple of 128 for each tensor-parallel "
                        "rank, 50304, is simulated"));
  EXPECT_THAT(yaml_of(with("--vocab-size 1024 --tokenizer-type NullTokenizer")),
              HasSubstr("vocab: 1025"));
  EXPECT_THAT(refusal_of(with("--tokenizer-type HuggingFaceTokenizer --tokenizer-model /x/own")),
              HasSubstr("add --vocab"));
  EXPECT_THAT(yaml_of(with("--tokenizer-type HuggingFaceTokenizer --tokenizer-model /x/own"),
                      {.vocabulary = 1000}),
              HasSubstr("vocab: 1000"));
  EXPECT_THAT(yaml_of(with("--tokenizer-type HuggingFaceTokenizer --tokenizer-model "
                           "meta-llama/Llama-3.1-8B")),
              HasSubstr("vocab: 128256"));
  for (const auto& [version, rows] : {std::pair("v0.1", "32000"), std::pair("v0.3", "32768")})
    EXPECT_THAT(yaml_of(with("--tokenizer-type HuggingFaceTokenizer --tokenizer-model "
                             "mistralai/Mistral-7B-" +
                             std::string(version))),
                HasSubstr(std::string("vocab: ") + rows));
  EXPECT_THAT(yaml_of(with("--tokenizer-type HuggingFaceTokenizer --make-vocab-size-divisible-by "
                           "1187 --tokenizer-model Qwen/Qwen3-30B-A3B")),
              HasSubstr("vocab: 151936"));
  EXPECT_THAT(yaml_of(with("--tokenizer-type HuggingFaceTokenizer --make-vocab-size-divisible-by "
                           "3232 --tokenizer-model deepseek-ai/DeepSeek-V3")),
              HasSubstr("vocab: 129280"));
}

TEST(MegatronModel, AVocabularyThatIsNotKnownIsOneProblem) {
  EXPECT_THAT(refusal_of(with("--tokenizer-type HuggingFaceTokenizer --tokenizer-model /x/own "
                              "--make-vocab-size-divisible-by 1187")),
              AllOf(HasSubstr("add --vocab"), Not(HasSubstr("gives an embedding"))));
}

/// Rotary positions make family llama, whose norm, gate and biases are switches.
TEST(MegatronModel, SinkhornsRoundsAreRefusedByName) {
  EXPECT_EQ(refusal_of(with(kExperts + "--moe-router-load-balancing-type aux_loss seq_aux_loss")),
            "accepted");
  const std::string sinkhorn = with(kExperts + "--moe-router-load-balancing-type sinkhorn");
  EXPECT_THAT(refusal_of(sinkhorn), HasSubstr("--moe-router-load-balancing-type is sinkhorn"));
  EXPECT_THAT(yaml_of(sinkhorn, {.lenient = true}), HasSubstr("is sinkhorn"));
  EXPECT_THAT(refusal_of(with(kExperts + "--moe-router-load-balancing-type fair")),
              HasSubstr("--moe-router-load-balancing-type is not known: fair"));
}

TEST(MegatronModel, RotaryPositionsWithLayerNorms) {
  EXPECT_THAT(yaml_of(with("--position-embedding-type rope --squared-relu --disable-bias-linear")),
              AllOf(HasSubstr("family: llama"), HasSubstr("norm: layer_norm"),
                    HasSubstr("activation: relu_squared"), Not(HasSubstr("bias: true"))));
  EXPECT_THAT(yaml_of(with("--position-embedding-type rope")),
              AllOf(HasSubstr("activation: gelu\n"), HasSubstr("mlp_bias: true")));
}

}  // namespace
}  // namespace tessera
