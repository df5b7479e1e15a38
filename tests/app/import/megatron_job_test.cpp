// Arguments of Megatron-LM as scenarios: read, harmless or refused.
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/import/job/imported_job.h"
#include "app/import/job/megatron/megatron_arguments.h"
#include "hw/units/input_error.h"
#include "sim/config/files/yaml_text.h"

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kGpt =
    " --num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 "
    "--max-position-embeddings 1024 --micro-batch-size 2 --global-batch-size 64 --bf16 ";
const std::string kLlama =
    " --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 11008 "
    "--seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 128 "
    "--bf16 --normalization RMSNorm --swiglu --disable-bias-linear --position-embedding-type rope "
    "--untie-embeddings-and-output-weights --vocab-size 32000 ";
const std::string kExperts =
    kLlama + "--num-experts 8 --moe-grouped-gemm --moe-token-dispatcher-type alltoall ";

std::string torchrun(const std::string& arguments, int nodes = 1) {
  return "torchrun --nproc_per_node 8 --nnodes " + std::to_string(nodes) + " pretrain_gpt.py " +
         arguments + "\n";
}

ImportedJob job_of(const std::string& text, const JobOptions& options = {}) {
  return import_megatron(text, "job.sh", options);
}

std::string yaml_of(const std::string& text, const JobOptions& options = {}) {
  return to_yaml(job_of(text, options).scenario);
}

/// Everything that an import is refused for.
std::string refusal_of(const std::string& text, const JobOptions& options = {}) {
  try {
    job_of(text, options);
  } catch (const InputError& error) {
    std::string all;
    for (const Problem& problem : error.problems())
      all += problem.where + ": " + problem.what + "; " + problem.hint + "\n";
    return all;
  }
  return "accepted";
}

std::string with(const std::string& arguments) {
  return torchrun(kGpt + arguments);
}

TEST(MegatronArguments, NoneIsInTheTableTwice) {
  std::set<std::string_view> names;
  for (const KnownArgument& argument : megatron_arguments())
    EXPECT_TRUE(names.insert(argument.name).second) << argument.name;
  for (const KnownArgument& argument : megatron_arguments()) {
    EXPECT_TRUE(argument.name.starts_with("--")) << argument.name;
    EXPECT_FALSE(argument.use != ArgumentUse::refused && !argument.neutral.empty())
        << argument.name;
  }
}

TEST(MegatronArguments, HarmlessOnesChangeNothing) {
  const std::string plain = yaml_of(with(""));
  for (const KnownArgument& argument : megatron_arguments()) {
    if (argument.use != ArgumentUse::harmless) continue;
    EXPECT_EQ(yaml_of(with(std::string(argument.name))), plain) << argument.name;
  }
}

TEST(MegatronArguments, RefusedOnesEndTheImportAllAtOnce) {
  const std::string all = refusal_of(
      torchrun(kGpt + "--multi-latent-attention --moe-shared-expert-intermediate-size 512 "
                      "--window-size 128,0 --mtp-num-layers 1 --hybrid-attention-ratio 0.5 "
                      "--img-h 336 --fp32-lm-head --never-heard-of 3"));
  for (const char* name : {"--multi-latent-attention is not simulated: latent attention",
                           "--moe-shared-expert-intermediate-size is not simulated: shared experts",
                           "--window-size is not simulated: attention within windows",
                           "--mtp-num-layers is not simulated: layers that predict further tokens",
                           "--hybrid-attention-ratio is not simulated: layers other than attention",
                           "--img-h is not simulated: vision towers",
                           "--fp32-lm-head is not simulated", "--never-heard-of is not known"})
    EXPECT_THAT(all, HasSubstr("job.sh:1: " + std::string(name)));
  for (const KnownArgument& argument : megatron_arguments()) {
    if (argument.use != ArgumentUse::refused) continue;
    EXPECT_THAT(refusal_of(with(std::string(argument.name) + " 7")),
                HasSubstr(std::string(argument.name)));
  }
}

