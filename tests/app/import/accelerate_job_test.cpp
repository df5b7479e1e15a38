#include <map>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/import/job/imported_job.h"
#include "hw/units/input_error.h"
#include "tests/app/import/yaml_leaves.h"
#include "tests/hw/units/scratch.h"
#include "workloads/model_spec.h"

namespace tessera {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

const std::string kFsdp =
    "distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 8\nfsdp_config:\n"
    "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n";

ImportedJob import(const std::string& text) {
  JobOptions options;
  options.model = "llama-3-8b";
  return import_accelerate(text, "job.yaml", options);
}

TEST(AccelerateJob, VersionTwoOfFsdpCopiesWeightsOutOfTheirBuffer) {
  auto first = test::leaves_of(import(kFsdp + "  fsdp_version: 1\n").scenario);
  EXPECT_EQ(first["training.framework"], "fsdp");
  auto second = test::leaves_of(import(kFsdp + "  fsdp_version: 2\n").scenario);
  EXPECT_EQ(second["training.framework.extends"], "fsdp");
  EXPECT_EQ(second["training.framework.copies_gathered"], "true");
  EXPECT_THROW(import(kFsdp + "  fsdp_version: 3\n"), InputError);
}

// set_mixed_precision() of accelerate's FSDP plugin: param_dtype and reduce_dtype alike.
TEST(AccelerateJob, FsdpReducesInTheFormatThatItComputesIn) {
  const ImportedJob job = import(kFsdp);
  EXPECT_EQ(test::leaves_of(job.scenario)["training.mixed_precision.reduce"], "bf16");
  EXPECT_THAT(job.assumed, Contains(HasSubstr("gradients are reduced in bf16")));
  const std::string exact =
      "distributed_type: FSDP\nmixed_precision: 'no'\nnum_processes: 8\nfsdp_config: {}\n";
  EXPECT_FALSE(test::leaves_of(import(exact).scenario).contains("training.mixed_precision.reduce"));
}

TEST(AccelerateJob, FsdpAccumulatesWholeGradientsUnderNoSync) {
  const ImportedJob job = import("gradient_accumulation_steps: 4\n" + kFsdp);
  auto fields = test::leaves_of(job.scenario);
  EXPECT_EQ(fields["training.data_parallel.reduce_each_micro_batch"], "false");
  EXPECT_EQ(fields["training.global_batch"], "32");
  EXPECT_THAT(job.assumed, Contains(HasSubstr("under no_sync")));
}

std::string refusal(const std::string& text) {
  try {
    import(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

const std::string kFp8 =
    "distributed_type: FSDP\nmixed_precision: fp8\nnum_processes: 8\nfsdp_config:\n"
    "  fsdp_version: 2\n";

// 2 replicas of 2 shards of 2 context ranks: states are divided by 4.
TEST(AccelerateJob, RanksOfAContextGroupDivideStates) {
  JobOptions options;
  options.model = "llama-3-8b";
  options.framework = "torchtitan";
  auto fields =
      test::leaves_of(import_accelerate(kFsdp + "  fsdp_version: 2\nparallelism_config:\n"
                                                "  parallelism_config_dp_replicate_size: 2\n"
                                                "  parallelism_config_dp_shard_size: 2\n"
                                                "  parallelism_config_cp_size: 2\n",
                                        "job.yaml", options)
                          .scenario);
  EXPECT_EQ(fields["training.data_parallel.shard_group"], "4");
  EXPECT_EQ(fields["parallelism.data"], "4");
}

// transformers' tp_plan is what the profiles of its modules run; they cut no sequences.
TEST(AccelerateJob, TensorRanksSplitHuggingFacesModulesAndContextRanksDoNot) {
  const std::string sizes =
      "  fsdp_version: 2\nparallelism_config:\n  parallelism_config_tp_size: 2\n"
      "  parallelism_config_dp_shard_size: 4\n";
  auto fields = test::leaves_of(import(kFsdp + sizes).scenario);
  EXPECT_EQ(fields["parallelism.tensor"], "2");
  EXPECT_EQ(fields["parallelism.data"], "4");
  EXPECT_THAT(
      refusal(kFsdp + "  fsdp_version: 2\nparallelism_config:\n  parallelism_config_cp_size: 2\n"),
      testing::AllOf(HasSubstr("parallelism_config_cp_size"), HasSubstr("splits sequences")));
}

// MS-AMP keeps gradients and moments in fp8; Transformer Engine takes scales of earlier steps,
// torchao those of the matrix itself.
TEST(AccelerateJob, TheLibraryOfFp8DecidesHowItScales) {
  auto engine = test::leaves_of(import(kFp8 + "fp8_config:\n  backend: TE\n").scenario);
  EXPECT_EQ(engine["training.precision"], "fp8");
  EXPECT_EQ(engine["training.framework.fp8_scaling"], "delayed");
  EXPECT_EQ(engine["training.framework.copies_gathered"], "true");
  auto torchao = test::leaves_of(
      import(kFp8 + "fp8_config:\n  backend: AO\n  enable_fsdp_float8_all_gather: true\n")
          .scenario);
  EXPECT_EQ(torchao["training.framework.fp8_scaling"], "current");
  EXPECT_EQ(torchao["training.data_parallel.gather_fp8"], "true");
  EXPECT_THAT(refusal(kFp8 + "fp8_config:\n  backend: MSAMP\n  opt_level: O2\n"),
              testing::AllOf(HasSubstr("job.yaml:7"), HasSubstr("fp8_config.backend = MSAMP")));
}

// Under autocast weights, gradients and moments stay fp32, whatever products are in.
TEST(AccelerateJob, Fp8WithoutShardsHoldsWhatAutocastHolds) {
  const std::string job = "distributed_type: MULTI_GPU\nnum_processes: 8\nmixed_precision: ";
  const std::string section = "fp8_config:\n  backend: MSAMP\n";
  auto fields = test::leaves_of(import(job + "fp8\nfp8_config:\n  backend: TE\n").scenario);
  EXPECT_EQ(fields["training.mixed_precision.parameters"], "fp32");
  EXPECT_EQ(fields["training.mixed_precision.optimizer_states"], "fp32");
  EXPECT_EQ(refusal(job + "bf16\n" + section), "");  // a section that nothing asks for
  EXPECT_THAT(refusal("distributed_type: DEEPSPEED\nmixed_precision: fp8\n"
                      "deepspeed_config:\n  zero_stage: 2\n"),
              HasSubstr("mixed_precision = fp8 under DeepSpeed"));
}

TEST(AccelerateJob, InductorMergesPointwiseKernels) {
  const std::string section = "dynamo_config:\n  dynamo_backend: ";
  auto compiled = test::leaves_of(
      import(kFsdp + section + "INDUCTOR\n  dynamo_mode: default\n  dynamo_use_dynamic: false\n")
          .scenario);
  EXPECT_EQ(compiled["training.kernels"], "fused");
  auto eager = test::leaves_of(import(kFsdp + section + "'NO'\n").scenario);
  EXPECT_FALSE(eager.contains("training.kernels"));
  EXPECT_THAT(refusal(kFsdp + section + "INDUCTOR\n  dynamo_mode: reduce-overhead\n"),
              HasSubstr("dynamo_config.dynamo_mode = reduce-overhead"));
  EXPECT_THAT(refusal(kFsdp + section + "CUDAGRAPHS\n"), HasSubstr("other"));
}

// Of offload_optimizer only what says how bytes move is harmless.
TEST(DeepspeedJob, ASwitchOfOffloadThatIsNotKnownIsRefused) {
  const auto with = [](const std::string& key) {
    JobOptions options;
    options.model = "llama-3-8b";
    options.gpus = 8;
    return import_deepspeed(
        R"({"bf16": {"enabled": true}, "train_micro_batch_size_per_gpu": 1, "zero_optimization":)"
        R"({"stage": 3, "offload_optimizer": {"device": "cpu", )" +
            key + "}}}",
        "ds.json", options);
  };
  auto known = test::leaves_of(with(R"("pin_memory": true, "buffer_count": 4)").scenario);
  EXPECT_EQ(known["training.offload_optimizer"], "true");
  try {
    with(R"("super_offload": true)");
    ADD_FAILURE() << "SuperOffload updates beside backward";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("offload_optimizer.super_offload = true"));
  }
}

TEST(AccelerateJob, ParametersThatFsdpOffloadsAreUpdatedByTheCpu) {
  auto fields = test::leaves_of(import(kFsdp + "  fsdp_offload_params: true\n").scenario);
  EXPECT_EQ(fields["training.offload_parameters"], "true");
  EXPECT_EQ(fields["training.offload_optimizer"], "true");
  EXPECT_THAT(refusal(kFsdp + "  fsdp_offload_params: true\n  fsdp_sharding_strategy: NO_SHARD\n"),
              HasSubstr("fsdp_offload_params = true of weights that are not divided"));
}

/// What it says of memory, of a job whose `zero_optimization` is this.
std::map<std::string, std::string> offloaded_by(const std::string& zero) {
  JobOptions options;
  options.model = "llama-3-8b";
  options.gpus = 8;
  const std::string text =
      R"({"bf16": {"enabled": true}, "train_micro_batch_size_per_gpu": 1, "zero_optimization": {)" +
      zero + "}}";
  return test::leaves_of(import_deepspeed(text, "ds.json", options).scenario);
}

const std::string kParam = R"("offload_param": {"device": "cpu", "pin_memory": true})";
const std::string kStates = R"(, "offload_optimizer": {"device": "cpu"})";

TEST(DeepspeedJob, OffloadedParametersAreStageThreesAndTheCpuUpdatesThem) {
  auto whole = offloaded_by(R"("stage": 3, )" + kParam + kStates);
  EXPECT_EQ(whole["training.offload_parameters"], "true");
  EXPECT_EQ(whole["training.offload_optimizer"], "true");
  // DeepSpeed says of offload_param: "valid only with stage 3".
  EXPECT_FALSE(
      offloaded_by(R"("stage": 2, )" + kParam + kStates).contains("training.offload_parameters"));
  EXPECT_THROW(offloaded_by(R"("stage": 3, )" + kParam), InputError);
  EXPECT_THROW(offloaded_by(R"("stage": 3, "offload_param": {"device": "nvme"})" + kStates),
               InputError);
}

// Until version 0.5 both were switches.
TEST(DeepspeedJob, OldSwitchesOfOffloadMeanTheSame) {
  auto states = offloaded_by(R"("stage": 2, "cpu_offload": true)");
  EXPECT_EQ(states["training.offload_optimizer"], "true");
  auto all = offloaded_by(R"("stage": 3, "cpu_offload": true, "cpu_offload_params": true)");
  EXPECT_EQ(all["training.offload_parameters"], "true");
}

// Without ZeRO, or with stage 1 and fp32 sums, bf16 runs under BF16_Optimizer, whose states ranks
// divide; fp16 without ZeRO does not.
TEST(DeepspeedJob, Bf16WithoutZeroDividesTheStatesAllTheSame) {
  const std::string kDivided = "training.data_parallel.sharding";
  const std::string kCopies = "training.framework.deepspeed_zero";
  auto fields = offloaded_by(R"("stage": 0)");
  EXPECT_EQ(fields[kDivided], "optimizer");
  EXPECT_EQ(fields[kCopies], "true");
  EXPECT_EQ(fields["training.mixed_precision.gradients"], "fp32");
  fields = offloaded_by(R"("stage": 1)");
  EXPECT_EQ(fields["training.mixed_precision.gradients"], "bf16");
  EXPECT_EQ(fields[kCopies], "");
  fields = offloaded_by(R"("stage": 1}, "data_types": {"grad_accum_dtype": "fp32")");
  EXPECT_EQ(fields["training.mixed_precision.gradients"], "fp32");
  EXPECT_EQ(fields[kCopies], "true");
  EXPECT_THROW(offloaded_by(R"("stage": 0}, "data_types": {"grad_accum_dtype": "bf16")"),
               InputError);
  JobOptions options{.model = "llama-3-8b", .gpus = 8};
  const std::string half = R"({"fp16": {"enabled": true}, "train_micro_batch_size_per_gpu": 1})";
  EXPECT_EQ(test::leaves_of(import_deepspeed(half, "ds.json", options).scenario)[kDivided], "none");
}

TEST(DeepspeedJob, NullIsNoYes) {
  JobOptions options;
  options.model = "gpt2-large";
  const std::string config =
      R"({"train_batch_size": 8, "bf16": {"enabled": null}, "fp16": {"enabled": true}})";
  auto fields = test::leaves_of(import_deepspeed(config, "ds.json", options).scenario);
  EXPECT_EQ(fields["training.precision"], "fp16");
}

TEST(DeepspeedJob, SaysEachIgnoredKeyOnce) {
  JobOptions options{.model = "llama-3-8b", .gpus = 8};
  const ImportedJob job = import_deepspeed(
      R"({"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": "auto"}}})",
      "ds.json", options);
  EXPECT_THAT(job.ignored, ::testing::ElementsAre("optimizer.params.lr = auto"));
}

// accelerate's own number, where DeepSpeed's file leaves it to the launcher.
TEST(AccelerateJob, MicroBatchesThatDeepSpeedsFileLeavesOpenAreAccelerates) {
  const ScratchFolder folder;
  folder.write("ds.json", R"({"train_micro_batch_size_per_gpu": 2, "zero_optimization":
      {"stage": 2}, "gradient_accumulation_steps": "auto", "train_batch_size": "auto"})");
  JobOptions options{.model = "llama-3-8b"};
  options.folder = folder.path();
  auto fields = test::leaves_of(
      import_accelerate("distributed_type: DEEPSPEED\nnum_processes: 8\nmixed_precision: bf16\n"
                        "gradient_accumulation_steps: 4\n"
                        "deepspeed_config: {deepspeed_config_file: ds.json}\n",
                        "a.yaml", options)
          .scenario);
  EXPECT_EQ(fields["training.global_batch"], "64");  // 2 x 4 x 8
}

// A job of the Trainer, of accelerate and of DeepSpeed run the same modules.
TEST(AccelerateJob, AttendsAsTransformersChooses) {
  JobOptions options;
  options.model = "llama-3-8b";
  options.gpus = 8;
  options.spec = std::make_shared<const ModelSpec>();
  const auto attention = [&](const ImportedJob& job) {
    return test::leaves_of(job.scenario)["training.framework.attention"];
  };
  const std::string plain = "distributed_type: MULTI_GPU\nmixed_precision: ";
  const auto accelerate = [&](const std::string& text) {
    return import_accelerate(text, "job.yaml", options);
  };
  const std::string zero = R"({"zero_optimization": {"stage": 3}, "bf16": {"enabled": )";
  const auto deepspeed = [&](const std::string& text) {
    return import_deepspeed(text, "ds.json", options);
  };
  EXPECT_EQ(attention(accelerate(plain + "bf16\n")), "flash2");
  EXPECT_EQ(attention(deepspeed(zero + "true}}")), "flash2");
  EXPECT_THAT(accelerate(plain + "'no'\n").approximate, Contains(HasSubstr("attention in fp32")));
  EXPECT_THAT(deepspeed(zero + "false}}").approximate, Contains(HasSubstr("attention in fp32")));
  EXPECT_EQ(attention(accelerate(kFsdp)), "");  // its profile has it
  options.framework = "hf-eager";
  EXPECT_EQ(attention(accelerate(plain + "bf16\n")), "");
}

}  // namespace
}  // namespace tessera
