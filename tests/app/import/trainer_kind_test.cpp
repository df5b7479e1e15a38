// Commands with arguments of the Trainer that are no fine-tuning, or leave open what they are.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/import/job/imported_job.h"
#include "hw/units/input_error.h"
#include "tests/app/import/trainer_fixture.h"

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
class TrainerKind : public test::TrainerJob {};

// Preferences, rewards and rollouts are passes that fine-tuning does not have.
TEST_F(TrainerKind, OfProgramsThatCompareOrGenerateIsRefused) {
  const std::string arguments = " --model_name_or_path m --per_device_train_batch_size 1";
  for (const std::string program :
       {"-m trl.scripts.dpo", "examples/online_dpo.py", "train_kto.py", "CPO_simple.py",
        "scripts/xpo.py", "reward_modeling.py", "recipes/grpo/train.py", "my-dpo/train.py"})
    EXPECT_THAT(refusal("accelerate launch --num_processes 8 " + program + arguments + "\n"),
                HasSubstr("runs other models"))
        << program;
  for (const std::string argument :
       {"--beta 0.1", "--num_generations 8", "--loss_type sigmoid", "--reward_funcs accuracy"})
    EXPECT_THAT(refusal(torchrun(argument)),
                HasSubstr("job.sh:1: " + argument.substr(0, argument.find(' ')) +
                          " is of programs that compare or generate"));
}

// A folder of another name is none of them: "ppo" in "support".
TEST_F(TrainerKind, OfAFolderWhoseNameHoldsAnotherIsRead) {
  EXPECT_EQ(refusal("python support/train.py --model_name_or_path m\n"), "");
}

TEST_F(TrainerKind, OfAFileAboutPairsAsksForItsProgram) {
  const std::string text =
      "model_name_or_path: m\nbf16: true\ndataset_name: trl-lib/ultrafeedback_binarized\n";
  try {
    import_trainer_file(text, "args.yaml", options());
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("args.yaml:3:1: --dataset_name is trl-lib"));
  }
}

TEST_F(TrainerKind, ThatEvaluatesAloneIsRefused) {
  EXPECT_THAT(refusal(torchrun("--do_eval")), HasSubstr("without --do_train"));
  EXPECT_EQ(refusal(torchrun("--do_eval --do_train")), "");
}

// TRL's configuration has other defaults than the Trainer, by version.
TEST_F(TrainerKind, OfTrlSaysWhatItMayTurnOnByItself) {
  const std::string sft = "torchrun --nproc_per_node 8 sft.py --model_name_or_path m ";
  EXPECT_THAT(import(sft + "\n").assumed, AllOf(Contains(HasSubstr("no recomputation: TRL")),
                                                Contains(HasSubstr("no autocast: TRL"))));
  EXPECT_THAT(import(sft + "--gradient_checkpointing false --bf16\n").assumed,
              Not(Contains(HasSubstr("TRL"))));
  EXPECT_THAT(import(torchrun("")).assumed, Not(Contains(HasSubstr("TRL"))));
}

TEST_F(TrainerKind, WhoseDistributionTheEnvironmentChoosesIsRefused) {
  for (const std::string variable : {"ACCELERATE_USE_FSDP=true", "ACCELERATE_USE_DEEPSPEED=1"}) {
    EXPECT_THAT(refusal(variable + " " + torchrun("--bf16")), HasSubstr(variable));
    EXPECT_THAT(refusal("export " + variable + "\n" + torchrun("--bf16")), HasSubstr(variable));
  }
}

TEST_F(TrainerKind, SaysWhatPackingAndEvaluationAreNotCountedFor) {
  const std::string start = "--per_device_train_batch_size 2 --bf16 --max_length 2048 ";
  EXPECT_THAT(import(torchrun(start + "--packing")).approximate,
              Contains(HasSubstr("--packing: documents see only themselves")));
  EXPECT_THAT(import(torchrun(start + "--packing --packing_strategy wrapped")).approximate,
              testing::IsEmpty());
  EXPECT_THAT(import(torchrun(start)).assumed, Contains(HasSubstr("every sequence is as long")));
  EXPECT_THAT(import(torchrun(start + "--eval_strategy steps")).approximate,
              Contains(HasSubstr("evaluation runs 8 sequences per GPU beside 2 of training")));
  EXPECT_THAT(
      import(torchrun(start + "--eval_strategy epoch --per_device_eval_batch_size 2")).approximate,
      testing::IsEmpty());
}

TEST_F(TrainerKind, IsToldWhereSlurmIsAskedForOtherGpus) {
  const std::string start =
      "torchrun --nproc_per_node 8 run_clm.py --model_name_or_path m --bf16\n";
  for (const std::string script :
       {"#SBATCH --gres=gpu:a100:8\n" + start, "#SBATCH --constraint=\"ib&a100\"\n" + start,
        "#SBATCH -C a100\n" + start, "srun --gres gpu:a100:8 " + start,
        "srun --constraint=a100 --gpus-per-node=8 " + start})
    EXPECT_THAT(import(script).assumed, Contains(HasSubstr("in place of the a100"))) << script;
  for (const std::string script :
       {start, "#SBATCH --gres=gpu:8\n" + start, "#SBATCH --gres=gpu:h100:8\n" + start})
    EXPECT_THAT(import(script).assumed, Not(Contains(HasSubstr("in place of")))) << script;
}

}  // namespace
}  // namespace tessera
