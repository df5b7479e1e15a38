// torchtitan over tensor, pipeline and context ranks: parallelize_llama, FSDP2,
// torch.distributed.pipelining, PyTorch's context_parallel; and transformers' tp_plan.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/model_graph.h"
#include "workloads/program/program.h"
#include "workloads/sharding.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A Llama of four layers, 8 heads of 64 with 4 of keys.
ModelSpec llama() {
  ModelSpec model;
  model.name = "llama-small";
  model.family = ModelFamily::llama;
  model.layers = 4;
  model.hidden = 512;
  model.heads = 8;
  model.kv_heads = 4;
  model.head_dim = 64;
  model.ffn = 1024;
  model.vocab = 4096;
  model.activation = Activation::swiglu;
  model.hidden_dropout = model.attention_dropout = 0;
  model.tied_embeddings = false;
  return model;
}

StepOptions step_of(const FrameworkProfile& profile, int tensor) {
  StepOptions step =
      test::in(Precision::bf16, test::single_gpu(profile, StepMode::training, 2, 256));
  step.layout.tensor = tensor;
  step.layout.sequence_parallel = tensor > 1 && profile.tensor_plan == TensorPlan::sequence;
  step.data_parallel = profile.data_parallel;
  return step;
}
StepOptions titan(int tensor) {
  return step_of(test::torchtitan(), tensor);
}

/// "all_gather attention.input 524288" of each collective: kind, operator, bytes.
std::vector<std::string> collectives(const std::vector<GraphOp>& ops) {
  std::vector<std::string> lines;
  for (const GraphOp& op : ops) {
    if (op.kind != GraphOpKind::collective) continue;
    const char* kind = op.collective == OpKind::all_gather       ? "gather "
                       : op.collective == OpKind::reduce_scatter ? "scatter "
                       : op.collective == OpKind::ring_shift     ? "shift "
                                                                 : "reduce ";
    lines.push_back(kind + op.name.substr(0, op.name.rfind('.')) + " " +
                    std::to_string(op.bytes.value()));
  }
  return lines;
}
int kernels(const std::vector<GraphOp>& ops, const std::string& name) {
  int count = 0;
  for (const GraphOp& op : ops) count += op.kind == GraphOpKind::kernel && op.name == name ? 1 : 0;
  return count;
}
Block layer_of(const StepOptions& step) {
  return build_model_graph(llama(), step).blocks[1];
}
using test::refusal;

TEST(Torchtitan, GathersOnceForAllThatReadAPartOfTheSequence) {
  // 2 sequences of 256 tokens with 512 numbers of 2 bytes: 524288 bytes. The drawn schedule of
  // parallelize_llama: norms work on parts, attention and feed-forward on all of it.
  const Block layer = layer_of(titan(4));
  EXPECT_THAT(collectives(layer.forward),
              ElementsAre("gather attention.input 524288", "scatter attention.output 524288",
                          "gather mlp.input 524288", "scatter mlp.down 524288"));
  // Backward the other way round, without a second gather of the inputs; and the sums of both
  // norms' gradients, 512 numbers each.
  EXPECT_THAT(
      collectives(layer.backward),
      ElementsAre("gather mlp.down.grad 524288", "scatter mlp.input.grad 524288",
                  "reduce mlp_norm.weight.grad 1024", "gather attention.output.grad 524288",
                  "scatter attention.input.grad 524288", "reduce input_norm.weight.grad 1024"));
}

TEST(Torchtitan, CopiesWhatIsGatheredAlongTheSequence) {
  const Block layer = layer_of(titan(4));
  for (const char* name : {"attention.input", "mlp.input", "attention.output", "mlp.down"})
    EXPECT_EQ(kernels(layer.forward, std::string(name) + ".chunks"), 1) << name;
}

