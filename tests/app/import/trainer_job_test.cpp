// Scripts that start Hugging Face's Trainer.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/import/job/imported_job.h"
#include "hw/units/input_error.h"
#include "tests/app/import/trainer_fixture.h"
#include "tests/app/import/yaml_leaves.h"

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

using test::Fields;
using test::TrainerJob;

const std::string kFsdp =
    "--per_device_train_batch_size 2 --gradient_accumulation_steps 8 --bf16 --block_size 4096 "
    "--fsdp \"full_shard auto_wrap\" --gradient_checkpointing --learning_rate 1e-5";

TEST_F(TrainerJob, OfFsdpIsWhatItsArgumentsSay) {
  const ImportedJob job = import(torchrun(kFsdp));
  Fields all = test::leaves_of(job.scenario);
  EXPECT_EQ(job.kind, "job of Hugging Face's Trainer");
  EXPECT_EQ(all["training.framework"], "fsdp");
  EXPECT_EQ(all["training.data_parallel.sharding"], "parameters");
  EXPECT_EQ(all["training.precision"], "bf16");
  EXPECT_EQ(all["training.recompute"], "full");
  EXPECT_EQ(all["training.sequence_length"], "4096");
  EXPECT_EQ(all["training.micro_batch"], "2");
  EXPECT_EQ(all["training.global_batch"], "128");  // 2 sequences x 8 micro-batches x 8 GPUs
  EXPECT_EQ(all["parallelism.data"], "8");
  EXPECT_THAT(job.ignored, Contains(HasSubstr("--learning_rate")));
}

TEST_F(TrainerJob, IsRefusedWhereASwitchSaysNeitherYesNorNo) {
  EXPECT_THAT(refusal(torchrun("--bf16 maybe --block_size 128 --per_device_train_batch_size 1")),
              HasSubstr("job.sh:1: --bf16 is maybe; use true or false"));
  EXPECT_THAT(refusal(torchrun("--bf16 $BF16 --block_size 128 --per_device_train_batch_size 1")),
              HasSubstr("--bf16 is $BF16; the file does not set it; add --define NAME=VALUE"));
}

// Each of these arguments is another step.
TEST_F(TrainerJob, FollowsEveryArgument) {
  struct Change {
    std::string arguments, field, value;
  };
  const std::string kAutocast = "training.mixed_precision.parameters";
  for (const Change& change : {
           Change{"--per_device_train_batch_size 4", "training.micro_batch", "4"},
           Change{"--per_device_train_batch_size 4", "training.global_batch", "32"},
           Change{"--bf16", "training.precision", "bf16"},
           Change{"--bf16", kAutocast, "fp32"},
           Change{"--bf16 --torch_dtype bfloat16", kAutocast, "bf16"},
           Change{"--fp16 True", "training.precision", "fp16"},
           Change{"--bf16 False", "training.precision", "fp32"},
           Change{"--tf32 True", "training.precision", "tf32"},
           Change{"--max_grad_norm 0", "training.clip_gradients", "false"},
           Change{"--optim adamw_torch_fused", "training.framework.fused_optimizer", "true"},
           Change{"--optim adamw_bnb_8bit", "training.mixed_precision.optimizer_states", "int8"},
           Change{"--torch_compile", "training.kernels", "fused"},
           Change{"--attn_implementation eager", "training.framework.attention", "unfused"},
           Change{"--max-seq-length 1024", "training.sequence_length", "1024"},
           Change{"--fsdp \"shard_grad_op auto_wrap\"", "training.data_parallel.sharding",
                  "gradients"},
           Change{"--fsdp \"full_shard auto_wrap offload\"", "training.offload_parameters", "true"},
           Change{"--gradient_checkpointing --gradient_checkpointing_kwargs "
                  "'{\"use_reentrant\": false}'",
                  "training.framework.reentrant_checkpoints", "false"},
       }) {
    const std::string batch = change.arguments.find("--per_device") == std::string::npos
                                  ? "--per_device_train_batch_size 1 "
                                  : "";
    Fields all = fields(torchrun(batch + change.arguments));
    EXPECT_EQ(all[change.field], change.value) << change.arguments;
  }
}

// Of several arguments the one that says more counts, whatever their order.
TEST_F(TrainerJob, FollowsArgumentsThatMeanMoreThanTheirName) {
  const std::string start = "--per_device_train_batch_size 1 --max_length 2048 ";
  const std::string states = "training.mixed_precision.optimizer_states";
  const auto value = [&](const std::string& arguments, const std::string& field) {
    return fields(torchrun(start + arguments))[field];
  };
  EXPECT_EQ(value("--optim paged_adamw_32bit --torch_dtype bfloat16", states), "fp32");
  EXPECT_EQ(value("--optim adamw_bnb_8bit --bf16 --torch_dtype bfloat16", states), "int8");
  EXPECT_EQ(value("--bf16 --torch_dtype auto", "training.mixed_precision.parameters"), "bf16");
  EXPECT_EQ(value("--ddp_bucket_cap_mb 100", "training.data_parallel.bucket"), "104857600 B");
  EXPECT_EQ(value("--torch_compile_backend inductor", "training.kernels"), "fused");
  EXPECT_EQ(value("--bf16 --attn_implementation kernels-community/flash-attn3",
                  "training.framework.attention"),
            "flash3");
}