TEST(MegatronArguments, NeutralValuesAreNoReasonToRefuse) {
  EXPECT_EQ(yaml_of(with("--mtp-num-layers 0 --moe-layer-freq 1 --window-size None "
                         "--cpu-offloading-num-layers 0 --use-tiling false")),
            yaml_of(with("")));
}

TEST(MegatronArguments, LenientSaysInTheScenarioWhatItLeavesOut) {
  const ImportedJob job = job_of(with("--mtp-num-layers 1 --never-heard-of 3"), {.lenient = true});
  EXPECT_THAT(job.approximate,
              ElementsAre("--mtp-num-layers = 1 is not simulated: layers that predict further "
                          "tokens are not simulated",
                          "--never-heard-of = 3 is not known"));
  EXPECT_THAT(to_yaml(job.scenario), HasSubstr("approximations:\n  - \"--mtp-num-layers = 1"));
}

TEST(MegatronArguments, WhatStandsBehindASwitchIsNotLost) {
  EXPECT_THAT(refusal_of(with("--swiglu $MORE_ARGS")), HasSubstr("$MORE_ARGS"));
  EXPECT_THAT(refusal_of(with("--lr 1e-4 $MORE")),
              HasSubstr("job.sh:1: the arguments hold $MORE; the file does not set it; add "
                        "--define MORE=VALUE"));
  EXPECT_THAT(refusal_of(with("--no-load-optim $X")), HasSubstr("$X"));
  EXPECT_EQ(yaml_of(with("--lr 1e-4 $MORE"), {.variables = {{"MORE", "--qk-layernorm"}}}),
            yaml_of(with("--qk-layernorm")));
  EXPECT_EQ(yaml_of(with("--data-path 0.3 $A 0.7 $B --save $DIR")), yaml_of(with("")));
}

TEST(MegatronLaunch, TheProgramsThatAreNoTrainingAreNamed) {
  for (const char* program :
       {"pretrain_bert.py", "pretrain_t5.py", "tasks/main.py", "pretrain_vlm.py",
        "tools/run_text_generation_server.py", "tools/checkpoint/convert.py"})
    EXPECT_THAT(refusal_of("torchrun --nproc_per_node 8 ../" + std::string(program) + kGpt),
                HasSubstr("job.sh:1: ../" + std::string(program)));
  EXPECT_THAT(yaml_of("python tools/preprocess_data.py --input x --workers 8\n" + with("")),
              HasSubstr("layers: 24"));
}

TEST(MegatronLaunch, SizesComeFromWhateverStartsTheJob) {
  const auto data = [](int replicas) { return "data: " + std::to_string(replicas) + "\n"; };
  const std::string run = "pretrain_gpt.py" + kGpt + "--tensor-model-parallel-size 2\n";
  EXPECT_THAT(yaml_of("deepspeed --num_nodes 2 --num_gpus 4 " + run), HasSubstr(data(4)));
  EXPECT_THAT(yaml_of("mpirun -np 16 python " + run), HasSubstr(data(8)));
  EXPECT_THAT(yaml_of("srun -N 4 --ntasks-per-node=8 python " + run), HasSubstr(data(16)));
  EXPECT_THAT(yaml_of("#SBATCH --nodes=4\n#SBATCH --gpus-per-node=a100:4\nsrun python " + run),
              HasSubstr(data(8)));
  EXPECT_THAT(yaml_of("#SBATCH -N 2\n#SBATCH --gres=gpu:8 # all\n"
                      "torchrun --nnodes $SLURM_NNODES --nproc-per-node 8 " +
                      run),
              HasSubstr(data(8)));
  EXPECT_THAT(refusal_of("torchrun --nnodes $NODES --nproc-per-node 8 " + run),
              HasSubstr("--nnodes is $NODES"));
  EXPECT_THAT(refusal_of("torchrun --nproc-per-node 8 pretrain_gpt.py" + kGpt +
                         "--tensor-model-parallel-size 3\n"),
              HasSubstr("= 3 does not divide the 8 GPUs of the job"));
}

