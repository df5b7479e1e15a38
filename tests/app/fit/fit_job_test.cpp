#include "app/fit/fit_job.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/fit/job_kind.h"
#include "hw/units/input_error.h"
#include "tests/hw/units/scratch.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

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
  EXPECT_EQ(job_kind(file("tabs.json", "{\n\t\"train_batch_size\":\t8\n}"), catalog),
            JobKind::deepspeed);
  EXPECT_EQ(job_kind(file("a.yaml", "distributed_type: FSDP\n"), catalog), JobKind::accelerate);
  EXPECT_EQ(job_kind(file("h.json", R"({"model_name_or_path": "m",
                                        "gradient_accumulation_steps": 4})"),
                     catalog),
            JobKind::trainer);
  EXPECT_EQ(job_kind(file("h.yaml", "per_device_train_batch_size: 2\n"), catalog),
            JobKind::trainer);
  EXPECT_EQ(job_kind(file("a.yml", "lora_r: 8\nbase_model: x/y\n"), catalog), JobKind::trainer);
  EXPECT_EQ(job_kind(file("f.yaml", "model_name_or_path: x\nfinetuning_type: lora\n"), catalog),
            JobKind::trainer);
  EXPECT_EQ(job_kind(file("n.yaml", "parallelism: {dp: 8}\ntokens: {}\n"), catalog),
            JobKind::nanotron);
  EXPECT_EQ(job_kind(file("c.yaml", "max_seq_len: 2048\ntrain_loader: {}\n"), catalog),
            JobKind::foundry);
  EXPECT_EQ(job_kind(file("m.yaml", "family: llama\nlayers: 2\n"), catalog), JobKind::model);
  EXPECT_EQ(job_kind(file("s.yaml", "model: gpt2\ntraining: {}\n"), catalog), JobKind::scenario);
  EXPECT_EQ(job_kind(file("t.toml", "[model]\n"), catalog), JobKind::torchtitan);
  EXPECT_EQ(job_kind(file("run.sh", "torchrun pretrain_gpt.py\n"), catalog), JobKind::megatron);
}

TEST_F(FitJobs, FilesOfOtherTrainersAreRefusedByTheirName) {
  const auto refusal = [&](const std::string& name, const std::string& text) {
    try {
      job_kind(file(name, text), configs());
    } catch (const InputError& error) {
      return error.problems()[0].where + ": " + error.problems()[0].what;
    }
    return std::string("read");
  };
  EXPECT_NE(refusal("a.yaml", "lora_r: 8\ncheckpoint_dir: c\n")
                .find("a.yaml:2:1: checkpoint_dir: a file of litgpt"),
            std::string::npos);
  EXPECT_NE(refusal("n.yaml", "trainer: {}\nmodel: {tensor_model_parallel_size: 2}\n").find("NeMo"),
            std::string::npos);
  EXPECT_NE(refusal("l.yaml", "trainer: {}\nmodel: {}\n").find("Lightning"), std::string::npos);
  EXPECT_NE(refusal("train.py", "import lightning\n").find("Python program"), std::string::npos);
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

// transformers chooses sdpa by itself; without it Llama 3 8B at 16384 tokens needed 734 GiB for
// 192.
TEST_F(FitJobs, AModelAloneAttendsAsTransformersChooses) {
  const auto attention = [this](JobOptions options, std::vector<std::string> settings = {}) {
    options.cluster = "dgx-h100";
    const FitJob job(file("config.json", kConfig), options, std::move(settings), configs());
    return job.scenario().step.framework.attention;
  };
  EXPECT_EQ(attention({}), AttentionKernels::flash2);
  EXPECT_EQ(attention({.framework = "hf-eager"}), AttentionKernels::unfused);
  EXPECT_EQ(attention({}, {"training.framework.attention=unfused"}), AttentionKernels::unfused);
}

TEST_F(FitJobs, AModelTakesAllGpusOfTheClusterThatTheUserMadeOfIt) {
  const JobOptions options{.cluster = "dgx-h100"};
  const FitJob more("gpt2", options, {"cluster.node_count=4"}, configs());
  EXPECT_EQ(more.scenario().step.layout.data, 32);
  const FitJob fewer("gpt2", options, {"cluster.node.gpu_count=4"}, configs());
  EXPECT_EQ(fewer.scenario().step.layout.data, 4);
  JobOptions nodes = options;
  nodes.nodes = 2;
  EXPECT_EQ(FitJob("gpt2", nodes, {}, configs()).scenario().step.layout.data, 16);
  EXPECT_EQ(FitJob("gpt2-large_4xh100_dp4", nodes, {}, configs()).scenario().cluster.node_count, 2);
}

TEST_F(FitJobs, AFolderWithAConfigIsAModel) {
  const fs::path folder = fs::path(file("config.json", kConfig)).parent_path();
  JobOptions options{.model = folder.string(), .cluster = "dgx-h100"};
  const FitJob job(file("ds.json", R"({"train_micro_batch_size_per_gpu": 1})"), options, {},
                   configs());
  EXPECT_EQ(job.scenario().model.layers, 2);
}

TEST_F(FitJobs, ATooSmallClusterGrowsByAnOption) {
  JobOptions options{.cluster = "dgx-h100"};
  options.gpus = 12;
  try {
    const FitJob job("llama-3-8b", options, {}, configs());
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.problems()[0].hint, HasSubstr("--nodes 2"));
  }
}

