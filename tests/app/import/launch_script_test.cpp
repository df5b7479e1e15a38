// Scripts that start torchtitan or Megatron-LM, and what callers say beside them.
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/import/job/imported_job.h"
#include "hw/units/input_error.h"
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
  EXPECT_TRUE(job.by_torchtitan);
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
  EXPECT_THAT(refusal("torchrun --nproc_per_node 8 run_clm.py --model_name_or_path gpt2 "
                      "--per_device_train_batch_size=2 --fsdp full_shard --bf16\n"),
              AllOf(HasSubstr("job.sh:1: takes --model_name_or_path"),
                    HasSubstr("import accelerate"), Not(HasSubstr("--num-layers"))));
}

}  // namespace
}  // namespace tessera