TEST(Torchtitan, MultipliesAQuarterOfEveryLayer) {
  const Block layer = layer_of(titan(4));
  const Block whole = layer_of(titan(1));
  // The products of four ranks are those of one; norms are held by all four.
  EXPECT_EQ(4 * total(layer.forward).gemm_flops.value(), total(whole.forward).gemm_flops.value());
  EXPECT_EQ(4 * (layer.parameters - 2 * 512), whole.parameters - 2 * 512);
}

TEST(Torchtitan, KeepsWhatItGatheredForBackward) {
  // Bytes per token of one rank of two, N = 512 numbers of 2 bytes, ranks hold half of the
  // sequence between layers; with fused norms: two norms' inputs 2 N / 2 and 4 bytes for both rows'
  // statistics of half the tokens, the gathered inputs of attention and feed-forward 2 N, queries
  // of half the heads N / 2, their keys and values N / 2 in all, the output N / 2 (merged heads
  // are its view), its log-sum-exp 4 bytes for 4 heads, and of half the
  // feed-forward's 1024 numbers the gate, its activation, the other branch and their product.
  StepOptions step = titan(2);
  step.framework.fused_norm = true;
  step.layout.data = step.layout.shard = 2;  // weights are gathered, not cast in the layer
  step.global_batch = 4;
  const Block layer = layer_of(step);
  const std::int64_t tokens = 2 * 256, n = 512 * 2;
  const std::int64_t norms = 2 * (n / 2) + 2 * 4 / 2;
  const std::int64_t attention = n + n / 2 + n / 2 + n / 2 + 4 * 4;
  const std::int64_t mlp = n + 4 * (1024 / 2) * 2;
  EXPECT_EQ(layer.saved.value(), tokens * (norms + attention + mlp));
}

TEST(Torchtitan, SharesTheVocabulary) {
  const ModelGraph graph = build_model_graph(llama(), titan(4));
  // 512 tokens; the rank's words are 1024; three numbers per token in fp32 are exchanged.
  EXPECT_THAT(collectives(graph.blocks[0].forward), ElementsAre("scatter embedding 524288"));
  EXPECT_THAT(collectives(graph.blocks[2].forward),
              ElementsAre("gather lm_head 524288", "reduce loss.max 2048", "reduce loss.sum 2048",
                          "reduce loss.target 2048"));
  EXPECT_EQ(graph.blocks[2].parameters, 1024 * 512 + 512);
}

/// Most bytes of the head that live at once, for each of the logits.
double peak_of_head(bool compiled) {
  ModelSpec model = llama();
  model.vocab = 131072;
  StepOptions step = titan(1);
  step.micro_batch = 64;
  step.layout.data = step.layout.shard = 2;
  step.global_batch = 128;
  step.framework.compiled_loss = compiled;
  const Block head = build_model_graph(model, step).blocks[2];
  std::int64_t live = 0, most = 0;
  for (const auto* ops : {&head.forward, &head.backward}) {
    for (const GraphOp& op : *ops) {
      live += op.allocated.value();
      most = std::max(most, live);
      live -= op.freed.value();
    }
  }
  return static_cast<double>(most) / (64.0 * 256 * 131072);
}

TEST(Torchtitan, ACompiledLossHoldsFourBytesOfALogit) {
  // In 16 bits the logit and its gradient. In eager mode fp32: the log-probability, the gradient of
  // the picked ones and that of the logit; the 16-bit logits are gone (del pred). The rest is 512
  // numbers of the weight's gradient for 16384 tokens, and of hidden ones for 131072 words.
  EXPECT_NEAR(peak_of_head(true), 4, 0.1);
  EXPECT_NEAR(peak_of_head(false), 12, 0.1);
}

