#include <map>
#include <string>

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

const std::string kModel = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n";
const std::string kNoCheckpoints = "[activation_checkpoint]\nmode = \"none\"\n";

ImportedJob import(const std::string& text, const JobOptions& options = {}) {
  return import_torchtitan(text, "job.toml", options);
}

std::map<std::string, std::string> fields_of_job(const std::string& text,
                                                 const JobOptions& options = {}) {
  return test::leaves_of(import(text, options).scenario);
}
std::string refusal(const std::string& text, const JobOptions& options = {}) {
  try {
    import(text, options);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(TorchtitanJob, BecomesAScenario) {
  auto job = fields_of_job(kModel + R"([training]
local_batch_size = 2
seq_len = 8192
[parallelism]
data_parallel_shard_degree = 16
tensor_parallel_degree = 4
enable_async_tensor_parallel = true
[activation_checkpoint]
mode = "selective"
selective_ac_option = "op"
[compile]
enable = true
components = ["model", "loss"]
)");
  EXPECT_EQ(job["model"], "llama-3-8b");
  EXPECT_EQ(job["training.framework.extends"], "torchtitan");
  EXPECT_EQ(job["training.framework.overlap_tensor_products"], "true");
  EXPECT_EQ(job["training.framework.compiled_loss"], "true");
  EXPECT_EQ(job["training.kernels"], "fused");
  EXPECT_EQ(job["training.recompute"], "selective");
  EXPECT_EQ(job["training.precision"], "bf16");
  EXPECT_EQ(job["training.sequence_length"], "8192");
  EXPECT_EQ(job["training.micro_batch"], "2");
  EXPECT_EQ(job["training.global_batch"], "32");  // 2 of each of 16 replicas
  EXPECT_EQ(job["parallelism.data"], "16");
  EXPECT_EQ(job["parallelism.tensor"], "4");
  EXPECT_EQ(job["parallelism.sequence_parallel"], "true");
  EXPECT_EQ(job["cluster"], "dgx-h100-x8-rail");  // 64 GPUs
}

TEST(TorchtitanJob, FindsOptionsWhereTheyWereIn2024) {
  auto job = fields_of_job(kModel + kNoCheckpoints + R"([training]
batch_size = 8
data_parallel_replicate_degree = 2
data_parallel_shard_degree = 4
tensor_parallel_degree = 2
[experimental]
pipeline_parallel_degree = 4
pipeline_parallel_schedule = "Interleaved1F1B"
)");
  EXPECT_EQ(job["parallelism.data"], "8");
  EXPECT_EQ(job["training.data_parallel.shard_group"], "4");
  EXPECT_EQ(job["parallelism.pipeline"], "4");
  EXPECT_EQ(job["parallelism.virtual_stages"], "2");
  EXPECT_EQ(job["training.micro_batch"], "2");  // 8 in as many micro-batches as stages
  EXPECT_EQ(job["training.global_batch"], "64");
}

TEST(TorchtitanJob, CutsStagesAsTorchtitanDoes) {
  // 32 layers, embedding and head: 9, 9, 8, 8 for four stages.
  const ImportedJob job = import(kModel + kNoCheckpoints +
                                 "[parallelism]\npipeline_parallel_degree = 4\n"
                                 "data_parallel_shard_degree = 1\n");
  EXPECT_THAT(job.assumed, Contains(HasSubstr("layers of stages 8, 9, 8, 7, as torchtitan")));
}

TEST(TorchtitanJob, ShardsOverTheGpusThatAreLeft) {
  const std::string text = kModel + kNoCheckpoints + "[parallelism]\ntensor_parallel_degree = 8\n";
  EXPECT_THAT(refusal(text), HasSubstr("--gpus"));
  JobOptions options;
  options.gpus = 64;
  EXPECT_EQ(fields_of_job(text, options)["parallelism.data"], "8");
  options.gpus = 60;
  EXPECT_THAT(refusal(text, options), HasSubstr("56 GPUs, not 60"));
}

// 2 replicas of 4 shards of 2 context ranks: 8 ranks divide the states; without shards the 2 do.
TEST(TorchtitanJob, RanksOfAContextGroupDivideStates) {
  const std::string replicas = kModel + kNoCheckpoints +
                               "[parallelism]\ncontext_parallel_degree = 2\n"
                               "data_parallel_replicate_degree = 2\n"
                               "data_parallel_shard_degree = ";
  auto shards = fields_of_job(replicas + "4\n");
  EXPECT_EQ(shards["training.data_parallel.shard_group"], "8");
  EXPECT_EQ(shards["parallelism.data"], "8");
  auto whole = fields_of_job(replicas + "1\n");
  EXPECT_EQ(whole["training.data_parallel.shard_group"], "2");
  EXPECT_EQ(whole.count("training.data_parallel.sharding"), 0U);
}

TEST(TorchtitanJob, Float8IsItsPrecisionAndTheGatherOfWeights) {
  auto job = fields_of_job(
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\nconverters = [\"float8\"]\n" + kNoCheckpoints +
      "[parallelism]\ndata_parallel_shard_degree = 8\n[float8]\nenable_fsdp_float8_all_gather = "
      "true\n");
  EXPECT_EQ(job["training.precision"], "fp8");
  EXPECT_EQ(job["training.data_parallel.gather_fp8"], "true");
  EXPECT_THAT(refusal("[model]\nname = \"llama3\"\nflavor = \"8B\"\nconverters = [\"mx\"]\n" +
                      kNoCheckpoints + "[parallelism]\ndata_parallel_shard_degree = 8\n"),
              HasSubstr("model.converters"));
}

TEST(TorchtitanJob, LayersThatStayIn16BitsAreNotDropped) {
  const auto with = [](const std::string& layers) {
    return "[model]\nname = \"llama3\"\nflavor = \"8B\"\nconverters = [\"float8\"]\n" +
           kNoCheckpoints +
           "[parallelism]\ndata_parallel_shard_degree = 8\n[float8]\nfilter_fqns = " + layers +
           "\n";
  };
  EXPECT_THAT(import(with("[\"output\"]")).ignored,
              Contains("float8.filter_fqns = output: the head stays in bf16 anyway"));
  EXPECT_THAT(refusal(with("[\"attention.wk\", \"output\"]")), HasSubstr("float8.filter_fqns"));
}

TEST(TorchtitanJob, InBfloat16NothingIsHeldInFp32) {
  const std::string job =
      kModel + kNoCheckpoints + "[parallelism]\ndata_parallel_shard_degree = 8\n";
  EXPECT_EQ(fields_of_job(job).count("training.mixed_precision.optimizer_states"), 0U);
  auto fields = fields_of_job(job + "[training]\ndtype = \"bfloat16\"\n");
  for (const char* part : {"parameters", "gradients", "optimizer_states"})
    EXPECT_EQ(fields["training.mixed_precision." + std::string(part)], "bf16");
  EXPECT_THAT(refusal(job + "[training]\ndtype = \"float16\"\n"), HasSubstr("training.dtype"));
}

TEST(TorchtitanJob, ZeroBubbleVIsItsScheduleOverTwoStagesOfARank) {
  auto job = fields_of_job(kModel + kNoCheckpoints + R"([training]
local_batch_size = 8
[parallelism]
data_parallel_shard_degree = 2
pipeline_parallel_degree = 4
pipeline_parallel_schedule = "ZBVZeroBubble"
)");
  EXPECT_EQ(job["training.schedule"], "zbv");
  EXPECT_EQ(job["parallelism.virtual_stages"], "2");
  EXPECT_EQ(job["training.framework"], "torchtitan");
}

TEST(TorchtitanJob, RefusesByNameAndLineWhatItDoesNotKnow) {
  const std::string shards = "[parallelism]\ndata_parallel_shard_degree = 8\n";
  EXPECT_THAT(refusal(kModel + kNoCheckpoints + shards + "new_degree = 2\n"),
              testing::AllOf(HasSubstr("job.toml:8"), HasSubstr("parallelism.new_degree")));
  EXPECT_THAT(refusal(kModel + shards), HasSubstr("activation_checkpoint.mode"));
  EXPECT_THAT(refusal(kModel + shards +
                      "[activation_checkpoint]\nmode = \"selective\"\n"
                      "selective_ac_option = \"2\"\n"),
              HasSubstr("every n-th layer"));
  EXPECT_THAT(refusal(kModel + kNoCheckpoints + shards +
                      "pipeline_parallel_degree = 2\npipeline_parallel_schedule = \"DualPipeV\"\n"),
              HasSubstr("DualPipeV"));
  EXPECT_THAT(
      refusal("[model]\nname = \"llama4\"\nflavor = \"17bx16e\"\n" + kNoCheckpoints + shards),
      HasSubstr("17bx16e of llama4"));
  EXPECT_THAT(refusal("[model\n"), HasSubstr("job.toml:1"));
}

TEST(TorchtitanJob, ASwitchThatChangesTheStepIsNotTakenForHarmless) {
  const std::string job =
      kModel + kNoCheckpoints + "[parallelism]\ndata_parallel_shard_degree = 8\n";
  const std::string replicas = "[fault_tolerance]\ngroup_size = 2\nenable = ";
  EXPECT_THAT(refusal(job + replicas + "true\n"),
              testing::AllOf(HasSubstr("job.toml:10"), HasSubstr("fault_tolerance.enable")));
  EXPECT_EQ(refusal(job + replicas + "false\n"), "");
}

// loss_parallel_enabled of parallel_dims.py: "tp > 1 and not disable_loss_parallel".
TEST(TorchtitanJob, WithoutATensorGroupNoLossIsOverPartsOfTheVocabulary) {
  const std::string job =
      kModel + kNoCheckpoints + "[parallelism]\ndata_parallel_shard_degree = 8\n";
  const std::string off = "disable_loss_parallel = true\n";
  EXPECT_EQ(refusal(job + off), "");
  EXPECT_THAT(import(job + off).ignored,
              Contains(HasSubstr("parallelism.disable_loss_parallel = true")));
  EXPECT_EQ(refusal(job + "[training]\nenable_loss_parallel = false\n"), "");
  EXPECT_THAT(refusal(job + off + "tensor_parallel_degree = 2\n"),
              HasSubstr("parallelism.disable_loss_parallel = true"));
  // Until September 2024 the loss over parts of the vocabulary was switched off this way.
  EXPECT_THAT(
      refusal(job + "tensor_parallel_degree = 2\n[training]\nenable_loss_parallel = false\n"),
      HasSubstr("training.enable_loss_parallel = false"));
}

// pipeline_parallel_first_stage_less_layers of job_config.py, 1 by default, is what stages are cut
// by here.
TEST(TorchtitanJob, EmbeddingAndHeadCountAsALayerEachUnlessTheFileSaysOtherwise) {
  const std::string job = kModel + kNoCheckpoints +
                          "[parallelism]\ndata_parallel_shard_degree = 4\n"
                          "pipeline_parallel_degree = 2\n"
                          "pipeline_parallel_last_stage_less_layers = ";
  EXPECT_EQ(refusal(job + "1\n"), "");
  EXPECT_THAT(refusal(job + "2\n"), HasSubstr("last_stage_less_layers = 2 is not simulated"));
}

TEST(TorchtitanJob, WeightsOnTheCpuAreUpdatedThere) {
  const std::string offload = "[training]\nenable_cpu_offload = true\n";
  const std::string shards = "[parallelism]\ndata_parallel_shard_degree = ";
  auto job = fields_of_job(kModel + kNoCheckpoints + shards + "8\n" + offload);
  EXPECT_EQ(job["training.offload_parameters"], "true");
  EXPECT_EQ(job["training.offload_optimizer"], "true");
  // DistributedDataParallel keeps them on the GPU, where the model was not made.
  EXPECT_THAT(refusal(kModel + kNoCheckpoints + shards + "1\n" + offload),
              HasSubstr("training.enable_cpu_offload = true is FSDP's"));
  // All GPUs, whose number is open: nothing says that no ranks divide the weights.
  EXPECT_THAT(
      refusal(kModel + kNoCheckpoints + shards + "-1\n" + offload),
      AllOf(HasSubstr("leaves the number of GPUs open"), Not(HasSubstr("enable_cpu_offload"))));
}

TEST(TorchtitanJob, NotesWhatNoStepDependsOnWithItsLine) {
  const ImportedJob job = import("[metrics]\nlog_freq = 10\n" + kModel + kNoCheckpoints +
                                 "[parallelism]\ndata_parallel_shard_degree = 8\n");
  EXPECT_THAT(job.ignored, Contains("metrics.log_freq = 10 (job.toml:2)"));
}

TEST(TorchtitanJob, WhatItReadIsNotListedAsIgnored) {
  const ImportedJob job =
      import(kModel + kNoCheckpoints +
             "[training]\nseq_len = 4096\nlocal_batch_size = 1\n"
             "[parallelism]\ndata_parallel_shard_degree = 8\n[job]\ndump_folder = \"none\"\n");
  EXPECT_THAT(job.ignored, testing::ElementsAre("job.dump_folder = none (job.toml:12)"));
}

TEST(TorchtitanJob, SaysWhatIsMissingOfTheModel) {
  EXPECT_THAT(refusal(kNoCheckpoints), HasSubstr("model.flavor is missing"));
}

TEST(TorchtitanJob, WhatHasNoPartInAJobIsSaid) {
  const std::string idle = R"([parallelism]
pipeline_parallel_schedule = "GPipe"
context_parallel_rotate_method = "alltoall"
[compile]
components = ["loss"]
[quantize.linear.float8]
enable_fsdp_float8_all_gather = true
)";
  const ImportedJob job = import(kModel + kNoCheckpoints + idle, {.gpus = 8});
  for (const std::string key : {"pipeline_parallel_schedule = GPipe: there are no stages",
                                "context_parallel_rotate_method = alltoall: there is no context",
                                "compile.components = loss: nothing is compiled",
                                "enable_fsdp_float8_all_gather = true: no product is in fp8"})
    EXPECT_THAT(job.ignored, Contains(HasSubstr(key)));
  const ImportedJob staged =
      import(kModel + kNoCheckpoints + "[parallelism]\npipeline_parallel_degree = 2\n" +
                 "pipeline_parallel_schedule = \"GPipe\"\n",
             {.gpus = 8});
  EXPECT_THAT(staged.ignored, Not(Contains(HasSubstr("pipeline_parallel_schedule"))));
}

// Stages fill and drain once for each pass of gradient accumulation.
TEST(TorchtitanJob, GradientAccumulationOfStagesIsRefused) {
  const auto with = [](const std::string& global) {
    return kModel + "[training]\nlocal_batch_size = 4\nglobal_batch_size = " + global +
           "\n[parallelism]\npipeline_parallel_degree = 4\ndata_parallel_shard_degree = 2\n" +
           kNoCheckpoints;
  };
  EXPECT_EQ(fields_of_job(with("8"))["training.global_batch"], "8");
  EXPECT_THAT(refusal(with("64")),
              AllOf(HasSubstr("job.toml:"), HasSubstr("training.global_batch_size = 64"),
                    HasSubstr("--global-batch 8")));
  JobOptions lenient;
  lenient.lenient = true;
  EXPECT_THAT(import(with("64"), lenient).approximate, Contains(HasSubstr("drain")));
  JobOptions one_pass;
  one_pass.global_batch = 8;
  EXPECT_EQ(fields_of_job(with("64"), one_pass)["training.global_batch"], "8");
}

// maybe_enable_amp of torchtitan/distributed/utils.py.
TEST(TorchtitanJob, TensorOrPipelineRanksWithoutFsdpRunInFp32) {
  const auto with = [](const std::string& degrees, const std::string& training = "") {
    return fields_of_job(kModel + "[training]\nlocal_batch_size = 4\n" + training +
                         "[parallelism]\n" + degrees + kNoCheckpoints)["training.precision"];
  };
  const std::string alone = "data_parallel_shard_degree = 1\n";
  EXPECT_EQ(with(alone + "tensor_parallel_degree = 8\n"), "fp32");
  EXPECT_EQ(with(alone + "pipeline_parallel_degree = 4\n"), "fp32");
  EXPECT_EQ(with(alone), "bf16");  // autocast
  EXPECT_EQ(with(alone + "context_parallel_degree = 2\n"), "bf16");
  EXPECT_EQ(with("data_parallel_shard_degree = 2\ntensor_parallel_degree = 4\n"), "bf16");
  EXPECT_EQ(with(alone + "tensor_parallel_degree = 8\n", "dtype = \"bfloat16\"\n"), "bf16");
}

}  // namespace
}  // namespace tessera
