// Scripts that start torchtitan or Megatron-LM, and what callers say beside them.
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/import/job/imported_job.h"
#include "hw/units/input_error.h"
#include "tests/app/import/yaml_leaves.h"
#include "tests/hw/units/scratch.h"

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

std::string refusal(const std::string& script) {
  try {
    import_script(script, "job.sh", {});
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

const std::string kMegatron =
    "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --num-layers 12 --hidden-size 768 "
    "--num-attention-heads 12 --seq-length 1024 --max-position-embeddings 1024 "
    "--micro-batch-size 1 --global-batch-size 64 --bf16\n";

TEST(LaunchScript, ANumberOfGpusThatTheLauncherContradictsIsSaid) {
  const ImportedJob job = import_script(kMegatron, "job.sh", {.gpus = 8});
  EXPECT_THAT(job.assumed, Contains(AllOf(HasSubstr("8 GPUs, as --gpus says"),
                                          HasSubstr("job.sh:1 starts 16"))));
  for (const std::int64_t same : {0, 16})
    EXPECT_THAT(import_script(kMegatron, "job.sh", {.gpus = same}).assumed,
                Not(Contains(HasSubstr("--gpus says"))));
}

TEST(LaunchScript, OfTorchtitanSaysSoToo) {
  const ScratchFolder folder;
  folder.write("job.toml",
               "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[activation_checkpoint]\n"
               "mode = \"none\"\n");
  JobOptions options{.gpus = 16};
  options.folder = folder.path();
  const ImportedJob job =
      import_script("torchrun --nproc_per_node=8 -m torchtitan.train --job.config_file job.toml\n",
                    "job.sh", options);
  EXPECT_EQ(job.kind, "torchtitan job");
  EXPECT_THAT(job.assumed, Contains(HasSubstr("starts 8")));
}

// What run_train.sh reads comes by variables.
TEST(LaunchScript, ThatSetsTorchtitansVariablesNamesTorchtitanAndTheFile) {
  for (const std::string script :
       {"export CONFIG_FILE=my.toml\nexport NGPU=8\n./run_train.sh\n",
        "NGPU=8 CONFIG_FILE=my.toml ./run_train.sh --training.seq_len 4096\n"})
    EXPECT_THAT(refusal(script), AllOf(HasSubstr("torchtitan"), HasSubstr("my.toml --gpus 8"),
                                       Not(HasSubstr("Megatron"))))
        << script;
}

TEST(LaunchScript, OfTorchtitanConfiguredInPythonIsNamedAsOne) {
  EXPECT_THAT(refusal("torchrun --nproc_per_node=8 -m torchtitan.train --module llama3 --config "
                      "llama3_8b\n"),
              AllOf(HasSubstr("job.sh:1: starts torchtitan with a configuration in Python"),
                    Not(HasSubstr("a variable names"))));
}

TEST(LaunchScript, OfHuggingFacesTrainerIsNotReadAsMegatrons) {
  const std::string script =
      "torchrun --nproc_per_node 8 run_clm.py --model_name_or_path gpt2 "
      "--per_device_train_batch_size=2 --bf16\n";
  EXPECT_THAT(refusal(script), AllOf(HasSubstr("job.sh:1: trains gpt2"), HasSubstr("--model"),
                                     Not(HasSubstr("--num-layers"))));
  try {
    import_megatron(script, "job.sh", {});
    ADD_FAILURE() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("import accelerate reads such scripts"));
  }
}

const std::string kTitan =
    "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[compile]\nenable = true\n"
    "[activation_checkpoint]\nmode = \"none\"\n";

std::map<std::string, std::string> titan(const std::string& script) {
  const ScratchFolder folder;
  folder.write("job.toml", kTitan);
  JobOptions options;
  options.folder = folder.path();
  return test::leaves_of(import_script(script, "job.sh", options).scenario);
}

// torchtitan's parser takes hyphens for underscores, and "no" ahead of a switch.
TEST(LaunchScript, OfTorchtitanChangesTheFileInBothSpellings) {
  for (const std::string degree : {"tensor_parallel_degree", "tensor-parallel-degree"}) {
    auto job = titan(
        "torchrun --nnodes=2 --nproc_per_node=8 -m torchtitan.train "
        "--job.config-file job.toml --parallelism." +
        degree + " 4 --compile.no-enable\n");
    EXPECT_EQ(job["parallelism.tensor"], "4");
    EXPECT_EQ(job["parallelism.data"], "4");
    EXPECT_EQ(job["training.kernels"], "");
  }
}

TEST(LaunchScript, OfRunTrainIsReadWithWhatItsVariablesSay) {
  auto job = titan(
      "NGPU=16 CONFIG_FILE=\"./job.toml\" ./run_train.sh "
      "--training.seq_len 4096 --parallelism.tensor_parallel_degree 2\n");
  EXPECT_EQ(job["training.sequence_length"], "4096");
  EXPECT_EQ(job["parallelism.tensor"], "2");
  EXPECT_EQ(job["parallelism.data"], "8");
  job = titan("export CONFIG_FILE=job.toml\n./run_train.sh\n");
  EXPECT_EQ(job["parallelism.data"], "8");
}

// Nodes that the script starts, on a cluster that is smaller as shipped.
TEST(LaunchScript, ThatStartsMoreNodesThanTheClusterHasTakesThemAndSaysSo) {
  JobOptions options{.cluster = "dgx-h100"};
  options.cluster_gpus = 8;
  options.node_gpus = 8;
  const ImportedJob job = import_script(kMegatron, "job.sh", options);
  auto fields = test::leaves_of(job.scenario);
  EXPECT_EQ(fields["cluster.extends"], "dgx-h100");
  EXPECT_EQ(fields["cluster.node_count"], "2");
  EXPECT_THAT(job.assumed, Contains(HasSubstr("2 nodes of dgx-h100, for the job's 16 GPUs")));
  options.nodes = 4;
  fields = test::leaves_of(import_script(kMegatron, "job.sh", options).scenario);
  EXPECT_EQ(fields["cluster.node_count"], "4");
}

TEST(LaunchScript, OfOtherNodesThanAreSimulatedSaysSo) {
  std::string script = kMegatron;
  script.replace(script.find("node 8 --nnodes 2"), 17, "node 4 --nnodes 4");
  EXPECT_THAT(import_script(script, "job.sh", {}).assumed,
              Contains(HasSubstr("the job's 4 nodes of 4 GPUs are 2 of 8 there")));
}

// Slurm takes several options on a line, and counts GPUs by tasks too.
TEST(LaunchScript, CountsTheGpusThatSlurmIsAskedFor) {
  const auto data = [](const std::string& head, const std::string& start) {
    std::string script = kMegatron;
    script.replace(0, script.find("pretrain_gpt.py"), head + start);
    return test::leaves_of(import_script(script, "job.sh", {}).scenario)["parallelism.data"];
  };
  EXPECT_EQ(data("#SBATCH --nodes=16 --exclusive\n",
                 "srun torchrun --nnodes $SLURM_NNODES --nproc-per-node 4 "),
            "64");
  EXPECT_EQ(data("#SBATCH -N4 --ntasks-per-node=1\n#SBATCH --gpus-per-task=8\n",
                 "srun torchrun --nnodes 4 --nproc_per_node=gpu "),
            "32");
  EXPECT_EQ(data("export CUDA_VISIBLE_DEVICES=0,1,2,3\n", "torchrun --nproc_per_node=auto "), "4");
  EXPECT_EQ(data("", "deepspeed --include a:0,1@b:0,1 "), "4");
}

TEST(LaunchScript, ThatAsksSlurmForAnotherGpuThanIsAssumedSaysSo) {
  const std::string script = "#SBATCH --gres=gpu:a100:4\n" + kMegatron;
  EXPECT_THAT(import_script(script, "job.sh", {}).assumed,
              Contains(HasSubstr("H100 in place of the a100")));
}

// Of the environment: what changes times is an approximation, what changes the allocator a note.
TEST(LaunchScript, WhatItSetsInTheEnvironmentIsSaid) {
  const std::string set =
      "export NCCL_NET=Socket\nexport PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n";
  const ImportedJob job = import_script(set + "CUDA_LAUNCH_BLOCKING=1 " + kMegatron, "job.sh", {});
  EXPECT_THAT(job.approximate, AllOf(Contains(HasSubstr("NCCL_NET = Socket")),
                                     Contains(HasSubstr("CUDA_LAUNCH_BLOCKING = 1"))));
  EXPECT_THAT(job.ignored, Contains(HasSubstr("PYTORCH_CUDA_ALLOC_CONF = expandable_segments")));
  EXPECT_TRUE(
      import_script("export NCCL_DEBUG=INFO\n" + kMegatron, "job.sh", {}).approximate.empty());
}

// DeepSpeed's file lies beside the script: its stage has to be the script's.
TEST(LaunchScript, OfMegatronDeepSpeedIsHeldAgainstItsFile) {
  const ScratchFolder folder;
  folder.write("ds.json", R"({"zero_optimization": {"stage": 2}})");
  JobOptions options;
  options.folder = folder.path();
  std::string script = kMegatron;
  script.insert(script.size() - 1, " --deepspeed --deepspeed_config ds.json");
  EXPECT_EQ(
      test::leaves_of(
          import_script(script, "job.sh", options).scenario)["training.data_parallel.sharding"],
      "gradients");
  script.insert(script.size() - 1, " --zero-stage 1");
  EXPECT_THROW(import_script(script, "job.sh", options), InputError);
  EXPECT_THAT(import_script(script, "job.sh", {}).ignored,
              Contains(HasSubstr("ds.json: is not there")));
}

}  // namespace
}  // namespace tessera