TEST_F(FitJobs, AJobOfMoreGpusThanACardAsksForAnotherCluster) {
  JobOptions options{.model = "llama-3.2-1b", .cluster = "rtx-4090-pcie-1"};
  const std::string text = "distributed_type: MULTI_GPU\nnum_processes: 4\n";
  try {
    const FitJob job(file("a.yaml", text), options, {}, configs());
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.problems()[0].hint, HasSubstr("more GPUs than a node"));
  }
}

TEST_F(FitJobs, CopiesOfAModelShareTheGpusThatTheUsersLayoutLeavesThem) {
  const JobOptions options{.cluster = "dgx-h100", .framework = "megatron"};
  const auto copies = [&](const std::vector<std::string>& settings) {
    return FitJob("llama-3-8b", options, settings, configs()).scenario().step.layout.data;
  };
  EXPECT_EQ(copies({"parallelism.tensor=2"}), 4);
  EXPECT_EQ(copies({"parallelism.tp=4", "parallelism.pp=2"}), 1);
  EXPECT_EQ(copies({"parallelism.tensor=2", "parallelism.data=3"}), 3);  // as told
  JobOptions three = options;
  three.nodes = 3;
  const FitJob some("llama-3-8b", three, {"parallelism.tp=8", "parallelism.pp=2"}, configs());
  EXPECT_THAT(some.assumed(),
              testing::Contains("16 GPUs of the cluster of 24: --gpus gives fewer"));
  const auto refusal = [&](const std::vector<std::string>& settings) {
    try {
      copies(settings);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("read");
  };
  EXPECT_THAT(refusal({"parallelism.tensor=8", "parallelism.pipeline=2"}),
              HasSubstr("needs tensor * pipeline * data = 8 * 2 * 1 GPUs, cluster dgx-h100 has 8"));
  EXPECT_THAT(refusal({"parallelism.tensor=two"}), HasSubstr("two"));
}

TEST_F(FitJobs, ThePrecisionIsThatOfTheGpuThatTheUserPutIn) {
  const FitJob job("gpt2", {.cluster = "rtx-4090-pcie-1"}, {"cluster.node.gpu=V100-SXM2-32GB"},
                   configs());
  EXPECT_EQ(job.scenario().step.precision, Precision::fp16);  // Volta has no bf16
}

TEST_F(FitJobs, AJobFileKeepsItsOwnNumberOfGpus) {
  const std::string accelerate =
      file("a.yaml",
           "distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 8\nfsdp_config: {}\n");
  const JobOptions options{.model = "llama-3-8b", .cluster = "dgx-h100-x2"};
  EXPECT_EQ(FitJob(accelerate, options, {}, configs()).scenario().step.layout.data, 8);
  JobOptions all = options;
  all.gpus = 16;
  EXPECT_EQ(FitJob(accelerate, all, {}, configs()).scenario().step.layout.data, 16);
  const std::string open = file("ds.json", R"({"zero_optimization": {"stage": 3}})");
  EXPECT_EQ(FitJob(open, options, {}, configs()).scenario().step.layout.data, 16);
}

TEST_F(FitJobs, AJobOfTorchtitanThatLeavesGpusOpenTakesThoseOfTheCluster) {
  const std::string text =
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[activation_checkpoint]\nmode = \"full\"\n"
      "[parallelism]\ntensor_parallel_degree = 4\n";
  const JobOptions options{.cluster = "dgx-h100-x2"};
  const FitJob job(file("t.toml", text), options, {}, configs());
  EXPECT_EQ(job.kind(), "torchtitan job");
  EXPECT_EQ(job.scenario().step.layout.tensor, 4);
  EXPECT_EQ(job.scenario().step.layout.data, 4);  // 16 GPUs
  const FitJob part(file("p.toml", text + "data_parallel_shard_degree = 2\n"), options, {},
                    configs());
  EXPECT_EQ(part.scenario().step.layout.data, 2);
}

TEST_F(FitJobs, AScriptOfTorchtitanNamesItsJobFileAndChangesIt) {
  file("llama.toml",
       "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[activation_checkpoint]\nmode = \"full\"\n"
       "[training]\nseq_len = 8192\nlocal_batch_size = 1\n");
  const std::string script =
      file("run.sh",
           "NGPU=${NGPU:-\"8\"}\nCONFIG_FILE=${CONFIG_FILE:-\"./train_configs/llama.toml\"}\n"
           "torchrun --nproc_per_node=${NGPU} --rdzv_backend c10d --role rank --tee 3 \\\n"
           "-m torchtitan.train --job.config_file ${CONFIG_FILE} --training.seq_len 4096 "
           "--training.local_batch_size=2\n");
  const FitJob job(script, {.cluster = "dgx-h100-x2"}, {}, configs());
  EXPECT_EQ(job.kind(), "torchtitan job");
  EXPECT_EQ(job.scenario().step.sequence_length, 4096);
  EXPECT_EQ(job.scenario().step.micro_batch, 2);
  EXPECT_EQ(job.scenario().step.layout.data, 8);  // of the 16 GPUs of the cluster
}

TEST_F(FitJobs, ScriptsThatStartOtherProgramsAreRefusedWithTheFileToGive) {
  for (const char* command :
       {"accelerate launch --config_file a.yaml train.py --bf16 true --seed 1\n",
        "deepspeed --num_gpus 8 run_clm.py --deepspeed a.yaml --fp16\n"}) {
    try {
      FitJob(file("run.sh", command), {.cluster = "dgx-h100"}, {}, configs());
      ADD_FAILURE() << command;
    } catch (const InputError& error) {
      EXPECT_NE(error.problems()[0].hint.find("give a.yaml instead"), std::string::npos);
    }
  }
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

TEST_F(FitJobs, WhatAScenarioSaysItselfIsNoOption) {
  JobOptions options;
  options.gpus = 4;
  options.sequence_length = 4096;
  options.framework = "megatron";
  try {
    FitJob("llama-2-7b_8xh100_dp8", options, {}, configs());
    FAIL();
  } catch (const InputError& error) {
    ASSERT_EQ(error.problems().size(), 3u);
    EXPECT_EQ(error.problems()[0].hint, "use --set training.framework=megatron");
    EXPECT_EQ(error.problems()[1].where, "--gpus");
    EXPECT_EQ(error.problems()[2].hint, "use --set training.sequence_length=4096");
  }
}

TEST_F(FitJobs, AModelWithoutAClusterIsRefused) {
  EXPECT_THROW(FitJob("gpt2", {}, {}, configs()), InputError);
}

}  // namespace
}  // namespace tessera
