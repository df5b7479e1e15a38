// Scripts and files of programs that are not read: each is told by its own name.
#include "app/import/job/foreign_programs.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/import/job/imported_job.h"
#include "hw/units/input_error.h"
#include "sim/config/files/yaml_tree.h"

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Importer = ImportedJob (*)(const std::string&, const std::string&, const JobOptions&);

std::string refusal(const std::string& script, Importer importer) {
  try {
    importer(script, "job.sh", {});
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

struct Case {
  std::string text, program, profile;
};

void expect_named(const Case& one) {
  for (const Importer importer : {&import_script, &import_megatron})
    EXPECT_THAT(refusal(one.text + "\n", importer),
                AllOf(HasSubstr("job.sh:1: starts " + one.program),
                      HasSubstr("--framework " + one.profile), Not(HasSubstr("--num-layers"))))
        << one.text;
}

TEST(ForeignPrograms, ThatAScriptStartsAreNamedWithTheNearestProfile) {
  for (const Case& one : {
           Case{"tune run --nproc_per_node 8 lora_finetune_distributed --config llama3/8B_lora",
                "torchtune", "torchtune"},
           Case{"litgpt finetune_lora meta-llama/Llama-3-8B --devices 4", "litgpt", "fsdp"},
           Case{"swift sft --model Qwen/Qwen2.5-7B --per_device_train_batch_size 1", "ms-swift",
                "hf-eager"},
           Case{"python train_unsloth.py --max_seq_length 2048", "Unsloth", "hf-eager"},
           Case{"lightning run model --devices=8 train.py", "Lightning", "fsdp"},
           Case{"python train.py fit --config c.yaml --trainer.devices 8", "Lightning", "fsdp"},
           Case{"nemo llm pretrain --factory llama3_8b", "NeMo", "megatron"},
           Case{"torchrun --nproc_per_node=8 scripts/performance/run_script.py -m llama3 -s 8b",
                "Megatron-Bridge", "megatron"},
       }) {
    expect_named(one);
  }
}

// What a program does besides is another's: its fine-tuning, Megatron's layers, workers of Ray.
TEST(ForeignPrograms, AreToldApartFromTheirOthers) {
  for (const Case& one : {
           Case{"torchrun --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer data.train_files=x",
                "verl's fine-tuning", "fsdp"},
           Case{"deepspeed --module openrlhf.cli.train_sft --max_len 2048",
                "OpenRLHF's fine-tuning", "hf-eager"},
           Case{"megatron sft --load Qwen2.5-7B-mcore --tensor_model_parallel_size 2", "ms-swift",
                "megatron"},
           Case{"ray job submit -- python train.py --num-workers 8 --model_name_or_path m", "Ray",
                "hf-eager"},
           Case{"NPROC_PER_NODE=8 xtuner train full_alpaca.py", "XTuner", "hf-eager"},
           Case{"torchrun --nproc_per_node=8 run_recipe.py --recipe llama3_8b_pretrain_config",
                "Megatron-Bridge", "megatron"},
       })
    expect_named(one);
}

TEST(ForeignPrograms, WhoseFilesAreReadAreToldByTheFileThatIsMissing) {
  struct Start {
    std::string text, program, reader;
  };
  for (const Start& one :
       {Start{"axolotl train config.yml", "axolotl with config.yml", "accelerate"},
        Start{"accelerate launch -m axolotl.cli.train lora-8b.yml", "axolotl with lora-8b.yml",
              "accelerate"},
        Start{"FORCE_TORCHRUN=1 llamafactory-cli train llama3.yaml",
              "LLaMA-Factory with llama3.yaml", "accelerate"},
        Start{"llamafactory-cli webui", "LLaMA-Factory without a file", "accelerate"},
        Start{"composer train/train.py yamls/mpt-7b.yaml", "llm-foundry with yamls/mpt-7b.yaml",
              "llm-foundry"},
        Start{"torchrun run_train.py --config-file c.yaml", "nanotron with c.yaml", "nanotron"}})
    for (const Importer importer : {&import_script, &import_megatron})
      EXPECT_THAT(refusal(one.text + "\n", importer),
                  AllOf(HasSubstr("job.sh:1: starts " + one.program),
                        HasSubstr("tessera import " + one.reader)))
          << one.text;
}

// A few of its arguments are Megatron's too: the list of what is missing would name the others.
TEST(ForeignPrograms, AProgramThatNobodyKnowsIsToldByItsArguments) {
  for (const Importer importer : {&import_script, &import_megatron})
    EXPECT_THAT(refusal("python finetune.py --model-name X --bf16 --lr 1e-5\n", importer),
                AllOf(HasSubstr("starts finetune.py, which is not known"),
                      HasSubstr("(--model-name)"), Not(HasSubstr("--num-layers is missing"))));
}

// A word among the arguments is no program.
TEST(ForeignPrograms, AreNotSeenAmongArguments) {
  const std::string script =
      "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 12 --hidden-size 768 "
      "--num-attention-heads 12 --seq-length 1024 --max-position-embeddings 1024 "
      "--micro-batch-size 1 --bf16 --wandb-project trl --wandb-exp-name composer\n";
  EXPECT_EQ(refusal(script, &import_script), "");
}

TEST(ForeignPrograms, AProgramThatNobodyKnowsIsNamed) {
  EXPECT_THAT(refusal("mpirun -np 32 python train_gpt2.py --batch 4\n", &import_megatron),
              HasSubstr("starts train_gpt2.py, which is not known"));
}

std::string problem_of(const std::string& yaml) {
  const auto origin = std::make_shared<Origin>(Origin{"job.yaml", {}, true});
  const auto problem = problem_of_foreign_file(parse_yaml(yaml, origin));
  return problem ? problem->what : "";
}

// Many of them have a tokenizer, so it tells torchtune's where no other key tells.
TEST(ForeignPrograms, OfFilesAreToldByTheirKeys) {
  EXPECT_THAT(problem_of("checkpoint_dir: c\ntrain: {}\n"), HasSubstr("litgpt"));
  EXPECT_THAT(problem_of("tokenizer: {}\nmodel: {}\n"), HasSubstr("torchtune"));
  EXPECT_THAT(problem_of("trainer: {devices: 8}\n"), HasSubstr("Lightning"));
  EXPECT_THAT(problem_of("trainer: {}\nmodel: {tensor_model_parallel_size: 2}\n"),
              HasSubstr("NeMo"));
  EXPECT_THAT(problem_of("model: {tensor_model_parallel_size: 2}\ntrain: {}\n"),
              HasSubstr("Megatron-Bridge"));
  EXPECT_THAT(problem_of("model: {partial_pretrain: m}\ntrainer: {}\n"), HasSubstr("verl's fine"));
  EXPECT_EQ(problem_of("model: gpt2\ntraining: {}\n"), "");
}

}  // namespace
}  // namespace tessera