/// torch's hybrid shards stay within a node.
TEST_F(TrainerJob, DividesHybridShardsWithinItsOwnNodes) {
  const std::string arguments =
      " t.py --model_name_or_path m --bf16 --fsdp \"hybrid_shard auto_wrap\"\n";
  const auto group = [&](const std::string& launcher, std::int64_t gpus) {
    JobOptions job = options();
    job.gpus = gpus;
    const ImportedJob read = import_script(launcher + arguments, "job.sh", job);
    return test::leaves_of(read.scenario)["training.data_parallel.shard_group"];
  };
  EXPECT_EQ(group("torchrun --nnodes 4 --nproc_per_node 8", 0), "8");
  EXPECT_EQ(group("torchrun --nnodes 2 --nproc_per_node 4", 0), "4");
  EXPECT_EQ(group("torchrun --nproc_per_node 8", 64), "8");
}

TEST_F(TrainerJob, ReadsFsdpsOwnFile) {
  folder_.write("fsdp.json",
                R"({"transformer_layer_cls_to_wrap": ["LlamaDecoderLayer"], "version": 2,
                    "activation_checkpointing": true})");
  Fields all = fields(torchrun("--fsdp \"full_shard auto_wrap\" --fsdp_config fsdp.json"));
  EXPECT_EQ(all["training.recompute"], "full");
  EXPECT_EQ(all["training.framework.copies_gathered"], "true");
  EXPECT_THAT(refusal(torchrun("--fsdp full_shard")), HasSubstr("has no auto_wrap"));
}

const std::string kAuto = R"({"bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 2},
  "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
  "train_batch_size": "auto", "gradient_clipping": "auto"})";

// "auto" is what the arguments say: 4 sequences x 2 micro-batches x 8 GPUs.
TEST_F(TrainerJob, FillsWhatDeepSpeedsFileLeavesToIt) {
  folder_.write("ds.json", kAuto);
  const std::string script =
      "deepspeed --num_gpus=8 train.py --deepspeed ds.json --model_name_or_path m "
      "--per_device_train_batch_size 4 --gradient_accumulation_steps 2";
  Fields all = fields(script + " --bf16 True\n");
  EXPECT_EQ(all["training.micro_batch"], "4");
  EXPECT_EQ(all["training.global_batch"], "64");
  EXPECT_EQ(all["training.precision"], "bf16");
  EXPECT_EQ(all["training.data_parallel.sharding"], "gradients");
  EXPECT_EQ(fields(script + "\n")["training.precision"], "fp32");  // nothing asks for bf16
}

TEST_F(TrainerJob, DoesNotStartWhereDeepSpeedsFileSaysAnotherBatch) {
  folder_.write("ds.json", R"({"zero_optimization": {"stage": 2}, "train_batch_size": 64})");
  folder_.write("micro.json", R"({"train_micro_batch_size_per_gpu": 1})");
  EXPECT_THAT(refusal(torchrun("--deepspeed ds.json --per_device_train_batch_size 4")),
              HasSubstr("= 32, and DeepSpeed's file says 64"));
  EXPECT_EQ(refusal(torchrun("--deepspeed ds.json --per_device_train_batch_size 8")), "");
  EXPECT_THAT(refusal(torchrun("--deepspeed micro.json --per_device_train_batch_size 4")),
              HasSubstr("train_micro_batch_size_per_gpu of micro.json is 1"));
}

// The command line over the file, as accelerate's launcher has it.
TEST_F(TrainerJob, TakesWhatAccelerateIsLaunchedWith) {
  folder_.write("fsdp.yaml",
                "distributed_type: FSDP\nmixed_precision: bf16\nnum_machines: 1\nnum_processes: 8\n"
                "fsdp_config: {fsdp_sharding_strategy: FULL_SHARD}\n");
  const std::string start = "srun --nodes 4 accelerate launch --config_file fsdp.yaml ";
  const std::string program = "sft.py --model_name_or_path m --per_device_train_batch_size 1\n";
  EXPECT_EQ(fields(start + program)["parallelism.data"], "8");
  Fields all = fields(start + "--num_machines 4 --num_processes 32 " + program);
  EXPECT_EQ(all["parallelism.data"], "32");
  EXPECT_EQ(all["training.data_parallel.sharding"], "parameters");
  EXPECT_EQ(all["training.precision"], "bf16");
  all = fields(
      "accelerate launch --num_processes 4 --use_deepspeed --zero_stage 3 "
      "--mixed_precision fp16 " +
      program);
  EXPECT_EQ(all["training.data_parallel.sharding"], "parameters");
  EXPECT_EQ(all["training.mixed_precision.master_weights"], "true");
  EXPECT_EQ(all["parallelism.data"], "4");
}