TEST(MegatronLaunch, AnAssumedClusterIsAsLargeAsTheJob) {
  EXPECT_THAT(yaml_of(torchrun(kGpt, 1)), HasSubstr("cluster: \"dgx-h100\""));
  EXPECT_THAT(yaml_of(torchrun(kGpt + "--global-batch-size 96", 3)),
              AllOf(HasSubstr("extends: \"dgx-h100-x8-rail\""), HasSubstr("node_count: 3")));
  EXPECT_THAT(yaml_of(torchrun(kGpt + "--global-batch-size 1024", 64)),
              AllOf(HasSubstr("extends: \"dgx-superpod-h100\""), HasSubstr("node_count: 64")));
}

TEST(MegatronLaunch, TheBranchThatIsTakenDecidesTheModel) {
  const std::string script =
      "if [ $SIZE = 7B ]; then L=32; elif [ $SIZE = 70B ]; then L=80; else L=4; fi\n" +
      torchrun(
          "--num-layers $L --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 "
          "--max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 64 --bf16");
  EXPECT_THAT(yaml_of("SIZE=7B\n" + script), HasSubstr("layers: 32\n"));
  EXPECT_THAT(yaml_of("SIZE=7B\n" + script, {.variables = {{"SIZE", "70B"}}}),
              HasSubstr("layers: 80\n"));
  EXPECT_THAT(refusal_of(script), HasSubstr("--num-layers is $L; L depends on $SIZE (job.sh:1)"));
  EXPECT_THAT(yaml_of("SIZE=$1\n" + script, {.arguments = "7B"}), HasSubstr("layers: 32\n"));
}

TEST(MegatronLaunch, TwoDifferentTrainingsAreNoJob) {
  const std::string first = with("--qk-layernorm");
  EXPECT_THAT(refusal_of(first + with("")),
              HasSubstr("job.sh:2: starts another job than job.sh:1"));
  EXPECT_THAT(refusal_of("if [ $X = 1 ]; then\n" + first + "else\n" + with("") + "fi\n"),
              HasSubstr("depends on $X (job.sh:1)"));
  EXPECT_EQ(yaml_of(first + with("--qk-layernorm --lr 3")), yaml_of(first));
}

TEST(MegatronLaunch, ListsOfArgumentsForAnotherFile) {
  const std::string lists =
      "GPT_MODEL_ARGS=(\n  --num-layers 12\n  --hidden-size 512\n"
      "  --num-attention-heads 8 --seq-length 1024\n"
      "  --max-position-embeddings 1024)\n"
      "TRAINING_ARGS=\"--micro-batch-size 1 --global-batch-size 8 --bf16\"\n";
  EXPECT_THAT(yaml_of(lists, {.gpus = 8}), AllOf(HasSubstr("layers: 12"), HasSubstr("data: 8")));
  EXPECT_THAT(refusal_of(lists + "BIG_ARGS=\"--num-layers 96\"\n"),
              HasSubstr("--num-layers is 96 and 12"));
  EXPECT_THAT(refusal_of(lists + "OTHER_ARGS=\"--mtp-num-layers 1 --bf16\"\n"),
              HasSubstr("--mtp-num-layers"));
}

