// Megatron-LM's arguments of recipes of 2025 and 2026.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/import/job/imported_job.h"
#include "hw/units/input_error.h"
#include "sim/config/files/yaml_text.h"

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kLlama =
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
    "--num-attention-heads 32 --ffn-hidden-size 11008 --seq-length 4096 "
    "--max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 128 --bf16 "
    "--normalization RMSNorm --swiglu --disable-bias-linear --position-embedding-type rope "
    "--untie-embeddings-and-output-weights --vocab-size 32000 ";

std::string yaml_of(const std::string& arguments) {
  return to_yaml(import_megatron(kLlama + arguments + "\n", "job.sh", {}).scenario);
}

std::string refusal_of(const std::string& arguments) {
  try {
    yaml_of(arguments);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(MegatronRecipe, TokensTravelByDeepEpAndHybridEpAndBesideOtherMicroBatches) {
  const std::string flexible =
      "--num-experts 8 --moe-grouped-gemm --moe-token-dispatcher-type flex "
      "--expert-model-parallel-size 4 ";
  EXPECT_THAT(yaml_of(flexible + "--moe-enable-deepep"), HasSubstr("expert_dispatcher: deepep"));
  EXPECT_THAT(yaml_of(flexible + "--moe-flex-dispatcher-backend hybridep "
                                 "--overlap-moe-expert-parallel-comm"),
              AllOf(HasSubstr("expert_dispatcher: hybridep"), HasSubstr("overlap_experts: true")));
  EXPECT_THAT(refusal_of(flexible + "--moe-flex-dispatcher-backend other"),
              HasSubstr("deepep and hybridep are"));
}

TEST(MegatronRecipe, NumbersOfMultiprocessorsAreTheDefaults) {
  const std::string flexible =
      "--num-experts 8 --moe-grouped-gemm --moe-token-dispatcher-type flex "
      "--expert-model-parallel-size 4 --overlap-moe-expert-parallel-comm --delay-wgrad-compute ";
  EXPECT_THAT(yaml_of(flexible + "--moe-deepep-num-sms 20 --moe-hybridep-num-sms 16"),
              HasSubstr("--delay-wgrad-compute: gradients of weights are not delayed"));
  EXPECT_THAT(refusal_of(flexible + "--moe-hybridep-num-sms 32"),
              HasSubstr("--moe-hybridep-num-sms is not simulated"));
  EXPECT_THAT(refusal_of("--delay-wgrad-compute"), HasSubstr("--delay-wgrad-compute is not"));
}

/// Below 1 experts fill what they have, padded or not; else balanced ones hold what comes.
TEST(MegatronRecipe, CapacitiesThatDropTokens) {
  const std::string experts =
      "--num-experts 8 --moe-grouped-gemm --moe-token-dispatcher-type alltoall "
      "--moe-expert-capacity-factor ";
  EXPECT_THAT(yaml_of(experts + "0.5"),
              AllOf(HasSubstr("expert_capacity_factor: 0.5"), HasSubstr("waits for no counts")));
  EXPECT_THAT(yaml_of(experts + "1.5"), Not(HasSubstr("expert_capacity_factor")));
  EXPECT_THAT(yaml_of(experts + "1.5 --moe-pad-expert-input-to-capacity"),
              HasSubstr("expert_capacity_factor: 1.5"));
}

TEST(MegatronRecipe, FusedLossesAndRouters) {
  EXPECT_THAT(yaml_of("--cross-entropy-loss-fusion"), HasSubstr("loss_fusion: native"));
  EXPECT_THAT(yaml_of("--cross-entropy-loss-fusion --cross-entropy-fusion-impl te"),
              HasSubstr("loss_fusion: te"));
  EXPECT_THAT(yaml_of("--cross-entropy-fusion-impl te"), Not(HasSubstr("loss_fusion")));
  EXPECT_THAT(refusal_of("--cross-entropy-loss-fusion --cross-entropy-fusion-impl linear"),
              HasSubstr("use native or te"));
  EXPECT_THAT(yaml_of("--num-experts 8 --moe-grouped-gemm --moe-router-fusion"),
              HasSubstr("fused_router: true"));
}

TEST(MegatronRecipe, TokensPutInOrderByOneKernel) {
  const std::string experts =
      "--num-experts 8 --moe-grouped-gemm --moe-token-dispatcher-type alltoall ";
  EXPECT_THAT(yaml_of(experts + "--moe-permute-fusion"),
              HasSubstr("expert_dispatcher: all_to_all_fused"));
  EXPECT_THAT(yaml_of(experts), Not(HasSubstr("all_to_all_fused")));
}

TEST(MegatronRecipe, MuonAsItsDefaultsHaveIt) {
  EXPECT_THAT(yaml_of("--optimizer muon --muon-num-ns-steps 5 --muon-momentum 0.95"),
              HasSubstr("optimizer: muon"));
  EXPECT_THAT(refusal_of("--optimizer muon --muon-num-ns-steps 6"), HasSubstr("use 5"));
  EXPECT_THAT(refusal_of("--optimizer muon --muon-tp-mode duplicated"), HasSubstr("use blockwise"));
}

TEST(MegatronRecipe, MuonOfWholeTensorsByEitherName) {
  for (const char* text :
       {"--optimizer dist_muon", "--optimizer muon --use-layer-wise-distributed-optimizer"})
    EXPECT_THAT(yaml_of(text), HasSubstr("optimizer: dist_muon")) << text;
  EXPECT_THAT(refusal_of("--use-layer-wise-distributed-optimizer"),
              HasSubstr("is simulated with --optimizer muon alone"));
}

TEST(MegatronRecipe, LayersThatDiffer) {
  EXPECT_THAT(yaml_of("--window-size 127,0 --window-attn-skip-freq 2"),
              AllOf(HasSubstr("window: 128"), HasSubstr("full_every: 2")));
  EXPECT_THAT(yaml_of("--window-size '(127,0)' --window-attn-skip-freq '([1]*3+[0])*8'"),
              HasSubstr("full_every: 4"));
  EXPECT_THAT(yaml_of("--window-size 127,0 --window-attn-skip-freq [0,1,1,0]*8"),
              HasSubstr("attention_pattern: \"fwwf\""));
  EXPECT_THAT(yaml_of("--no-rope-freq 4"), HasSubstr("attention_pattern: \"fffn\""));
  EXPECT_THAT(yaml_of("--no-rope-freq [0,1]*16"), HasSubstr("attention_pattern: \"fn\""));
  EXPECT_THAT(yaml_of("--position-embedding-type none"), HasSubstr("attention_pattern: \"n\""));
  EXPECT_THAT(
      refusal_of("--window-size 127,0 --window-attn-skip-freq [1,0]*3"),
      HasSubstr("--window-attn-skip-freq is neither a number nor a list of 0 and 1 for 32"));
  EXPECT_THAT(refusal_of("--window-size 127"), HasSubstr("--window-size is no pair"));
  EXPECT_THAT(refusal_of("--window-size 127,0 --no-rope-freq 4"),
              HasSubstr("--no-rope-freq takes positions from layers with a window"));
  const std::string experts = "--num-experts 8 --moe-grouped-gemm --moe-ffn-hidden-size 512 ";
  EXPECT_THAT(
      yaml_of(experts + "--moe-layer-freq '([0]*3+[1]*29)'"),
      AllOf(HasSubstr("dense_layers: 3"), HasSubstr("expert_ffn: 512"), HasSubstr("ffn: 11008")));
  EXPECT_THAT(yaml_of(experts + "--moe-layer-freq [0,1]*16"),
              AllOf(HasSubstr("expert_pattern: \"-E\""), HasSubstr("expert_ffn: 512")));
}

TEST(MegatronRecipe, FurtherPredictionsBesideTheLossOrAheadOfIt) {
  const std::string stages = "--pipeline-model-parallel-size 2 --mtp-num-layers 1 ";
  const auto layout = [&](const std::string& letters) {
    return stages + "--pipeline-model-parallel-layout '" + letters + "'";
  };
  EXPECT_THAT(yaml_of(layout("Et*20|t*12mL")), Not(HasSubstr("approximations")));
  EXPECT_THAT(yaml_of(layout("Et*20|t*12mL")), Not(HasSubstr("mtp_ahead")));
  EXPECT_THAT(yaml_of(layout("Et*16|t*8|t*8m|L")),
              AllOf(HasSubstr("- 16\n    - 8\n    - 8\n    - 0\n  mtp_ahead: true"),
                    Not(HasSubstr("approximations"))));
  EXPECT_THAT(yaml_of(layout("Et*16|t*16|m|L")),
              AllOf(HasSubstr("- 16\n    - 16\n    - 0\n    - 0\n"), HasSubstr("mtp_ahead: true")));
  EXPECT_THAT(refusal_of(layout("Et*16||t*16m|L")),
              HasSubstr("--pipeline-model-parallel-layout has a stage without a layer (t)"));
}

TEST(MegatronRecipe, SeveralLayersThatPredictFurtherArePlacedOnce) {
  const std::string stages =
      "--pipeline-model-parallel-size 2 --mtp-num-layers 2 --pipeline-model-parallel-layout ";
  EXPECT_THAT(yaml_of("--mtp-num-layers 3"), HasSubstr("mtp_layers: 3"));
  EXPECT_THAT(yaml_of(stages + "'Et*20|t*12mmL'"), HasSubstr("mtp_layers: 2"));
  EXPECT_THAT(refusal_of(stages + "'Et*20|t*12mL'"),
              HasSubstr("places 1 layers that predict further tokens (m) of 2 in "
                        "--mtp-num-layers"));
}

TEST(MegatronRecipe, NormsOfHeadsWithoutWeights) {
  EXPECT_THAT(yaml_of("--qk-l2-norm"),
              AllOf(HasSubstr("qk_norm: true"), HasSubstr("qk_norm_plain: true")));
}

TEST(MegatronRecipe, StacksOfMamba2) {
  const std::string hybrid =
      "torchrun --nproc_per_node 8 pretrain_mamba.py --num-layers 4 --hidden-size 1024 "
      "--num-attention-heads 8 --ffn-hidden-size 4096 --seq-length 4096 --micro-batch-size 1 "
      "--global-batch-size 8 --bf16 --normalization RMSNorm --squared-relu "
      "--disable-bias-linear --position-embedding-type none --hidden-dropout 0 "
      "--attention-dropout 0 --untie-embeddings-and-output-weights --vocab-size 32000 "
      "--spec megatron.core.models.mamba.mamba_layer_specs mamba_stack_spec ";
  const auto yaml = [&](const std::string& more) {
    return to_yaml(import_megatron(hybrid + more + "\n", "job.sh", {}).scenario);
  };
  EXPECT_THAT(yaml("--hybrid-override-pattern M-M*"),
              AllOf(HasSubstr("layer_pattern: \"M-M*\""), HasSubstr("mamba_heads: 32"),
                    HasSubstr("mamba_state: 128"), HasSubstr("mamba_groups: 8"),
                    HasSubstr("attention_pattern: \"n\""), HasSubstr("relu_squared")));
  EXPECT_THAT(yaml("--hybrid-override-pattern M-M* --mamba-num-heads 16 --mamba-head-dim 32"),
              AllOf(HasSubstr("mamba_heads: 16"), HasSubstr("mamba_head_dim: 32")));
  EXPECT_THROW(yaml(""), InputError) << "a stack of Mamba-2 without its pattern";
}

TEST(MegatronRecipe, CudaGraphs) {
  EXPECT_THAT(yaml_of("--enable-cuda-graph"), HasSubstr("cuda_graphs: layers"));
  EXPECT_THAT(yaml_of("--cuda-graph-impl local --cuda-graph-scope full_iteration"),
              HasSubstr("cuda_graphs: full_iteration"));
  EXPECT_THAT(yaml_of("--cuda-graph-impl transformer_engine --cuda-graph-scope attn moe_router"),
              AllOf(HasSubstr("cuda_graphs: layers"),
                    HasSubstr("graph_modules:\n      - attn\n      - moe_router\n")));
  EXPECT_THAT(yaml_of("--cuda-graph-impl none"), Not(HasSubstr("cuda_graphs")));
  EXPECT_THAT(refusal_of("--cuda-graph-impl local --cuda-graph-scope moe"),
              HasSubstr("--cuda-graph-scope names moe, which is not simulated"));
}

TEST(MegatronRecipe, ParametersInFp8AndOffloadedLayers) {
  EXPECT_THAT(yaml_of("--fp8-format hybrid --fp8-param-gather"), HasSubstr("fp8_parameters: true"));
  EXPECT_THAT(refusal_of("--fp8-param-gather"), HasSubstr("--fp8-param-gather is for products"));
  EXPECT_THAT(yaml_of("--cpu-offloading --cpu-offloading-num-layers 4"),
              HasSubstr("offload_layers: 4"));
}

TEST(MegatronRecipe, SmallThingsThatNoFieldHasAreSaid) {
  const std::string experts = "--num-experts 8 --moe-grouped-gemm ";
  const ImportedJob job = import_megatron(
      kLlama + experts + "--moe-router-dtype fp32 --moe-shared-expert-overlap --quick-geglu\n",
      "job.sh", {});
  EXPECT_EQ(job.approximate.size(), 3U);
  EXPECT_THAT(yaml_of(experts + "--moe-router-force-load-balancing"),
              Not(HasSubstr("approximations")));
  EXPECT_THAT(refusal_of(std::string("--activation-func-clamp-value 7.0")), "")
      << "of the gate's kernel";
}

TEST(MegatronRecipe, FourBitsAndLayersInBf16) {
  EXPECT_THAT(yaml_of("--fp4-format e2m1 --first-last-layers-bf16 "
                      "--num-layers-at-start-in-bf16 0 --num-layers-at-end-in-bf16 4"),
              AllOf(HasSubstr("precision: \"nvfp4\""), HasSubstr("bf16_layers_first: 0"),
                    HasSubstr("bf16_layers_last: 4")));
}

// Megatron-LM asserts experts where ranks are to share them.
TEST(MegatronRecipe, RanksOfExpertsNeedExperts) {
  EXPECT_THAT(refusal_of("--expert-model-parallel-size 2"), HasSubstr("the model has no experts"));
  EXPECT_THAT(yaml_of("--expert-model-parallel-size 1"), Not(HasSubstr("expert:")));
}

TEST(MegatronRecipe, WhatHasNoEffectIsSaid) {
  const ImportedJob job = import_megatron(
      kLlama + "--fp8-recipe tensorwise --cp-comm-type a2a --use-flash-attn\n", "job.sh", {});
  for (const std::string name : {"--fp8-recipe", "--cp-comm-type", "--use-flash-attn"})
    EXPECT_THAT(job.ignored,
                ::testing::Contains(AllOf(HasSubstr(name), HasSubstr("without effect"))));
}

/// Qwen3-Next's layers, at half of their number: each is two of the model.
TEST(MegatronRecipe, GatedDeltaNetsAreLayersOfAMixerAndAFeedForward) {
  const std::string sizes =
      "--linear-attention-freq 4 --linear-num-key-heads 16 --linear-num-value-heads 32 "
      "--attention-output-gate ";
  const std::string job = yaml_of("--experimental-attention-variant gated_delta_net " + sizes +
                                  "--pipeline-model-parallel-size 4 "
                                  "--decoder-first-pipeline-num-layers 5 "
                                  "--decoder-last-pipeline-num-layers 7");
  EXPECT_THAT(job, AllOf(HasSubstr("layers: 64"), HasSubstr("\"G-G-G-*-G-G-G-*-"),
                         HasSubstr("attention_gate: true"), HasSubstr("delta_heads: 32"),
                         HasSubstr("delta_key_heads: 16"), HasSubstr("delta_key_dim: 128")));
  EXPECT_THAT(job, AllOf(HasSubstr("first_stage_layers: 10"), HasSubstr("last_stage_layers: 14")));
  const std::string experts =
      "--num-experts 8 --moe-grouped-gemm --moe-token-dispatcher-type alltoall "
      "--moe-ffn-hidden-size 512 ";
  EXPECT_THAT(yaml_of("--linear-attention-type gated_delta_net --linear-attention-freq "
                      "'([1]*3+[0]*1)*8' " +
                      experts),
              HasSubstr("\"GEGEGE*EGEGEGE*E"));
  EXPECT_THAT(yaml_of("--linear-attention-type gated_delta_net --linear-attention-freq 4 " +
                      experts + "--moe-layer-freq '([0]*1+[1]*31)'"),
              HasSubstr("\"G-GEGE*EGEGEGE*E"));
  EXPECT_THAT(yaml_of("--experimental-attention-variant gated_delta_net --linear-attention-freq 4 "
                      "--recompute-granularity full --recompute-method block "
                      "--recompute-num-layers 3"),
              AllOf(HasSubstr("planner: megatron_block"), HasSubstr("layers: 6")));
}

TEST(MegatronRecipe, OfGatedDeltaNetsWhatNoFieldSaysIsRefused) {
  const std::string nets = "--experimental-attention-variant gated_delta_net ";
  EXPECT_THAT(refusal_of(nets), HasSubstr("--linear-attention-freq is missing"));
  EXPECT_THAT(
      refusal_of(nets + "--linear-attention-freq [1,0]"),
      HasSubstr("--linear-attention-freq is neither a number nor a list of 0 and 1 for 32"));
  const std::string every = nets + "--linear-attention-freq 4 ";
  EXPECT_EQ(refusal_of(every), "");
  EXPECT_THAT(refusal_of(every + "--linear-conv-kernel-dim 3"),
              HasSubstr("--linear-conv-kernel-dim is not 4"));
  EXPECT_THAT(refusal_of(every + "--mtp-num-layers 1"), HasSubstr("beside delta nets"));
  EXPECT_THAT(refusal_of(every + "--window-size 127,0"), HasSubstr("beside delta nets"));
  EXPECT_THAT(refusal_of(every + "--no-rope-freq 4"), HasSubstr("beside delta nets"));
  EXPECT_THAT(refusal_of(every + "--account-for-loss-in-pipeline-split"),
              HasSubstr("of whose layers each is two"));
  EXPECT_THAT(refusal_of(every + "--num-experts 8 --moe-grouped-gemm --moe-layer-freq [1,0]"),
              HasSubstr("--moe-layer-freq is no list for 32 layers"));
  EXPECT_THAT(refusal_of("--linear-num-key-heads 16"), HasSubstr("--linear-num-key-heads"));
  EXPECT_THAT(refusal_of("--experimental-attention-variant mamba"),
              HasSubstr("gated_delta_net and dsa are"));
}

const std::string kLatent =
    "--multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512 --qk-head-dim 128 "
    "--qk-pos-emb-head-dim 64 --v-head-dim 128 ";

TEST(MegatronRecipe, AnIndexerLearnsOverWhatItChoseOrNotAtAll) {
  const std::string indexer = kLatent +
                              "--experimental-attention-variant dsa --dsa-indexer-n-heads 64 "
                              "--dsa-indexer-head-dim 128 --dsa-indexer-topk 2048 ";
  const std::string frozen = yaml_of(indexer);
  EXPECT_THAT(frozen, AllOf(HasSubstr("index_heads: 64"), HasSubstr("index_head_dim: 128"),
                            HasSubstr("index_topk: 2048"), HasSubstr("index_loss: false"),
                            HasSubstr("scores of all pairs")));
  EXPECT_THAT(yaml_of(indexer + "--dsa-indexer-loss-coeff 0.01 --dsa-indexer-use-sparse-loss"),
              Not(HasSubstr("index_loss")));
  EXPECT_THAT(refusal_of(indexer + "--dsa-indexer-loss-coeff 0.01"),
              HasSubstr("is a loss over all pairs, which is not simulated"));
  EXPECT_THAT(refusal_of(kLatent + "--experimental-attention-variant dsa"),
              HasSubstr("--dsa-indexer-n-heads is missing"));
  EXPECT_THAT(refusal_of("--experimental-attention-variant dsa --dsa-indexer-n-heads 64 "
                         "--dsa-indexer-head-dim 128 --dsa-indexer-topk 2048"),
              HasSubstr("add --multi-latent-attention"));
  EXPECT_THAT(refusal_of(kLatent + "--dsa-indexer-topk 2048"), HasSubstr("--dsa-indexer-topk"));
}

// 22 layers: 10 on the first of 4 stages, 4 on each of the others.
TEST(MegatronRecipe, AsManyLayersAsTheFullestStageHasAreAllOfThem) {
  const auto with = [](const std::string& layers, const std::string& count) {
    std::string arguments = "--pipeline-model-parallel-size 4 " + layers +
                            " --recompute-granularity full --recompute-method block "
                            "--recompute-num-layers " +
                            count;
    return yaml_of(arguments + " --num-layers 22");
  };
  const std::string first = "--decoder-first-pipeline-num-layers 10";
  EXPECT_THAT(with(first, "6"), AllOf(HasSubstr("megatron_block"), HasSubstr("layers: 6")));
  EXPECT_THAT(with(first, "10"), HasSubstr("recompute: full"));
  const std::string layout = "--pipeline-model-parallel-layout 'Ettttt|ttttt|tttttttt|ttttL'";
  EXPECT_THAT(with(layout, "6"), HasSubstr("megatron_block"));
  EXPECT_THAT(with(layout, "8"), HasSubstr("recompute: full"));
}

TEST(MegatronRecipe, BucketsHoldWhatGradientsAreSummedIn) {
  const std::string buckets = "--ddp-bucket-size 1000000 --overlap-grad-reduce ";
  std::string half = kLlama + buckets;
  half.replace(half.find("--bf16"), 6, "--fp16");
  const auto yaml = [](const std::string& script) {
    return to_yaml(import_megatron(script + "\n", "job.sh", {}).scenario);
  };
  EXPECT_THAT(yaml(half), HasSubstr("bucket: 2000000 B"));
  EXPECT_THAT(yaml(half + "--accumulate-allreduce-grads-in-fp32"), HasSubstr("bucket: 4000000 B"));
}

TEST(MegatronRecipe, RemaindersOfMasterWeightsAreSaidToBeLeftOut) {
  EXPECT_THAT(yaml_of("--use-distributed-optimizer --use-precision-aware-optimizer"),
              HasSubstr("store_param_remainders"));
}

}  // namespace
}  // namespace tessera