// Two names of the length that say different things.
TEST_F(TrainerJob, WhoseLengthIsToldTwiceAsksForOne) {
  EXPECT_THAT(refusal(torchrun("--max_seq_length 8192 --model_max_length 4096")),
              HasSubstr("--model_max_length is 4096, and --max_seq_length is 8192"));
  EXPECT_EQ(refusal(torchrun("--max_seq_length 4096 --model_max_length 4096")), "");
}

TEST_F(TrainerJob, OfPythonIsOneProcessAndSaysSo) {
  const ImportedJob job =
      import("python run_clm.py --model_name_or_path m --per_device_train_batch_size 1\n");
  EXPECT_EQ(test::leaves_of(job.scenario)["parallelism.data"], "1");
  EXPECT_THAT(job.assumed, Contains(HasSubstr("DataParallel")));
}

// Its -n is the name of an environment.
TEST_F(TrainerJob, MayBeRunByConda) {
  const ImportedJob job = import(
      "conda run -n gpu --no-capture-output torchrun --nproc_per_node 4 run_clm.py "
      "--model_name_or_path m\n");
  EXPECT_EQ(test::leaves_of(job.scenario)["parallelism.data"], "4");
}

TEST_F(TrainerJob, WhatItsBatchIsWithoutArgumentsIsSaid) {
  const ImportedJob job = import(torchrun(""));
  EXPECT_EQ(test::leaves_of(job.scenario)["training.micro_batch"], "8");
  EXPECT_THAT(job.assumed, Contains(HasSubstr("8 sequences per GPU")));
}

TEST_F(TrainerJob, RefusesByNameWhatChangesTheStep) {
  for (const std::string argument :
       {"--use_liger_kernel", "--optim adafactor", "--auto_find_batch_size True",
        "--neftune_noise_alpha 5", "--fp16 --bf16", "--load_in_8bit True", "--invented 3"})
    EXPECT_THAT(refusal(torchrun(argument)),
                AllOf(HasSubstr("job.sh:1: " + argument.substr(0, argument.find(' '))),
                      Not(HasSubstr("--num-layers"))))
        << argument;
  EXPECT_THAT(refusal("python dpo.py --model_name_or_path m\n"), HasSubstr("runs other models"));
}

TEST_F(TrainerJob, TakesItsArgumentsFromAFile) {
  const std::string arguments = R"({"model_name_or_path": "m", "per_device_train_batch_size": 2,
      "gradient_accumulation_steps": 8, "bf16": true, "block_size": 4096, "seed": null,
      "fsdp": ["full_shard", "auto_wrap"], "gradient_checkpointing": true,
      "gradient_checkpointing_kwargs": {"use_reentrant": false}, "learning_rate": 1e-5})";
  JobOptions eight = options();
  eight.gpus = 8;
  const ImportedJob job = import_trainer_file(arguments, "args.json", eight);
  Fields all = fields(torchrun(kFsdp + " --gradient_checkpointing_kwargs use_reentrant=false"));
  all["name"] = "args";
  EXPECT_EQ(test::leaves_of(job.scenario), all);
  EXPECT_EQ(job.kind, "job of Hugging Face's Trainer");
  EXPECT_THAT(job.assumed, Contains(HasSubstr("does not say which program")));

  all["name"] = "job";
  folder_.write("args.json", arguments);
  EXPECT_EQ(fields("torchrun --nproc_per_node 8 run_clm.py args.json\n"), all);
  all["training.micro_batch"] = "1";
  all["training.global_batch"] = "64";
  EXPECT_EQ(fields("torchrun --nproc_per_node 8 sft.py --config args.json "
                   "--per_device_train_batch_size 1\n"),
            all);
}

TEST_F(TrainerJob, RefusesByNameWhatIsWrongInItsFile) {
  const auto refused = [&](const std::string& text) {
    try {
      import_trainer_file(text, "args.yaml", options());
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("read");
  };
  const std::string start = "per_device_train_batch_size: 2\n";
  EXPECT_THAT(refused(start + "beta: 0.1\n"), HasSubstr("args.yaml:2:1: --beta"));
  EXPECT_THAT(refused(start + "deepspeed: {zero_optimization: {stage: 2}}\n"),
              HasSubstr("args.yaml:2:1: deepspeed holds a configuration itself"));
}

TEST_F(TrainerJob, OfAModelThatNobodyGaveAsksForIt) {
  JobOptions none = options();
  none.model.clear();
  EXPECT_THROW(import_script(torchrun(kFsdp), "job.sh", none), InputError);
}

}  // namespace
}  // namespace tessera