TEST(Torchtitan, MultipliesAllChunksButOneBesideTheGather) {
  StepOptions step = titan(4);
  step.framework.overlap_tensor_products = true;
  step.kernels = step.framework.kernels = KernelMode::fused;
  const Block layer = layer_of(step);
  std::string order;
  bool started = false;
  for (const GraphOp& op : layer.forward) {
    started = started || op.kind == GraphOpKind::collective;
    if (!started) continue;
    if (op.kind == GraphOpKind::collective) order += "gather ";
    if (op.kind == GraphOpKind::wait) order += "wait ";
    if (op.kind == GraphOpKind::kernel && op.kernel.kind == KernelKind::gemm)
      order += std::to_string(op.kernel.m) + " ";
    if (op.kind == GraphOpKind::kernel && op.kernel.kind == KernelKind::attention) break;
  }
  // 512 rows: 384 of the ranks before and 128 of the last, for queries, keys and values.
  EXPECT_EQ(order, "gather 384 384 384 wait 128 128 128 ");
}

TEST(Torchtitan, KeepsReduceScattersThroughSelectiveRecomputation) {
  StepOptions step = titan(4);
  step.recompute = Recompute::selective;
  const Block layer = layer_of(step);
  int gathers = 0, scatters = 0;
  for (const GraphOp& op : layer.backward) {
    if (op.kind != GraphOpKind::collective || !op.recomputed) continue;
    ++(op.collective == OpKind::all_gather ? gathers : scatters);
  }
  EXPECT_EQ(gathers, 2);
  EXPECT_EQ(scatters, 0);
}

/// Ops of the first stage by what they are: gathers of layers' weights and sums of gradients.
int count(const RankProgram& program, OpKind kind, GroupKind group) {
  int number = 0;
  for (const ProgramOp& op : program.ops) number += op.kind == kind && op.group == group ? 1 : 0;
  return number;
}

/// Two stages of two layers over two data-parallel ranks, four micro-batches.
StepOptions staged() {
  StepOptions step = titan(1);
  step.layout.pipeline = step.layout.data = 2;
  step.layout.shard = 2;
  step.global_batch = 16;
  step.data_parallel.sharding = Sharding::gradients;
  step.data_parallel.gather_units = true;
  step.data_parallel.reduce_each_micro_batch = false;
  return step;
}

TEST(Torchtitan, NormsOfHeadsAreSummedOverTheTensorGroup) {
  ModelSpec model = llama();
  model.qk_norm = true;
  const Block layer = build_model_graph(model, titan(4)).blocks[1];
  const Block plain = layer_of(titan(4));
  EXPECT_EQ(layer.parameters, plain.parameters + 2 * 64);
  std::vector<std::string> expected = collectives(plain.backward);
  // Ahead of the gradient of attention's input; weights of 64 numbers of 2 bytes.
  expected.insert(expected.end() - 2, {"reduce attention.k_norm.weight.grad 128",
                                       "reduce attention.q_norm.weight.grad 128"});
  EXPECT_EQ(collectives(layer.backward), expected);
  EXPECT_EQ(collectives(layer.forward), collectives(plain.forward));
  StepOptions stages = staged();  // behind the last micro-batch
  stages.layout.tensor = 2;
  stages.layout.sequence_parallel = true;
  EXPECT_EQ(build_model_graph(model, stages).blocks[1].partial_parameters, 2 * 512 + 2 * 64);
}

TEST(Torchtitan, ShardsSixteenBytesOfAParameter) {
  // fp32 weight, gradient and both moments over two ranks. A layer: queries and output 512^2 each,
  // keys and values 512 * 256 each, three of 512 * 1024, two norms of 512; the first stage has two
  // and the word table of 4096 * 512. With two tensor-parallel ranks each holds half of all but
  // norms.
  const std::int64_t products = 2 * 512 * 512 + 2 * 512 * 256 + 3 * 512 * 1024;
  const auto held = [](const StepOptions& step) {
    const CategoryBytes parts = build_program(llama(), step).stages[0].static_parts;
    return (parts[MemoryCategory::parameters] + parts[MemoryCategory::gradients] +
            parts[MemoryCategory::optimizer])
        .value();
  };
  StepOptions step = staged();
  EXPECT_EQ(held(step), 16 * (2 * (products + 2 * 512) + 4096 * 512) / 2);
  step.layout.tensor = 2;
  step.layout.sequence_parallel = true;
  EXPECT_EQ(held(step), 16 * (2 * (products / 2 + 2 * 512) + 4096 * 512 / 2) / 2);
}

