// Adapters that TRL's options put beside a model.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/import/job/imported_job.h"
#include "hw/units/input_error.h"
#include "sim/config/load.h"
#include "tests/app/import/trainer_fixture.h"
#include "tests/app/import/yaml_leaves.h"

namespace tessera {
namespace {

using test::Fields;
using test::TrainerJob;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

class TrainerAdapters : public TrainerJob {
 protected:
  TrainerAdapters() : catalog_(std::filesystem::path(TESSERA_SOURCE_DIR) / "configs") {}
  ImportedJob adapted(const std::string& arguments) const {
    const JobOptions with_model = with_spec(options(), load_model("llama-3-8b", catalog_));
    return import_script(torchrun("--bf16 --max_length 2048 --use_peft " + arguments), "job.sh",
                         with_model);
  }
  std::string refused(const std::string& arguments) const {
    try {
      adapted(arguments);
    } catch (const InputError& error) {
      return error.what();
    }
    return "read";
  }

 private:
  Catalog catalog_;
};

TEST_F(TrainerAdapters, AreThoseOfItsOptions) {
  const ImportedJob job =
      adapted("--lora_r 32 --lora_alpha 16 --lora_dropout 0.0 --lora_target_modules all-linear");
  Fields all = test::leaves_of(job.scenario);
  EXPECT_EQ(all["training.lora_rank"], "32");
  EXPECT_EQ(all["training.lora_targets"], "all");
  EXPECT_EQ(all["training.base_weights"], "");
  EXPECT_THAT(job.approximate, testing::IsEmpty());
}

// transformers chooses sdpa by itself since 4.36; profile hf-eager is older.
TEST_F(TrainerAdapters, StandInLayersWithFusedAttentionUnlessToldOtherwise) {
  const ImportedJob job = adapted("");
  EXPECT_EQ(test::leaves_of(job.scenario)["training.framework.attention"], "flash2");
  EXPECT_THAT(job.assumed, Contains(HasSubstr("fused attention (sdpa)")));
  Fields eager = test::leaves_of(adapted("--attn_implementation eager").scenario);
  EXPECT_EQ(eager["training.framework.attention"], "unfused");
}

TEST_F(TrainerAdapters, AreTrlsOwnWhereNothingSaysOtherwise) {
  const ImportedJob job = adapted("--load_in_4bit --use_bnb_nested_quant");
  Fields all = test::leaves_of(job.scenario);
  EXPECT_EQ(all["training.lora_rank"], "16");
  EXPECT_EQ(all["training.base_weights"], "nf4_double_quant");
  EXPECT_EQ(all["training.lora_dropout"], "0.05");
  EXPECT_THAT(job.assumed, AllOf(Contains(HasSubstr("q_proj and v_proj")),
                                 Contains(HasSubstr("drop 5 % of their inputs"))));
}

// peft keeps factors in fp32 beside weights that are loaded in 16 bits; TRL casts them where
// weights have four. Of weights in fp32 all are.
TEST_F(TrainerAdapters, AreInFp32BesideWeightsIn16Bits) {
  Fields all = test::leaves_of(adapted("--torch_dtype bfloat16").scenario);
  EXPECT_EQ(all["training.base_weights"], "in_precision");
  EXPECT_EQ(all["training.mixed_precision.parameters"], "fp32");
  EXPECT_EQ(all["training.mixed_precision.optimizer_states"], "fp32");
  all = test::leaves_of(adapted("").scenario);
  EXPECT_EQ(all["training.base_weights"], "");
  EXPECT_EQ(all["training.mixed_precision.parameters"], "fp32");
  all = test::leaves_of(adapted("--load_in_4bit --optim paged_adamw_8bit").scenario);
  EXPECT_EQ(all["training.base_weights"], "nf4");
  EXPECT_EQ(all["training.mixed_precision.parameters"], "bf16");
  EXPECT_EQ(all["training.mixed_precision.optimizer_states"], "int8");
}

TEST_F(TrainerAdapters, MayBeDorasOrScaledByTheRootOfTheRank) {
  Fields all = test::leaves_of(adapted("--use_dora --lora_target_modules all-linear").scenario);
  EXPECT_EQ(all["training.dora"], "true");
  EXPECT_EQ(all["training.framework.extends"], "hf-eager");
  const auto at = adapted("--use_rslora");
  EXPECT_THAT(at.approximate, testing::IsEmpty());
  EXPECT_THAT(refused("--use_dora --load_in_4bit"),
              HasSubstr("job.sh:1: --use_dora beside --load_in_4bit"));
}

TEST_F(TrainerAdapters, AreRefusedByNameWhereNoFieldSaysThem) {
  EXPECT_THAT(refused("--lora_modules_to_save lm_head embed_tokens"),
              HasSubstr("job.sh:1: modules_to_save trains modules as a whole"));
  EXPECT_THAT(refused("--load_in_4bit --fsdp \"full_shard auto_wrap\""),
              HasSubstr("job.sh:1: --load_in_4bit of weights that FSDP divides"));
  EXPECT_THAT(refused("--load_in_8bit"), HasSubstr("job.sh:1: --load_in_8bit"));
}

}  // namespace
}  // namespace tessera