TEST(MegatronModel, FamiliesAreNeverStretched) {
  EXPECT_THAT(yaml_of(torchrun(kLlama)), HasSubstr("family: llama"));
  EXPECT_THAT(refusal_of(with("--disable-bias-linear")), HasSubstr("--disable-bias-linear is not"));
  EXPECT_THAT(refusal_of(with("--normalization RMSNorm")),
              HasSubstr("--position-embedding-type is missing, and its default is "
                        "learned_absolute: family llama"));
  EXPECT_THAT(refusal_of(with("--squared-relu")), HasSubstr("--squared-relu"));
  EXPECT_THAT(refusal_of(with("--glu-activation geglu")), HasSubstr("--glu-activation"));
  EXPECT_THAT(refusal_of(with("--position-embedding-type alibi")), HasSubstr("--embed-layernorm"));
  EXPECT_THAT(refusal_of(with("--embed-layernorm")), HasSubstr("--embed-layernorm"));
  EXPECT_THAT(yaml_of(with("--position-embedding-type alibi --embed-layernorm")),
              HasSubstr("family: bloom"));
  EXPECT_THAT(yaml_of(with("--glu-activation swiglu")),
              AllOf(HasSubstr("activation: swiglu"), HasSubstr("ffn: 4096")));
  EXPECT_THAT(yaml_of(with("--swiglu")), HasSubstr("ffn: 2688"));  // 8/3 h, down to 64s
  EXPECT_THAT(yaml_of(with("--num-key-value-heads 4")), HasSubstr("kv_heads: 4"));
  EXPECT_THAT(yaml_of(with("--group-query-attention")), HasSubstr("kv_heads: 1"));
  std::string without_bias_flag = kLlama;
  without_bias_flag.erase(without_bias_flag.find("--disable-bias-linear"), 21);
  EXPECT_THAT(yaml_of(torchrun(without_bias_flag)),
              AllOf(HasSubstr("qkv_bias: true"), HasSubstr("output_bias: true"),
                    HasSubstr("mlp_bias: true")));
  EXPECT_THAT(yaml_of(torchrun(without_bias_flag + "--num-experts 8 --moe-grouped-gemm")),
              AllOf(HasSubstr("expert_bias: true"), Not(HasSubstr("mlp_bias"))));
  EXPECT_THAT(refusal_of(torchrun(without_bias_flag + "--multi-latent-attention")),
              HasSubstr("--disable-bias-linear is missing"));
}

TEST(MegatronModel, ExpertsAreThoseOfMegatronCore) {
  EXPECT_THAT(yaml_of(torchrun(kExperts + "--expert-model-parallel-size 4")),
              AllOf(HasSubstr("experts: 8"), HasSubstr("expert: 4")));
  EXPECT_THAT(yaml_of(torchrun(kExperts + "--moe-expert-parallel-size 2")), HasSubstr("expert: 2"));
  EXPECT_THAT(refusal_of(torchrun(kLlama + "--num-experts 8 --expert-model-parallel-size 4")),
              AllOf(HasSubstr("--moe-grouped-gemm is missing"),
                    HasSubstr("--moe-token-dispatcher-type is missing: its default, allgather")));
  EXPECT_THAT(yaml_of(torchrun(kExperts + "--moe-layer-freq 2")),
              HasSubstr("expert_pattern: \"E-\""));
  EXPECT_THAT(refusal_of(torchrun(kExperts + "--moe-layer-freq [0]*3+[1]*30")),
              HasSubstr("--moe-layer-freq gives no layer of 32 experts, or is no list for 32"));
  EXPECT_THAT(refusal_of(torchrun(kExperts + "--deepspeed --zero-stage 0")),
              HasSubstr("DeepSpeed's gates"));
  EXPECT_THAT(yaml_of(torchrun(kExperts + "--moe-expert-capacity-factor 1.5 "
                                          "--moe-pad-expert-input-to-capacity")),
              HasSubstr("expert_capacity_factor: 1.5"));
  EXPECT_THAT(yaml_of(torchrun(kExperts + "--moe-expert-capacity-factor 1.5")),
              Not(HasSubstr("expert_capacity_factor")));
}

