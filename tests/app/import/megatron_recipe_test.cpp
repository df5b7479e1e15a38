// Megatron-LM's arguments of recipes of 2025 and 2026.
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

const std::string kLlama =
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
    "--num-attention-heads 32 --ffn-hidden-size 11008 --seq-length 4096 "
    "--max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 128 --bf16 "
    "--normalization RMSNorm --swiglu --disable-bias-linear --position-embedding-type rope "
    "--untie-embeddings-and-output-weights --vocab-size 32000 ";

std::string yaml_of(const std::string& arguments) {
  return to_yaml(import_megatron(kLlama + arguments + "\n", "job.sh", {}).scenario);
}

std::string refusal_of(const std::string& arguments) {
  try {
    yaml_of(arguments);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(MegatronRecipe, TokensTravelByDeepEpAndHybridEpAndBesideOtherMicroBatches) {
  const std::string flexible =
      "--num-experts 8 --moe-grouped-gemm --moe-token-dispatcher-type flex "
      "--expert-model-parallel-size 4 ";
  EXPECT_THAT(yaml_of(flexible + "--moe-enable-deepep"), HasSubstr("expert_dispatcher: deepep"));
  EXPECT_THAT(yaml_of(flexible + "--moe-flex-dispatcher-backend hybridep "
                                 "--overlap-moe-expert-parallel-comm"),
              AllOf(HasSubstr("expert_dispatcher: hybridep"), HasSubstr("overlap_experts: true")));
  EXPECT_THAT(refusal_of(flexible + "--moe-flex-dispatcher-backend other"),
              HasSubstr("deepep and hybridep are"));
}

TEST(MegatronRecipe, FusedLossesAndRouters) {
  EXPECT_THAT(yaml_of("--cross-entropy-loss-fusion"), HasSubstr("loss_fusion: native"));
  EXPECT_THAT(yaml_of("--cross-entropy-loss-fusion --cross-entropy-fusion-impl te"),
              HasSubstr("loss_fusion: te"));
  EXPECT_THAT(yaml_of("--cross-entropy-fusion-impl te"), Not(HasSubstr("loss_fusion")));
  EXPECT_THAT(refusal_of("--cross-entropy-loss-fusion --cross-entropy-fusion-impl linear"),
              HasSubstr("use native or te"));
  EXPECT_THAT(yaml_of("--num-experts 8 --moe-grouped-gemm --moe-router-fusion"),
              HasSubstr("fused_router: true"));
}

TEST(MegatronRecipe, FourBitsAndLayersInBf16) {
  EXPECT_THAT(yaml_of("--fp4-format e2m1 --first-last-layers-bf16 "
                      "--num-layers-at-start-in-bf16 0 --num-layers-at-end-in-bf16 4"),
              AllOf(HasSubstr("precision: \"nvfp4\""), HasSubstr("bf16_layers_first: 0"),
                    HasSubstr("bf16_layers_last: 4")));
}

}  // namespace
}  // namespace tessera
