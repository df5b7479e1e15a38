// Files of programs around Hugging Face's Trainer: LLaMA-Factory, axolotl.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/import/job/imported_job.h"
#include "hw/units/input_error.h"
#include "tests/app/import/import_fixture.h"
#include "tests/app/import/trainer_fixture.h"
#include "tests/app/import/yaml_leaves.h"

namespace tessera::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

class TrainerDialect : public TrainerJob {
 protected:
  JobOptions of_llama() const {
    return with_spec(options(), load_model("llama-3-8b", shipped_catalog()));
  }
  ImportedJob file(const std::string& text) const {
    return import_accelerate(text, "job.yaml", of_llama());
  }
  Fields of(const std::string& text) const { return leaves_of(file(text).scenario); }
  std::string refused(const std::string& text) const {
    try {
      file(text);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
  ImportedJob script(const std::string& text) const {
    return import_script(text, "job.sh", of_llama());
  }
};

const std::string kLlamaFactory =
    "model_name_or_path: any/model\nstage: sft\ndo_train: true\ntemplate: llama3\n"
    "per_device_train_batch_size: 2\ngradient_accumulation_steps: 4\nbf16: true\n";
const std::string kAxolotl =
    "base_model: any/model\nmicro_batch_size: 2\ngradient_accumulation_steps: 4\n"
    "sequence_len: 4096\noptimizer: adamw_torch\nbf16: auto\n";

TEST_F(TrainerDialect, LlamaFactoryAdaptsAndCheckpointsByItsOwnDefaults) {
  const ImportedJob job = file(kLlamaFactory + "finetuning_type: lora\n");
  auto fields = leaves_of(job.scenario);
  EXPECT_EQ(fields["training.lora_rank"], "8");
  EXPECT_EQ(fields["training.lora_dropout"], "");
  EXPECT_EQ(fields["training.lora_targets"], "all");
  EXPECT_EQ(fields["training.base_weights"], "in_precision");
  EXPECT_EQ(fields["training.recompute"], "full");
  EXPECT_EQ(fields["training.framework.reentrant_checkpoints"], "true");
  EXPECT_EQ(fields["training.sequence_length"], "2048");
  EXPECT_EQ(fields["training.micro_batch"], "2");
  EXPECT_EQ(fields["training.global_batch"], "8");
  EXPECT_THAT(job.assumed, Contains(HasSubstr("LLaMA-Factory's default of cutoff_len")));
  EXPECT_THAT(job.assumed, Not(Contains(HasSubstr("TRL"))));
  EXPECT_THAT(job.ignored, Contains("template = llama3 (job.yaml:4:1)"));
}

// Trained weights are made fp32, and only pure_bf16 leaves them in 16 bits.
TEST_F(TrainerDialect, LlamaFactoryTrainsAllWeightsInFp32) {
  auto fields = of(kLlamaFactory + "finetuning_type: full\ndisable_gradient_checkpointing: true\n");
  EXPECT_EQ(fields["training.mixed_precision.parameters"], "fp32");
  EXPECT_EQ(fields["training.recompute"], "");
  EXPECT_EQ(fields["training.lora_rank"], "");
  fields = of(kLlamaFactory + "finetuning_type: full\npure_bf16: true\n");
  EXPECT_EQ(fields["training.mixed_precision.parameters"], "bf16");
}

TEST_F(TrainerDialect, LlamaFactoryHoldsWeightsInFourBits) {
  const ImportedJob job = file(
      kLlamaFactory + "finetuning_type: lora\nquantization_bit: 4\nlora_target: q_proj,v_proj\n");
  auto fields = leaves_of(job.scenario);
  EXPECT_EQ(fields["training.base_weights"], "nf4_double_quant");
  EXPECT_THAT(job.approximate, Contains(HasSubstr("adapters beside weights in 4 bits")));
}

TEST_F(TrainerDialect, LlamaFactoryIsRefusedByNameWhereTheStepIsAnother) {
  EXPECT_THAT(refused(kLlamaFactory + "finetuning_type: freeze\n"), HasSubstr("freeze"));
  EXPECT_THAT(refused("model_name_or_path: m\nstage: dpo\ndo_train: true\nfinetuning_type: lora\n"),
              AllOf(HasSubstr("job.yaml:2"), HasSubstr("stage is dpo")));
  EXPECT_THAT(refused(kLlamaFactory + "use_galore: true\n"), HasSubstr("use_galore = true"));
  EXPECT_THAT(refused(kLlamaFactory + "lora_rnk: 8\n"), HasSubstr("write lora_rank"));
  EXPECT_THAT(refused("model_name_or_path: m\nstage: sft\n"), HasSubstr("do_train is not true"));
}

TEST_F(TrainerDialect, LlamaFactoryIsReadBehindItsProgram) {
  folder_.write("sft.yaml", kLlamaFactory + "finetuning_type: full\n");
  const ImportedJob job = script(
      "FORCE_TORCHRUN=1 NNODES=2 NPROC_PER_NODE=8 llamafactory-cli train examples/sft.yaml "
      "per_device_train_batch_size=1\n");
  auto fields = leaves_of(job.scenario);
  EXPECT_EQ(fields["training.micro_batch"], "1");
  EXPECT_EQ(fields["training.global_batch"], "64");
  EXPECT_EQ(fields["parallelism.data"], "16");
}

// Neither one GPU nor eight.
TEST_F(TrainerDialect, LlamaFactoryTakesAllGpusThatItSees) {
  folder_.write("sft.yaml", kLlamaFactory + "finetuning_type: full\n");
  const std::string start = "llamafactory-cli train sft.yaml\n";
  const auto fields = leaves_of(script("CUDA_VISIBLE_DEVICES=0,1 " + start).scenario);
  EXPECT_EQ(fields.at("parallelism.data"), "2");
  EXPECT_THAT([&] { script(start); },
              ThrowsMessage<InputError>(HasSubstr("starts on all GPUs that it sees")));
}

TEST_F(TrainerDialect, LlamaFactoryIsReadByItsArguments) {
  auto fields =
      leaves_of(script("torchrun --nproc_per_node 8 src/train.py --stage sft --do_train "
                       "--model_name_or_path m --finetuning_type lora --lora_rank 32 --bf16 "
                       "--per_device_train_batch_size 4\n")
                    .scenario);
  EXPECT_EQ(fields["training.lora_rank"], "32");
  EXPECT_EQ(fields["parallelism.data"], "8");
}

// Weights are loaded in the step's format and stay in it.
TEST_F(TrainerDialect, AxolotlTrainsIn16Bits) {
  auto fields = of(kAxolotl + "flash_attention: true\ngradient_checkpointing: true\n");
  EXPECT_EQ(fields["training.mixed_precision.parameters"], "bf16");
  EXPECT_EQ(fields["training.mixed_precision.optimizer_states"], "bf16");
  EXPECT_EQ(fields["training.framework.attention"], "flash2");
  EXPECT_EQ(fields["training.sequence_length"], "4096");
  EXPECT_EQ(fields["training.micro_batch"], "2");
  EXPECT_EQ(fields["training.recompute"], "full");
}

TEST_F(TrainerDialect, WhatSaysNeitherYesNorNoIsRefused) {
  const auto with = [](std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_THAT(refused(with(kAxolotl, "bf16: auto", "bf16: maybe")),
              HasSubstr("job.yaml:6:1: bf16 is maybe; use true or false"));
  EXPECT_THAT(refused(with(kLlamaFactory, "bf16: true", "bf16: maybe") + "finetuning_type: full\n"),
              HasSubstr("bf16 is maybe; use true or false"));
  EXPECT_THAT(refused(kLlamaFactory + "finetuning_type: lora\npure_bf16: maybe\n"),
              HasSubstr("pure_bf16 is maybe; use true or false"));
}

// As axolotl's examples have them.
TEST_F(TrainerDialect, KeysWithoutAValueAreNotSet) {
  const std::string kEmpty =
      "adapter:\ndeepspeed:\nfsdp:\nfsdp_config:\ngradient_checkpointing:\nlora_r:\n"
      "liger_rope:\nflash_attention:\nload_in_4bit:\n";
  EXPECT_EQ(of(kAxolotl + kEmpty), of(kAxolotl));
}

TEST_F(TrainerDialect, AxolotlHasDefaultsOfItsOwn) {
  const auto fields = of("base_model: any/model\nbf16: true\n");
  EXPECT_EQ(fields.at("training.micro_batch"), "1");
  EXPECT_EQ(fields.at("training.sequence_length"), "512");
}

TEST_F(TrainerDialect, AxolotlsAdaptersHaveNoDropoutUnlessTheyAreTold) {
  auto fields = of(kAxolotl + "adapter: lora\nlora_r: 32\nlora_target_linear: true\n");
  EXPECT_EQ(fields["training.lora_rank"], "32");
  EXPECT_EQ(fields["training.lora_dropout"], "");
  EXPECT_EQ(fields["training.lora_targets"], "all");
  EXPECT_EQ(fields["training.base_weights"], "in_precision");
  EXPECT_THAT(refused(kAxolotl + "adapter: lora\n"), HasSubstr("lora_r"));
}

TEST_F(TrainerDialect, AxolotlShardsByItsList) {
  auto fields = of(kAxolotl +
                   "fsdp: [full_shard, auto_wrap]\nfsdp_config: {fsdp_offload_params: false, "
                   "fsdp_sharding_strategy: SHARD_GRAD_OP}\n");
  EXPECT_EQ(fields["training.data_parallel.sharding"], "gradients");
  fields = of(kAxolotl + "fsdp_version: 2\nfsdp_config: {reshard_after_forward: true}\n");
  EXPECT_EQ(fields["training.framework.copies_gathered"], "true");
  EXPECT_EQ(fields["training.data_parallel.sharding"], "parameters");
}

TEST_F(TrainerDialect, AxolotlIsRefusedByNameWhereTheStepIsAnother) {
  EXPECT_THAT(refused(kAxolotl + "rl: dpo\n"), HasSubstr("rl = dpo"));
  EXPECT_THAT(refused(kAxolotl + "lora_mlp_kernel: true\n"), HasSubstr("lora_mlp_kernel = true"));
  EXPECT_THAT(refused(kAxolotl + "micro_batchsize: 2\n"), HasSubstr("write micro_batch_size"));
  EXPECT_THAT(refused(kAxolotl + "mystery: 2\n"), HasSubstr("mystery"));
  EXPECT_THAT(file(kAxolotl + "sample_packing: true\n").approximate,
              Contains(HasSubstr("sample_packing")));
}

TEST_F(TrainerDialect, AxolotlIsReadBehindItsPrograms) {
  folder_.write("job.yml", kAxolotl);
  for (const char* line :
       {"accelerate launch --num_processes 8 -m axolotl.cli.train job.yml\n",
        "axolotl preprocess job.yml\nCUDA_VISIBLE_DEVICES=0 axolotl train a/job.yml\n"})
    EXPECT_EQ(leaves_of(script(line).scenario)["training.sequence_length"], "4096") << line;
}

TEST_F(TrainerDialect, OptionsBehindAxolotlGoOverItsFile) {
  folder_.write("ax.yaml", kAxolotl);
  auto fields = leaves_of(script("axolotl train ax.yaml --num-processes 4 --micro-batch-size=1 "
                                 "--learning-rate 1e-4 --sequence-len 8192\n")
                              .scenario);
  EXPECT_EQ(fields["parallelism.data"], "4");
  EXPECT_EQ(fields["training.micro_batch"], "1");
  EXPECT_EQ(fields["training.global_batch"], "16");
  EXPECT_EQ(fields["training.sequence_length"], "8192");
  fields = leaves_of(
      script("accelerate launch --num_processes 2 -m axolotl.cli.train ax.yaml --micro_batch_size "
             "1\n")
          .scenario);
  EXPECT_EQ(fields["parallelism.data"], "2");
  EXPECT_EQ(fields["training.micro_batch"], "1");
  EXPECT_THAT([&] { script("axolotl train ax.yaml --num-processes 4 --micro-batch-sise 1\n"); },
              ThrowsMessage<InputError>(HasSubstr("micro_batch_sise")));
}

TEST_F(TrainerDialect, ARankOfZeroIsRefusedByTheFilesOwnName) {
  EXPECT_THAT(refused(kLlamaFactory + "finetuning_type: lora\nlora_rank: 0\n"),
              HasSubstr("job.yaml:9:1: lora_rank is 0"));
  EXPECT_THAT(refused(kAxolotl + "adapter: lora\nlora_r: 0\nlora_target_linear: true\n"),
              HasSubstr("job.yaml:8:1: lora_r is 0"));
}

}  // namespace
}  // namespace tessera::test