TEST(MegatronTraining, RecomputationOfAllYears) {
  for (const char* full :
       {"--recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
        "--recompute-granularity full --recompute-method block --recompute-num-layers 24",
        "--checkpoint-activations", "--checkpoint-activations --checkpoint-num-layers 1",
        "--activations-checkpoint-method uniform",
        "--activations-checkpoint-method block --activations-checkpoint-num-layers 24"})
    EXPECT_THAT(yaml_of(with(full)), HasSubstr("recompute: full")) << full;
  for (const char* selective : {"--recompute-activations", "--recompute-granularity selective",
                                "--recompute-granularity selective --recompute-modules core_attn"})
    EXPECT_THAT(yaml_of(with(selective)), HasSubstr("recompute: selective")) << selective;
  EXPECT_THAT(yaml_of(with("--recompute-activations --recompute-modules core_attn mlp")),
              HasSubstr("recompute_modules:\n    - core_attn\n    - mlp\n"));
  EXPECT_THAT(refusal_of(with("--recompute-activations --recompute-modules mlp dropout")),
              HasSubstr("--recompute-modules names dropout"));
  EXPECT_THAT(yaml_of(with("--recompute-granularity full --recompute-method uniform "
                           "--recompute-num-layers 4")),
              AllOf(HasSubstr("planner: megatron_uniform"), HasSubstr("layers: 4"),
                    Not(HasSubstr("recompute: full"))));
  EXPECT_THAT(yaml_of(with("--recompute-granularity full --recompute-method block "
                           "--recompute-num-layers 4 --pipeline-model-parallel-size 2")),
              AllOf(HasSubstr("planner: megatron_block"), HasSubstr("layers: 4")));
  EXPECT_THAT(yaml_of(with("--activations-checkpoint-method uniform "
                           "--activations-checkpoint-num-layers 2")),
              AllOf(HasSubstr("planner: megatron_uniform"), HasSubstr("layers: 2")));
}

TEST(MegatronTraining, FormatsOfGradientsAndStates) {
  const std::string half = torchrun(std::string(kGpt).replace(kGpt.find("--bf16"), 6, "--fp16"));
  EXPECT_THAT(yaml_of(half), HasSubstr("gradients: fp16"));
  EXPECT_THAT(yaml_of(with("--grad-reduce-in-bf16")),
              AllOf(HasSubstr("gradients: bf16"), HasSubstr("reduce: bf16")));
  EXPECT_THAT(yaml_of(with("--accumulate-allreduce-grads-in-fp32")),
              Not(HasSubstr("mixed_precision")));
  EXPECT_THAT(yaml_of(with("--use-precision-aware-optimizer --exp-avg-dtype bf16 "
                           "--exp-avg-sq-dtype bf16")),
              HasSubstr("optimizer_states: bf16"));
  EXPECT_THAT(refusal_of(with("--exp-avg-dtype fp8")), HasSubstr("--exp-avg-dtype"));
  EXPECT_THAT(yaml_of(with("--fp8-format hybrid --fp8-recipe tensorwise")),
              AllOf(HasSubstr("precision: \"fp8\""), HasSubstr("fp8_scaling: current")));
  EXPECT_THAT(yaml_of(with("--fp8-format e4m3 --fp8-recipe mxfp8")),
              HasSubstr("fp8_scaling: mxfp8"));
  EXPECT_THAT(yaml_of(with("--fp8-format e4m3 --fp8-recipe blockwise")),
              HasSubstr("fp8_scaling: blockwise"));
  EXPECT_THAT(refusal_of(with("--fp8-format e4m3 --fp8-recipe custom")), HasSubstr("--fp8-recipe"));
  EXPECT_THAT(refusal_of(with("--fp16")), HasSubstr("--fp16 and --bf16"));
  EXPECT_THAT(refusal_of(with("--optimizer lion")), HasSubstr("--optimizer is not simulated"));
}

