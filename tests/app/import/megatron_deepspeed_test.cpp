// Megatron-DeepSpeed: what its configuration says beside the arguments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/import/job/imported_job.h"
#include "hw/units/input_error.h"
#include "tests/app/import/yaml_leaves.h"

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

/// 8 GPUs, 4 micro-batches of 2 for each.
std::string script_with(const std::string& config, const std::string& more = "--bf16") {
  return "cat <<EOT > ds.json\n{" + config +
         "}\nEOT\ntorchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 1024 "
         "--num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 "
         "--micro-batch-size 2 --global-batch-size 64 --deepspeed --deepspeed_config ds.json " +
         more + "\n";
}

ImportedJob job_with(const std::string& config, const std::string& more = "--bf16") {
  return import_megatron(script_with(config, more), "job.sh", {});
}

std::map<std::string, std::string> leaves_with(const std::string& config,
                                               const std::string& more = "--bf16") {
  return test::leaves_of(job_with(config, more).scenario);
}

std::string refusal_of(const std::string& config, const std::string& more = "--bf16") {
  try {
    job_with(config, more);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

const std::string kUsual = R"("bf16": {"enabled": true}, "zero_optimization": {"stage": 1}, )";

TEST(MegatronDeepSpeed, BatchesOfItsFileHaveToBeTheArguments) {
  EXPECT_EQ(refusal_of(kUsual + R"("train_batch_size": 64, "train_micro_batch_size_per_gpu": 2,
      "gradient_accumulation_steps": 4, "steps_per_print": 10)"),
            "accepted");
  EXPECT_THAT(refusal_of(kUsual + R"("train_batch_size": 128)"),
              AllOf(HasSubstr("ds.json:"), HasSubstr("train_batch_size is 128"),
                    HasSubstr("the arguments say 64")));
  EXPECT_THAT(refusal_of(kUsual + R"("train_micro_batch_size_per_gpu": 4)"),
              HasSubstr("train_micro_batch_size_per_gpu is 4"));
  EXPECT_THAT(refusal_of(kUsual + R"("gradient_accumulation_steps": 8)"),
              AllOf(HasSubstr("gradient_accumulation_steps is 8"), HasSubstr("say 4")));
}

TEST(MegatronDeepSpeed, PrecisionOfItsFileHasToBeTheArguments) {
  EXPECT_THAT(refusal_of(R"("fp16": {"enabled": true}, "zero_optimization": {"stage": 1})"),
              HasSubstr("fp16.enabled is true, and the arguments say bf16"));
  EXPECT_THAT(refusal_of(R"("bf16": {"enabled": true})", "--fp16"), HasSubstr("bf16.enabled"));
  EXPECT_TRUE(job_with(kUsual).approximate.empty());
  EXPECT_THAT(job_with(R"("zero_optimization": {"stage": 1})").approximate,
              Contains(HasSubstr("does not enable bf16")));
}

TEST(MegatronDeepSpeed, WhatItsEngineDoesIsRead) {
  auto leaves =
      leaves_with(kUsual.substr(0, kUsual.find("1}")) +
                  R"(1, "overlap_comm": true, "reduce_bucket_size": 1e6}, "gradient_clipping": 0.0,
         "communication_data_type": "fp32", "data_types": {"grad_accum_dtype": "fp32"})");
  EXPECT_EQ(leaves["training.data_parallel.overlap_gradients"], "true");
  EXPECT_EQ(leaves["training.data_parallel.bucket"], "2000000 B");
  EXPECT_EQ(leaves["training.clip_gradients"], "false");
  EXPECT_EQ(leaves["training.mixed_precision.reduce"], "fp32");
  EXPECT_EQ(leaves["training.mixed_precision.gradients"], "fp32");
  EXPECT_EQ(leaves_with(kUsual + R"("gradient_clipping": 1.0)")["training.clip_gradients"], "");
}

TEST(MegatronDeepSpeed, WhatIsNotSimulatedOrNotKnownInItsFileIsRefused) {
  EXPECT_THAT(refusal_of(R"("zero_optimization": {"stage": 3, "zero_quantized_gradients": true})"),
              HasSubstr("zero_optimization.zero_quantized_gradients = true quantizes"));
  EXPECT_THAT(refusal_of(kUsual + R"("curriculum_learning": {"enabled": true})"),
              HasSubstr("curriculum_learning.enabled"));
  EXPECT_THAT(refusal_of(kUsual + R"("gradient_acumulation_steps": 4)"),
              HasSubstr("gradient_acumulation_steps = 4 is not known"));
  EXPECT_THAT(refusal_of(kUsual + R"("zero_hpz": 8)"), Not("accepted"));
  EXPECT_THAT(job_with(kUsual + R"("optimizer": {"type": "Lion"})").ignored,
              Contains(HasSubstr("optimizer.type = Lion: Megatron's own")));
}

}  // namespace
}  // namespace tessera