TEST(Torchtitan, GathersWeightsOnceForAllMicroBatchesOfAStage) {
  const Program program = build_program(llama(), staged());
  for (const RankProgram& stage : program.stages) {
    EXPECT_EQ(count(stage, OpKind::all_gather, GroupKind::shard), 3);  // two layers and the root
    EXPECT_EQ(count(stage, OpKind::reduce_scatter, GroupKind::shard), 3);
  }
}

TEST(Torchtitan, GathersAgainForEachPassWhereItReshards) {
  StepOptions step = staged();
  step.data_parallel.sharding = Sharding::parameters;
  step.data_parallel.gather_units = false;
  const Program program = build_program(llama(), step);
  // Two layers forward and backward of four micro-batches, and the root each time.
  EXPECT_GE(count(program.stages[0], OpKind::all_gather, GroupKind::shard), 2 * 2 * 4);
}

TEST(Torchtitan, HoldsWholeGradientsInTheFormatOfTheirSum) {
  EXPECT_EQ(block_gradient_format(staged()), Precision::fp32);
  EXPECT_EQ(block_gradient_format(titan(1)), Precision::fp32);  // alone, nothing is divided
  StepOptions step = staged();
  step.data_parallel.reduce_each_micro_batch = true;
  EXPECT_EQ(block_gradient_format(step), Precision::bf16);
}

TEST(Torchtitan, BalancesWhatAStageTakesAndGivesBack) {
  for (const PipelineSchedule schedule :
       {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b, PipelineSchedule::zb_h1}) {
    StepOptions step = staged();
    step.schedule = schedule;
    const Program program = build_program(llama(), step);
    for (const RankProgram& stage : program.stages) {
      std::int64_t held = 0;
      for (const ProgramOp& op : stage.ops) {
        held += op.allocated.value() - op.freed.value();
        if (op.kind == OpKind::kernels) held += program.segment(op.segment).net_memory.value();
      }
      EXPECT_EQ(held, 0) << "stage " << stage.stage << ", schedule " << int(schedule);
    }
  }
}

TEST(Torchtitan, SendsKeysAndValuesRoundAndTheirGradientsInFp32) {
  StepOptions step = titan(1);
  step.layout.context = 4;
  // 64 tokens a rank: 2 * 64 * 4 heads * 64 * 2 tensors * 2 bytes; gradients twice that.
  const Block layer = layer_of(step);
  EXPECT_THAT(collectives(layer.forward),
              ElementsAre("shift attention.ring 131072", "shift attention.ring 131072",
                          "shift attention.ring 131072"));
  const auto backward = collectives(layer.backward);
  EXPECT_EQ(std::ranges::count(backward, "shift attention.ring.backward 131072"), 3);
  EXPECT_EQ(std::ranges::count(backward, "shift attention.ring.grad 262144"), 4);
}

TEST(Torchtitan, GathersKeysAndValuesBesideItsOwnPart) {
  StepOptions step = titan(1);
  step.layout.context = 4;
  step.context_attention = ContextAttention::all_gather;
  const Block layer = layer_of(step);
  EXPECT_THAT(collectives(layer.forward), ElementsAre("gather attention.ring 524288"));
  std::string order;
  for (const GraphOp& op : layer.forward) {
    if (op.kind == GraphOpKind::collective) order += "gather ";
    if (op.kind == GraphOpKind::wait) order += "wait ";
    if (op.kind == GraphOpKind::kernel && op.kernel.kind == KernelKind::attention) order += "part ";
  }
  EXPECT_EQ(order, "gather part wait part part part ");
}