TEST(MegatronTraining, ShardingOfAllKinds) {
  EXPECT_THAT(yaml_of(with("--use-distributed-optimizer")), HasSubstr("sharding: optimizer"));
  for (const auto& [strategy, sharding] : {std::pair{"no_shard", "none"},
                                           {"optim", "optimizer"},
                                           {"optim_grads", "gradients"},
                                           {"optim_grads_params", "parameters"}})
    EXPECT_THAT(yaml_of(with("--use-megatron-fsdp --data-parallel-sharding-strategy " +
                             std::string(strategy))),
                HasSubstr("sharding: " + std::string(sharding)));
  EXPECT_THAT(refusal_of(with("--data-parallel-sharding-strategy optim")),
              HasSubstr("--use-megatron-fsdp, which is missing"));
  EXPECT_THAT(refusal_of(with("--use-torch-fsdp2")), HasSubstr("--use-torch-fsdp2"));
  EXPECT_THAT(yaml_of(with("--ddp-bucket-size 10000000")), HasSubstr("bucket: 40000000 B"));
  EXPECT_THAT(yaml_of(with("--DDP-impl torch")),
              AllOf(HasSubstr("bucket: 25 MiB"), HasSubstr("overlap_gradients: true")));
}

TEST(MegatronTraining, DeepSpeedSelectsItsProfileAndStage) {
  const std::string deepspeed = "--deepspeed --deepspeed_config ./ds.json ";
  EXPECT_THAT(
      yaml_of(with(deepspeed + "--zero-stage 1")),
      AllOf(HasSubstr("framework: \"megatron-deepspeed\""), HasSubstr("sharding: optimizer")));
  EXPECT_THAT(refusal_of(with(deepspeed)),
              HasSubstr("--deepspeed_config is not read, and decides what is sharded"));
  const std::string written =
      "Z=2\ncat <<EOT > /tmp/ds.json\n{\n\t\"zero_optimization\": {\"stage\": $Z}\n}\nEOT\n";
  EXPECT_THAT(yaml_of(written + with(deepspeed)), HasSubstr("sharding: gradients"));
  EXPECT_THAT(refusal_of(written + with(deepspeed + "--zero-stage 1")),
              HasSubstr("--zero-stage is 1, its configuration says 2"));
  EXPECT_THAT(yaml_of(with(deepspeed + "--zero-stage 0 --use-flash-attn")),
              AllOf(HasSubstr("extends: \"megatron-deepspeed\""), HasSubstr("attention: flash2")));
  std::string half = with(deepspeed + "--zero-stage 0");
  EXPECT_THAT(yaml_of(half), HasSubstr("sharding: optimizer"));  // by BF16_Optimizer
  half.replace(half.find("--bf16"), 6, "--fp16");
  EXPECT_THAT(yaml_of(half), HasSubstr("sharding: none"));
  EXPECT_THAT(refusal_of(with(deepspeed + "--zero-stage 2 --pipeline-model-parallel-size 2")),
              HasSubstr("--zero-stage is above 1 in a pipeline"));
  EXPECT_THAT(yaml_of(with(deepspeed + "--zero-stage 1 --ds-sequence-parallel-size 4 "
                                       "--use-flash-attn-v2")),
              AllOf(HasSubstr("context: 4"), HasSubstr("context_attention: ulysses")));
}

TEST(MegatronTraining, ProfilesFollowGenerationsAndTheEnvironment) {
  EXPECT_THAT(yaml_of(with("--DDP-impl local")), HasSubstr("framework: \"megatron-2022\""));
  EXPECT_THAT(yaml_of(with("--transformer-impl local")),
              HasSubstr("framework: \"megatron-local\""));
  EXPECT_THAT(yaml_of(with("--no-gradient-accumulation-fusion")),
              AllOf(HasSubstr("extends: \"megatron\""), HasSubstr("products_accumulate: false")));
  EXPECT_THAT(yaml_of("export NVTE_FLASH_ATTN=1 NVTE_FUSED_ATTN=0\n" + with("")),
              HasSubstr("attention: flash2"));
  EXPECT_THAT(job_of("export NCCL_ALGO=Ring NCCL_IB_DISABLE=0\n" + with("")).approximate,
              ElementsAre("NCCL_ALGO = Ring of the environment is left out"));
  EXPECT_THAT(yaml_of("export CUDA_DEVICE_MAX_CONNECTIONS=32\n" + with("")),
              HasSubstr("cuda_device_max_connections: 32"));
  // Which asks for one connection on some GPUs alone: a job that exports it has it on all.
  EXPECT_THAT(yaml_of("export CUDA_DEVICE_MAX_CONNECTIONS=1\n" + with("")),
              HasSubstr("cuda_device_max_connections: 1"));
}

