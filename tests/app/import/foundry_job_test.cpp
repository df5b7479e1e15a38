// llm-foundry's training files.
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/import/job/imported_job.h"
#include "hw/units/input_error.h"
#include "tests/app/import/import_fixture.h"
#include "tests/app/import/yaml_leaves.h"
#include "tests/hw/units/scratch.h"

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string mpt() {
  return test::sample("import_foundry/mpt.yaml");
}
std::string with(const std::string& old, const std::string& text) {
  std::string job = mpt();
  const std::size_t at = job.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return job.replace(at, old.size(), text);
}

const JobOptions kEight{.gpus = 8};

ImportedJob import(const std::string& text, const JobOptions& options = kEight) {
  return import_foundry(text, "job.yaml", options);
}
std::map<std::string, std::string> fields_of_job(const std::string& text,
                                                 const JobOptions& options = kEight) {
  return test::leaves_of(import(text, options).scenario);
}
std::string refusal(const std::string& text, const JobOptions& options = kEight) {
  try {
    import(text, options);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(FoundryJob, BecomesAScenario) {
  auto job = fields_of_job(mpt());
  EXPECT_EQ(job["model.family"], "mpt");
  EXPECT_EQ(job["model.ffn"], "4096");
  EXPECT_EQ(job["training.framework.extends"], "llm-foundry");
  EXPECT_EQ(job["training.framework.reentrant_checkpoints"], "true");
  EXPECT_EQ(job["training.sequence_length"], "2048");  // ${variables.length}
  EXPECT_EQ(job["training.global_batch"], "128");
  EXPECT_EQ(job["training.micro_batch"], "8");
  EXPECT_EQ(job["training.data_parallel.sharding"], "gradients");
  EXPECT_EQ(job["training.data_parallel.units_ahead"], "0");
  EXPECT_EQ(job["training.mixed_precision.reduce"], "bf16");  // PURE
  EXPECT_EQ(job["training.recompute"], "full");
  EXPECT_EQ(job["training.kernels"], "fused");  // compile_config: {}
  EXPECT_EQ(job["parallelism.data"], "8");
}

TEST(FoundryJob, LearnedPositionsAreGptsWithBiases) {
  auto job = fields_of_job(with(", alibi: true", ""));
  EXPECT_EQ(job["model.family"], "gpt2");
  EXPECT_EQ(job["model.max_positions"], "2048");
  EXPECT_THAT(import(with(", alibi: true", "")).approximate, Contains(HasSubstr("no_bias")));
}

TEST(FoundryJob, AGpuTakesNoMoreSequencesThanItHas) {
  const ImportedJob job = import(mpt(), {.gpus = 32});
  EXPECT_EQ(test::leaves_of(job.scenario)["training.micro_batch"], "4");
  EXPECT_THAT(job.assumed, Contains(HasSubstr("micro-batches of 4")));
}

TEST(FoundryJob, AsksForWhatTheFileLeavesOpen) {
  EXPECT_THAT(refusal(mpt(), {}), HasSubstr("add --gpus"));
  EXPECT_THAT(refusal(with("microbatch_size: 8", "microbatch_size: auto")),
              HasSubstr("add --micro-batch"));
  EXPECT_THAT(refusal(test::sample("import_foundry/hf.yaml")), HasSubstr("add --model"));
  EXPECT_THAT(refusal(with("${variables.length}", "${variables.len}")),
              AllOf(HasSubstr("job.yaml:2"), HasSubstr("which the file does not have")));
}

TEST(FoundryJob, RefusesByNameWhatIsNotSimulated) {
  EXPECT_THAT(refusal(with("decoupled_adamw", "decoupled_lionw")), HasSubstr("decoupled_lionw"));
  EXPECT_THAT(refusal(with("algorithms: {", "algorithms: {alibi: {}, ")),
              HasSubstr("algorithms.alibi"));
  EXPECT_THAT(refusal(with("alibi: true", "rope: true")), HasSubstr("model.attn_config.rope"));
  EXPECT_THAT(refusal(with("amp_bf16", "amp_fp8")), HasSubstr("amp_fp8"));
  EXPECT_THAT(refusal(with("sharding_strategy", "shard_strategy")),
              HasSubstr("write fsdp_config.sharding_strategy"));
}

// accelerate's importer would name every line of it.
TEST(FoundryJob, IsNoFileOfAccelerate) {
  EXPECT_THAT([] { import_accelerate(mpt(), "job.yaml", {.model = "gpt2"}); },
              ThrowsMessage<InputError>(HasSubstr("give it to tessera import llm-foundry")));
  EXPECT_THAT(refusal("model: {name: mpt_causal_lm}\n"), HasSubstr("is no training file"));
}

TEST(FoundryJob, WithoutFsdpRunsUnderDdp) {
  auto job = fields_of_job(test::sample("import_foundry/hf.yaml"), {.model = "gpt2", .gpus = 8});
  EXPECT_EQ(job["model"], "gpt2");
  EXPECT_EQ(job["training.data_parallel.sharding"], "none");
  EXPECT_EQ(job["training.precision"], "fp16");
}

TEST(FoundryJob, SettingsBehindTheFileGoOverIt) {
  const ScratchFolder folder;
  folder.write("mpt.yaml", mpt());
  JobOptions options;
  options.folder = folder.path();
  const ImportedJob job = import_script(
      "composer -n 16 train/train.py yamls/mpt.yaml global_train_batch_size=256 max_seq_len=1024 "
      "save_folder=x\n",
      "job.sh", options);
  auto fields = test::leaves_of(job.scenario);
  EXPECT_EQ(job.kind, "llm-foundry job");
  EXPECT_EQ(fields["training.global_batch"], "256");
  EXPECT_EQ(fields["training.sequence_length"], "1024");
  EXPECT_EQ(fields["parallelism.data"], "16");
}

}  // namespace
}  // namespace tessera