TEST(Torchtitan, GathersWeightsOfProductsInOneByte) {
  StepOptions step = test::in(Precision::fp8, titan(1));
  step.layout.data = step.layout.shard = 2;
  step.global_batch = 4;
  step.data_parallel.gather_fp8 = true;
  const Program program = build_program(llama(), step);
  // A layer: q 512^2, k and v 512 * 256 each, output 512^2, three of 512 * 1024; two norms of 512.
  const std::int64_t products = 2 * 512 * 512 + 2 * 512 * 256 + 3 * 512 * 1024;
  std::int64_t smallest = 1LL << 60;
  for (const ProgramOp& op : program.stages[0].ops)
    if (op.kind == OpKind::all_gather) smallest = std::min(smallest, op.bytes.value());
  EXPECT_EQ(smallest, products + 2 * 2 * 512);
}

TEST(Torchtitan, RefusesImpossibleLayouts) {
  StepOptions step = titan(4);
  step.layout.sequence_parallel = false;
  EXPECT_THAT(refusal(llama(), step), HasSubstr("parallelism.sequence_parallel"));
  EXPECT_THAT(refusal(llama(), titan(8)), HasSubstr("does not divide kv_heads"));
  step = titan(4);
  step.framework.overlap_tensor_products = true;
  EXPECT_THAT(refusal(llama(), step), HasSubstr("torch.compile"));
  step = staged();
  step.schedule = PipelineSchedule::dualpipe;
  EXPECT_THAT(refusal(llama(), step), HasSubstr("torch.distributed.pipelining"));
  ModelSpec tied = llama();
  tied.tied_embeddings = true;
  EXPECT_THAT(refusal(tied, staged()), HasSubstr("word table"));
  step = titan(1);
  step.layout.context = 2;
  step.context_attention = ContextAttention::ulysses;
  EXPECT_THAT(refusal(llama(), step), HasSubstr("ulysses"));
  step = titan(1);
  step.data_parallel.gather_fp8 = true;  // of bf16 products
  EXPECT_THAT(refusal(llama(), step), HasSubstr("gather_fp8"));
  ModelSpec experts = llama();
  experts.experts = 4;
  experts.experts_per_token = 2;
  EXPECT_THAT(refusal(experts, titan(2)), HasSubstr("experts of torchtitan"));
}

TEST(TensorPlan, EveryColumnLayerSumsTheGradientOfItsInput) {
  // 2 * 256 tokens with 512 numbers of 2 bytes, whole on every rank.
  const Block layer = layer_of(step_of(test::fsdp(), 4));
  EXPECT_THAT(collectives(layer.forward),
              ElementsAre("reduce attention.output 524288", "reduce mlp.down 524288"));
  EXPECT_THAT(
      collectives(layer.backward),
      ElementsAre("reduce mlp.up.input.grad 524288", "reduce mlp.gate.input.grad 524288",
                  "reduce attention.v.input.grad 524288", "reduce attention.k.input.grad 524288",
                  "reduce attention.q.input.grad 524288"));
}

TEST(TensorPlan, GathersLogits) {
  const ModelGraph graph = build_model_graph(llama(), step_of(test::fsdp(), 4));
  EXPECT_THAT(collectives(graph.blocks[0].forward), ElementsAre());
  EXPECT_THAT(collectives(graph.blocks[2].forward), ElementsAre("gather lm_head 4194304"));
}

TEST(TensorPlan, RefusesPartsOfSequencesAndStages) {
  StepOptions step = step_of(test::fsdp(), 2);
  step.layout.sequence_parallel = true;
  EXPECT_THAT(refusal(llama(), step), HasSubstr("parallelism.sequence_parallel"));
  step = step_of(test::fsdp(), 1);
  step.layout.pipeline = 2;
  EXPECT_THAT(refusal(llama(), step), HasSubstr("parallelism.pipeline"));
  EXPECT_THAT(refusal(test::gpt2_large(), step_of(test::hf_eager(), 2)),
              HasSubstr("parallelism.tensor"));
}

}  // namespace
}  // namespace tessera