TEST(MegatronLayout, EmbeddingAndLossCountAsLayersOfVirtualStages) {
  // Llama 3.1 405B: (126 + 2) / 8 / 2.
  std::string arguments = kLlama;
  arguments.replace(arguments.find("--num-layers 32"), 15, "--num-layers 126");
  const std::string text = yaml_of(torchrun(arguments + "--pipeline-model-parallel-size 8 "
                                                        "--num-layers-per-virtual-pipeline-stage 2 "
                                                        "--account-for-embedding-in-pipeline-split "
                                                        "--account-for-loss-in-pipeline-split"));
  EXPECT_THAT(text, AllOf(HasSubstr("virtual_stages: 8"), HasSubstr("embedding_as_layer: true"),
                          HasSubstr("head_as_layer: true")));
  EXPECT_THAT(refusal_of(torchrun(arguments + "--pipeline-model-parallel-size 8 "
                                              "--num-layers-per-virtual-pipeline-stage 2")),
              HasSubstr("126 layers on 8 stages are no whole number of such chunks"));
}

TEST(MegatronLayout, StagesOfUnequalLength) {
  const std::string two = "--pipeline-model-parallel-size 2 ";
  EXPECT_THAT(yaml_of(with(two + "--decoder-first-pipeline-num-layers 10 "
                                 "--decoder-last-pipeline-num-layers 14")),
              AllOf(HasSubstr("first_stage_layers: 10"), HasSubstr("last_stage_layers: 14")));
  EXPECT_THAT(yaml_of(with(two + "--pipeline-model-parallel-layout \"Ettt|t*8|(t*6|)*1t*7L\"")),
              AllOf(HasSubstr("virtual_stages: 2"), HasSubstr("layers_per_stage:")));
  EXPECT_THAT(refusal_of(with(two + "--pipeline-model-parallel-layout \"Et|t|tL\"")),
              HasSubstr("has 3 stages, no multiple of the 2"));
  EXPECT_THAT(refusal_of(with(two + "--pipeline-model-parallel-layout \"Et*12|t*12mL\"")),
              HasSubstr("predict further tokens"));
  EXPECT_THAT(yaml_of(with("--deepspeed --zero-stage 1 " + two +
                           "--pp-partition-method 'type:transformer|embedding'")),
              AllOf(HasSubstr("embedding_as_layer: true"), HasSubstr("head_as_layer: true")));
  EXPECT_THAT(refusal_of(with("--deepspeed --zero-stage 1 --pp-partition-method parameters")),
              HasSubstr("--pp-partition-method"));
}

TEST(MegatronLayout, OrderAndContext) {
  EXPECT_THAT(yaml_of(with("--use-tp-pp-dp-mapping")), HasSubstr("order: \"tp-cp-ep-pp-dp\""));
  EXPECT_THAT(yaml_of(with("--context-parallel-size 2 --cp-comm-type a2a")),
              HasSubstr("context_attention: ulysses"));
  EXPECT_THAT(refusal_of(with("--context-parallel-size 2 --cp-comm-type a2a+p2p")),
              HasSubstr("--cp-comm-type is not simulated"));
  EXPECT_THAT(yaml_of(torchrun(kGpt + "--tp-comm-overlap --sequence-parallel "
                                      "--tensor-model-parallel-size 2")),
              HasSubstr("overlap_tensor_products: true"));
}

}  // namespace
}  // namespace tessera
