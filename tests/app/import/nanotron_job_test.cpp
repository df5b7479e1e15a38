// nanotron's files.
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
using ::testing::Not;

/// 2 replicas of 2 stages of 4 ranks.
std::string small_job() {
  return test::sample("import_nanotron/small.yaml");
}

/// `small_job` with one thing in place of another, which has to be there.
std::string with(const std::string& old, const std::string& text) {
  std::string job = small_job();
  const std::size_t at = job.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return job.replace(at, old.size(), text);
}

ImportedJob import(const std::string& text, const JobOptions& options = {}) {
  return import_nanotron(text, "job.yaml", options);
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

TEST(NanotronJob, BecomesAScenario) {
  auto job = fields_of_job(small_job());
  EXPECT_EQ(job["training.framework.extends"], "nanotron");
  EXPECT_EQ(job["training.framework.vocabulary_multiple"], "64");
  EXPECT_EQ(job["training.framework.fused_optimizer"], "false");
  EXPECT_EQ(job["model.family"], "llama");
  EXPECT_EQ(job["model.layers"], "12");
  EXPECT_EQ(job["model.kv_heads"], "4");
  EXPECT_EQ(job["model.ffn"], "2816");
  EXPECT_EQ(job["model.tied_embeddings"], "false");
  EXPECT_EQ(job["training.micro_batch"], "2");
  EXPECT_EQ(job["training.global_batch"], "32");  // 2 * 8 of each of 2 replicas
  EXPECT_EQ(job["training.schedule"], "one_f_one_b");
  EXPECT_EQ(job["training.clip_gradients"], "true");
  EXPECT_EQ(job["parallelism.tensor"], "4");
  EXPECT_EQ(job["parallelism.sequence_parallel"], "true");
  EXPECT_EQ(job["training.data_parallel.sharding"], "none");
  EXPECT_EQ(job["training.data_parallel.bucket"], "104857600 B");  // fp32 sums of 50 MiB in bf16
  EXPECT_EQ(job["cluster"], "dgx-h100-x2");                        // 16 GPUs
}

// Synchronous products are left to autograd, which keeps what was gathered.
TEST(NanotronJob, WithoutAsynchronousCommunicationKeepsWhatWasGathered) {
  auto job = fields_of_job(with("async_communication: true", "async_communication: false"));
  EXPECT_EQ(job["training.framework.own_rows_first"], "false");
  EXPECT_EQ(job["training.framework.keeps_gathered"], "true");
  EXPECT_EQ(job["training.framework.overlap_tensor_gradients"], "false");
  job = fields_of_job(
      with("tp_mode: REDUCE_SCATTER, tp_linear_async_communication: true", "tp_mode: ALL_REDUCE"));
  EXPECT_EQ(job["parallelism.sequence_parallel"], "false");
  EXPECT_EQ(job["training.framework.overlap_tensor_gradients"], "false");
}

TEST(NanotronJob, RunsAllForwardPassesFirstUnlessItIsTold) {
  const ImportedJob job = import(with("pp_engine: 1f1b, ", ""));
  EXPECT_EQ(test::leaves_of(job.scenario)["training.schedule"], "gpipe");
  EXPECT_THAT(job.assumed, Contains(HasSubstr("pp_engine afab, nanotron's default")));
}

TEST(NanotronJob, ReadsZeroAndRecomputation) {
  auto job = fields_of_job(test::sample("import_nanotron/sync.yaml"));
  EXPECT_EQ(job["training.data_parallel.sharding"], "optimizer");
  EXPECT_EQ(job["training.data_parallel.bucket"], "");
  EXPECT_EQ(job["training.recompute"], "full");
  EXPECT_THAT(refusal(with("zero_stage: 0", "zero_stage: 2")), HasSubstr("nanotron has 0 and 1"));
}

TEST(NanotronJob, OfUnknownKeysTellsTheLineAndTheNearestName) {
  EXPECT_THAT(refusal(with("zero_stage", "zero_stages")),
              AllOf(HasSubstr("job.yaml:29"), HasSubstr("optimizer.zero_stages = 0 is not known"),
                    HasSubstr("write optimizer.zero_stage")));
  EXPECT_THAT(refusal(with("dtype: bfloat16", "dtype: bfloat16\n  mystery: 3")),
              HasSubstr("model.mystery = 3 is not known"));
}

TEST(NanotronJob, RefusesByNameWhatTheProfileDoesNotHave) {
  EXPECT_THAT(refusal(with("is_llama_config", "is_qwen2_config")), HasSubstr("is_qwen2_config"));
  EXPECT_THAT(refusal(with("bfloat16", "float32")), HasSubstr("FlashAttention"));
  EXPECT_THAT(refusal(with("in_fp32: true", "in_fp32: false")), HasSubstr("16 bits"));
  EXPECT_THAT(refusal(with("dp: 2", "expert_parallel_size: 2, dp: 2")), HasSubstr("experts"));
  EXPECT_THAT(refusal(with("hidden_act: silu", "hidden_act: relu")), HasSubstr("hidden_act"));
  EXPECT_THAT(refusal(with("  clip_grad: 1.0\n", "  clip_grad: null\n")), "");
  EXPECT_THAT(refusal(with("tp: 4, ", "")), HasSubstr("parallelism.tp is missing"));
  EXPECT_THAT(refusal(small_job(), {.model = "llama-3-8b"}), HasSubstr("describe the model"));
}

// Ranks compare weights and gradients where the checks are on.
TEST(NanotronJob, SaysWhereChecksBetweenPassesAreLeftOut) {
  EXPECT_THAT(import(with("checks: true", "checks: false")).approximate,
              Contains(HasSubstr("ignore_sanity_checks")));
}

// A value that is null is none.
TEST(NanotronJob, TakesWhatIsNullForItsDefault) {
  auto job =
      fields_of_job(with("pp: 2", "recompute_layer: null, tp_recompute_allgather: null, pp: 2"));
  EXPECT_EQ(job["training.recompute"], "");
  EXPECT_EQ(job["training.framework.keeps_gathered"], "");
}

TEST(NanotronJob, LeavesOutWhatItIsToldTo) {
  const ImportedJob job =
      import(with("dp: 2", "context_parallel_size: 2, dp: 2"), {.lenient = true});
  EXPECT_THAT(job.approximate, Contains(HasSubstr("context_parallel_size = 2")));
}

class NanotronScript : public testing::Test {
 protected:
  std::string refusal(const std::string& script) const {
    try {
      import(script);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
  ImportedJob import(const std::string& script) const {
    JobOptions options;
    options.folder = folder_.path();
    return import_script(script, "job.sh", options);
  }
  ScratchFolder folder_;
};

TEST_F(NanotronScript, NamesItsFile) {
  folder_.write("small.yaml", small_job());
  const ImportedJob job = import(
      "export CUDA_DEVICE_MAX_CONNECTIONS=8\n"
      "torchrun --nproc_per_node=8 --nnodes 2 run_train.py --config-file examples/small.yaml\n");
  EXPECT_EQ(job.kind, "nanotron job");
  EXPECT_EQ(test::leaves_of(job.scenario)["training.framework.cuda_device_max_connections"], "8");
  EXPECT_THAT(job.assumed, Not(Contains(HasSubstr("CUDA_DEVICE_MAX_CONNECTIONS"))));
}

TEST_F(NanotronScript, ThatStartsAnotherNumberOfGpusIsRefused) {
  folder_.write("small.yaml", small_job());
  EXPECT_THAT(refusal("torchrun --nproc_per_node=8 run_train.py --config-file=small.yaml\n"),
              AllOf(HasSubstr("takes 16 GPUs"), HasSubstr("has 8")));
  EXPECT_THAT(
      refusal("torchrun --nproc_per_node=8 run_train.py --config-file gone.yaml\n"),
      AllOf(HasSubstr("job.sh:1: starts nanotron with gone.yaml"), HasSubstr("import nanotron")));
}

// A file that the script writes itself.
TEST_F(NanotronScript, MayWriteItsFile) {
  const std::string script =
      "cat > here.yaml <<'END'\n" + small_job() +
      "END\ntorchrun --nproc_per_node=16 run_train.py --config-file here.yaml\n";
  EXPECT_EQ(test::leaves_of(import(script).scenario)["model.layers"], "12");
}

}  // namespace
}  // namespace tessera
