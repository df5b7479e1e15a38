#include "app/fit/fit_job.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "app/fit/job_kind.h"
#include "hw/units/input_error.h"
#include "tests/hw/units/scratch.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

Catalog configs() {
  return Catalog(fs::path(TESSERA_SOURCE_DIR) / "configs");
}

class FitJobs : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    return folder_.write(name, text).string();
  }

 private:
  ScratchFolder folder_;
};

constexpr const char* kConfig = R"({"model_type": "llama", "num_hidden_layers": 2,
  "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 4,
  "intermediate_size": 512, "vocab_size": 1024, "hidden_act": "silu"})";

TEST_F(FitJobs, FilesAreToldApartByWhatTheyHold) {
  const Catalog catalog = configs();
  EXPECT_EQ(job_kind("llama-3-8b", catalog), JobKind::model);
  EXPECT_EQ(job_kind("llama-2-7b_8xh100_dp8", catalog), JobKind::scenario);
  EXPECT_EQ(job_kind(file("config.json", kConfig), catalog), JobKind::hugging_face);
  EXPECT_EQ(job_kind(file("ds.json", R"({"train_batch_size": 8})"), catalog), JobKind::deepspeed);
  EXPECT_EQ(job_kind(file("a.yaml", "distributed_type: FSDP\n"), catalog), JobKind::accelerate);
  EXPECT_EQ(job_kind(file("m.yaml", "family: llama\nlayers: 2\n"), catalog), JobKind::model);
  EXPECT_EQ(job_kind(file("s.yaml", "model: gpt2\ntraining: {}\n"), catalog), JobKind::scenario);
  EXPECT_EQ(job_kind(file("run.sh", "torchrun pretrain_gpt.py\n"), catalog), JobKind::megatron);
}

TEST_F(FitJobs, WhatIsNeitherFileNorIdIsRefusedWithAWayOut) {
  try {
    job_kind("meta-llama/Llama-3-8B", configs());
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(error.problems()[0].hint.find("config.json"), std::string::npos);
  }
}

TEST_F(FitJobs, AModelTakesAllGpusOfTheCluster) {
  const FitJob job(file("config.json", kConfig), {.cluster = "dgx-h100"}, {}, configs());
  EXPECT_EQ(job.scenario().step.layout.data, 8);
  EXPECT_EQ(job.scenario().model.layers, 2);
  EXPECT_FALSE(job.assumed().empty());
}

TEST_F(FitJobs, SettingsComeBehindThoseOfTheUser) {
  const FitJob job("gpt2", {.cluster = "rtx-4090-pcie-1"},
                   {"training.global_batch=8", "training.micro_batch=4"}, configs());
  EXPECT_EQ(job.scenario().step.micro_batch, 4);
  const std::vector<std::string> settings{"training.micro_batch=1"};
  EXPECT_EQ(job.with(settings).step.micro_batch, 1);
}

TEST_F(FitJobs, AScenarioMovesToTheClusterThatIsNamed) {
  const FitJob stays("llama-2-7b_8xh100_dp8", {}, {}, configs());
  const FitJob moves("llama-2-7b_8xh100_dp8", {.cluster = "dgx-a100"}, {}, configs());
  EXPECT_EQ(stays.scenario().cluster.id, "dgx-h100");
  EXPECT_EQ(moves.scenario().cluster.id, "dgx-a100");
}

TEST_F(FitJobs, AModelWithoutAClusterIsRefused) {
  EXPECT_THROW(FitJob("gpt2", {}, {}, configs()), InputError);
}

}  // namespace
}  // namespace tessera
