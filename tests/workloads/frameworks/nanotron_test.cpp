// nanotron as it was in December 2024: src/nanotron/models/llama.py, parallel/tensor_parallel,
// optim, parallel/pipeline_parallel.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/memory/memory_profile.h"
#include "workloads/model_graph.h"
#include "workloads/optimizers/optimizer_step.h"
#include "workloads/parallel/cost_split.h"
#include "workloads/program/program.h"
#include "workloads/sharding.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// 1.34B: 16 layers, products of 4 h^2 + 3 h ffn = 67.1 M each, a head of 268 M: as much as four.
ModelSpec llama() {
  ModelSpec model;
  model.name = "llama-1.34B";
  model.family = ModelFamily::llama;
  model.layers = 16;
  model.hidden = 2048;
  model.heads = model.kv_heads = 32;
  model.head_dim = 64;
  model.ffn = 8192;
  model.vocab = 131072;
  model.activation = Activation::swiglu;
  model.tied_embeddings = false;
  return model;
}

StepOptions step_of(int tensor, int pipeline = 1, int data = 1) {
  StepOptions step = test::single_gpu(test::nanotron(), StepMode::training, 1, 4096);
  step.layout.tensor = tensor;
  step.layout.pipeline = pipeline;
  step.layout.data = data;
  step.layout.sequence_parallel = tensor > 1;
  step.global_batch = 4L * data;
  step.data_parallel = step.framework.data_parallel;
  return test::in(Precision::bf16, step);
}

/// "gather product wait product ..." of what stands around the products `name` of a layer.
std::string order_of(const std::vector<GraphOp>& ops, const std::string& name) {
  std::string order;
  bool inside = false;
  for (const GraphOp& op : ops) {
    const bool own = op.name.starts_with(name);
    if (op.kind == GraphOpKind::wait && inside) order += "wait ";
    if (own && op.kind == GraphOpKind::collective)
      order += op.collective == OpKind::all_gather ? "gather " : "scatter ";
    if (own && op.kind == GraphOpKind::kernel && op.kernel.kind == KernelKind::gemm)
      order += std::to_string(op.kernel.m) + " ";
    if (op.kind != GraphOpKind::view) inside = own || (inside && op.kind == GraphOpKind::wait);
  }
  return order;
}

TEST(Nanotron, MultipliesItsOwnRowsBesideTheGather) {
  // 4096 positions over 4 ranks: 1024 own ones, 3072 of others as two products of 1536.
  const Block layer = build_model_graph(llama(), step_of(4)).blocks[1];
  EXPECT_EQ(order_of(layer.forward, "mlp.up"), "gather 1024 wait 1536 1536 ");
  EXPECT_EQ(order_of(layer.forward, "mlp.down"), "4096 scatter wait ");
}

TEST(Nanotron, HasOneProductForTheOtherOfTwoRanks) {
  const Block layer = build_model_graph(llama(), step_of(2)).blocks[1];
  EXPECT_EQ(order_of(layer.forward, "attention.qkv"), "gather 2048 wait 2048 ");
}

TEST(Nanotron, GathersGradientsOfRowsBesideTheOwnPart) {
  const Block layer = build_model_graph(llama(), step_of(4)).blocks[1];
  EXPECT_EQ(order_of(layer.backward, "mlp.down"),
            "gather 1024 wait 1536 1536 2048 ");  // wgrad last
}

/// Traffic of the kernels whose names start with `prefix` [bytes], and their number.
std::pair<std::int64_t, int> traffic(const std::vector<GraphOp>& ops, const std::string& prefix) {
  std::pair<std::int64_t, int> sum;
  for (const GraphOp& op : ops) {
    if (op.kind != GraphOpKind::kernel || !op.name.starts_with(prefix)) continue;
    sum.first += op.kernel.bytes().value();
    ++sum.second;
  }
  return sum;
}

TEST(Nanotron, UnpacksJoinsAndCopiesKeysAndValues) {
  const std::int64_t n = 4096 * 2048 * 2;  // bytes of q, of k, of v
  const Block layer = build_model_graph(llama(), step_of(1)).blocks[1];
  using Copies = std::pair<std::int64_t, int>;
  EXPECT_EQ(traffic(layer.forward, "attention.unpack"), (Copies{2 * 3 * n, 1}));
  EXPECT_EQ(traffic(layer.forward, "attention.join_kv"), (Copies{2 * 2 * n, 1}));
  EXPECT_EQ(traffic(layer.forward, "attention.kv_copy"), (Copies{2 * 2 * n, 1}));
  EXPECT_EQ(traffic(layer.forward, "attention.bounds").second, 6);
  // Backward stacks gradients of k and v, then of all three, and copies them into qkv's order.
  EXPECT_EQ(traffic(layer.backward, "attention.split_kv"), (Copies{2 * 2 * n, 1}));
  EXPECT_EQ(traffic(layer.backward, "attention.unbind.stack"), (Copies{2 * 3 * n, 1}));
  EXPECT_EQ(traffic(layer.backward, "attention.unbind.grad.copy"), (Copies{2 * 3 * n, 1}));
}

TEST(Nanotron, CopiesGroupedHeadsOneByOne) {
  ModelSpec model = llama();
  model.kv_heads = 8;
  const Block layer = build_model_graph(model, step_of(1)).blocks[1];
  for (const char* name : {"attention.q_copy", "attention.k_copy", "attention.v_copy"})
    EXPECT_EQ(traffic(layer.forward, name).second, 1) << name;
}

TEST(Nanotron, AddsEveryGradientToFp32ByAKernelOfItsOwn) {
  const Block layer = build_model_graph(llama(), step_of(1)).blocks[1];
  int added = 0;
  for (const GraphOp& op : layer.backward) {
    if (!op.accumulates_gradient) continue;
    ++added;
    const auto [name, elements] = std::pair{op.name, op.kernel.rows * op.kernel.cols};
    EXPECT_EQ(op.kernel.bytes().value(), (2 + 4 + 4) * elements) << name;  // bf16, fp32, fp32
  }
  EXPECT_EQ(added, 6);  // two norms; qkv, output, gate and up, down
}

TEST(Nanotron, ScattersTheEmbeddingsRows) {
  const Block embedding = build_model_graph(llama(), step_of(4)).blocks[0];
  int scatters = 0;
  for (const GraphOp& op : embedding.forward) {
    if (op.kind != GraphOpKind::collective) continue;
    EXPECT_EQ(op.collective, OpKind::reduce_scatter);
    ++scatters;
  }
  EXPECT_EQ(scatters, 1);
}

TEST(Nanotron, FillsStagesUntilTheirShareOfTheCostIsReached) {
  // 20 layers' worth: 10 for each of two stages, 5 for each of four; the head is worth four.
  EXPECT_THAT(split_by_cost(llama(), 2)->layers, ElementsAre(10, 6));
  EXPECT_THAT(split_by_cost(llama(), 4)->layers, ElementsAre(5, 5, 5, 1));
  EXPECT_THAT(split_by_cost(llama(), 4)->blocks, ElementsAre(6, 5, 5, 2));  // embedding, head
}

// Shares of 10 and 20, of 5, 10, 15 and 20, and of 2.5, 5, 7.5 and so on: 5, 10 and 15 are met.
TEST(Nanotron, AShareThatIsMetExactlyMayTakeOneLayerMore) {
  EXPECT_THAT(split_by_cost(llama(), 2, true)->layers, ElementsAre(11, 5));
  EXPECT_THAT(split_by_cost(llama(), 4, true)->layers, ElementsAre(6, 5, 5, 0));
  EXPECT_THAT(split_by_cost(llama(), 8, true)->layers, ElementsAre(3, 3, 2, 3, 2, 3, 0, 0));
  StepOptions step = step_of(1, 4);
  step.framework.fills_past_share = true;
  ModelSpec model = llama();
  model.hidden_dropout = 0;
  EXPECT_EQ(test::refusal(model, step), "");
  EXPECT_GT(build_program(llama(), step).stages[0].static_memory,
            build_program(llama(), step_of(1, 4)).stages[0].static_memory);
}

TEST(Nanotron, TheLayerThatExceedsAShareIsStillTheStages) {
  // 8 layers and the head are 12 layers' worth, 2.4 for each of five stages: 2.4, 4.8, 7.2, 9.6.
  ModelSpec model = llama();
  model.layers = 8;
  EXPECT_THAT(split_by_cost(model, 5, true)->layers, ElementsAre(3, 2, 3, 0, 0));
  EXPECT_FALSE(split_by_cost(model, 5));  // the head, on the fifth stage, leaves the fourth empty
}

/// Whether the seventh of eight stages sends the last one logits of a micro-batch.
bool sends_logits(const StepOptions& step) {
  const Program program = build_program(llama(), step);
  const Bytes logits(2L * 4096 * 131072 / 2);  // bf16, of one of two tensor-parallel ranks
  return std::ranges::any_of(program.stages[6].ops, [&](const ProgramOp& op) {
    return op.kind == OpKind::send && op.peer_stage == 7 && op.bytes == logits;
  });
}

TEST(Nanotron, LeftTheLossAloneWhereTheHeadExceedsItsShare) {
  // 8 stages of 2.5 layers' worth: the head, worth four, fills the seventh.
  EXPECT_TRUE(split_by_cost(llama(), 8, true)->loss_apart);
  StepOptions step = step_of(2, 8);
  step.framework.fills_past_share = true;
  EXPECT_TRUE(sends_logits(step));
}

TEST(Nanotron, KeepsTheHeadWithTheLoss) {
  const auto split = split_by_cost(llama(), 8);
  ASSERT_TRUE(split);
  EXPECT_FALSE(split->loss_apart);
  EXPECT_THAT(split->layers, ElementsAre(3, 2, 3, 2, 3, 2, 1, 0));
  EXPECT_THAT(split->blocks, ElementsAre(4, 2, 3, 2, 3, 2, 1, 1));  // embedding, head
  EXPECT_FALSE(sends_logits(step_of(2, 8)));
}

TEST(Nanotron, RefusesStagesWithoutAPartOfTheModel) {
  EXPECT_FALSE(split_by_cost(llama(), 16));
  EXPECT_THAT(test::refusal(llama(), step_of(1, 16)),
              HasSubstr("16 stages of equal cost leave some without a part"));
}

TEST(Nanotron, StatedLayersComeBeforeTheCostSplit) {
  StepOptions step = step_of(1, 2);
  step.split.layers_per_stage = {8, 8};
  EXPECT_FALSE(uses_cost_split(step));
}

TEST(Nanotron, SendsTwoHeadersAheadOfActivationsMaskAndGradients) {
  const Program program = build_program(llama(), step_of(2, 2));
  const Bytes hidden(2L * 4096 * 2048 / 2);
  std::vector<Bytes> forward, backward;
  for (const ProgramOp& op : program.stages[0].ops) {
    if (op.micro_batch != 0) continue;
    if (op.kind == OpKind::send) forward.push_back(op.bytes);
    if (op.kind == OpKind::recv) backward.push_back(op.bytes);
  }
  const Bytes header(8192), mask(4096);
  EXPECT_THAT(forward, ElementsAre(header, header, hidden, header, header, mask));
  EXPECT_THAT(backward, ElementsAre(header, header, hidden));
  for (const ProgramOp& op : program.stages[0].ops) {
    if (op.kind != OpKind::recv) continue;
    EXPECT_EQ(op.host_sync, op.bytes == header);  // the host reads it, streams wait for the rest
  }
}

TEST(Nanotron, HostsThatWaitForMessagesWaitForThoseOfTheWarmUp) {
  StepOptions step = step_of(2, 2);
  for (const bool waits : {false, true}) {
    step.framework.blocking_messages = waits;
    const Program program = build_program(llama(), step);
    for (const ProgramOp& op : program.stages[0].ops) {
      if (op.kind != OpKind::send || op.micro_batch != 0) continue;
      EXPECT_EQ(op.host_sync, waits && op.bytes != Bytes(8192));  // not for headers
    }
  }
}

TEST(Nanotron, Zero1SumsAllGradientsInOnePieceAndUpdatesASlice) {
  StepOptions step = step_of(1, 1, 4);
  step.data_parallel.sharding = Sharding::optimizer;
  const Program program = build_program(llama(), step);
  const RankProgram& rank = program.stages[0];
  std::vector<OpKind> sums;
  for (const ProgramOp& op : rank.ops) {
    if (!is_collective(op.kind)) continue;
    sums.push_back(op.kind);
    const std::int64_t element = op.kind == OpKind::all_reduce ? 4 : 2;
    EXPECT_EQ(op.bytes.value(), element * rank.parameters);
  }
  EXPECT_THAT(sums, ElementsAre(OpKind::all_reduce, OpKind::all_gather));
  EXPECT_EQ(rank.static_parts.total().value() / rank.parameters, 2 + 4 + 12 / 4);
}

TEST(Nanotron, WithoutZeroSumsBucketsBesideTheLastBackward) {
  const Program program = build_program(llama(), step_of(1, 1, 4));
  const auto& ops = program.stages[0].ops;
  EXPECT_GT(std::ranges::count_if(ops, [](const ProgramOp& op) { return is_collective(op.kind); }),
            10);
}

TEST(Nanotron, UpdatesTensorByTensor) {
  StepOptions step = step_of(1, 1, 4);
  step.data_parallel.sharding = Sharding::optimizer;
  const OptimizerStep update =
      optimizer_step(step, {.parameters = 1000, .summed = 4000, .tensors = 7});
  // The norm and clipping go over all gradients, which are whole; the cast over the slice.
  ASSERT_EQ(update.norm.size(), 1U);
  EXPECT_EQ(update.norm[0].kernel.bytes().value(), 4 * 4000);
  EXPECT_EQ(update.norm[0].host_calls, 7);
  EXPECT_EQ(update.update[0].name, "clip.scale");
  EXPECT_EQ(update.update[0].kernel.bytes().value(), 8 * 4000);
  EXPECT_EQ(update.update.back().name, "parameters.from_master");
  EXPECT_EQ(update.update.back().kernel.bytes().value(), 6 * 1000);
  EXPECT_TRUE(update.average.empty());  // NCCL divides
}

TEST(Nanotron, CallsOfPythonFunctionsCostTheHost) {
  const auto calls = [](bool python) {
    StepOptions step = step_of(4);
    step.framework.python_functions = python;
    const Block layer = build_model_graph(llama(), step).blocks[1];
    int sum = 0;
    for (const GraphOp& op : layer.forward) {
      if (op.kind == GraphOpKind::kernel || op.kind == GraphOpKind::view) sum += op.host_calls;
    }
    return sum;
  };
  // Two norms of 17, two rotary embeddings of 13, attention 9, two columns of 12, two rows of 5,
  // modules 16.
  EXPECT_EQ(calls(true) - calls(false), 2 * 17 + 2 * 13 + 9 + 2 * 12 + 2 * 5 + 16);
}

TEST(Nanotron, RefusesWhatItsLlamaLacks) {
  ModelSpec model = llama();
  model.qk_norm = true;
  EXPECT_NE(test::refusal(model, step_of(1)), "");
  StepOptions step = step_of(1);
  step.layout.context = 2;
  EXPECT_NE(test::refusal(llama(), step), "");
  EXPECT_NE(test::refusal(test::gpt2_large(), step_of(1)), "");
}

TEST(Nanotron, GathersTheInputAgainInBackwardOrKeepsIt) {
  StepOptions step = step_of(4);
  const auto gathers = [&] {
    int count = 0;
    const Block layer = build_model_graph(llama(), step).blocks[1];
    for (const GraphOp& op : layer.backward)
      count += op.name.ends_with(".wgrad.all_gather") ? 1 : 0;
    return count;
  };
  const auto kept = [&] { return profile_memory(build_program(llama(), step), 0, {}).peak; };
  EXPECT_EQ(gathers(), 2);  // attention.qkv and mlp.up
  const Bytes again = kept();
  step.framework.keeps_gathered = true;
  EXPECT_EQ(gathers(), 0);
  // All 4096 x 2048 numbers of 2 bytes in place of this rank's quarter, in two layers of each of 16
  // blocks and in front of the head. The quarter in front of a norm's product is the norm's result.
  const std::int64_t gathered = 2L * 4096 * 2048;
  EXPECT_GE((kept() - again).value(), 32 * gathered * 3 / 4);
  EXPECT_LE((kept() - again).value(), 33 * gathered);
}

TEST(Nanotron, HoldsGradientsIn16BitToTheEndOfAMicroBatch) {
  // Short sequences: the peak is at the end of backward, where nearly all gradients are there.
  StepOptions step = step_of(1);
  step.sequence_length = 16;
  const Program program = build_program(llama(), step);
  const MemoryProfile profile = profile_memory(program, 0, {});
  const Bytes besides = profile.peak - program.stages[0].static_memory;
  EXPECT_GT(besides.value(), 2 * program.parameters * 9 / 10);
  EXPECT_LT(besides.value(), 2 * program.parameters * 14 / 10);
}

TEST(Nanotron, HoldsGradientsAgainInBucketsOfReplicasWithoutZero) {
  StepOptions step = step_of(1, 1, 2);
  const auto gradients = [&](Sharding sharding, bool buckets, int data) {
    step.layout.data = data;
    step.data_parallel.sharding = sharding;
    step.framework.bucket_copies = buckets;
    return persistent_parts(step, 1000, 0)[MemoryCategory::gradients];
  };
  EXPECT_EQ(gradients(Sharding::none, false, 2), Bytes(4000));  // fp32
  EXPECT_EQ(gradients(Sharding::none, true, 2), Bytes(6000));   // and in bf16, as parameters are
  EXPECT_EQ(gradients(Sharding::none, true, 1), Bytes(4000));
  EXPECT_EQ(gradients(Sharding::optimizer, true, 2), Bytes(4000));
}

// Gathered rows lie in one buffer for all layers, what is scattered or a gradient in its own
// memory.
TEST(Nanotron, CollectivesUseMemoryThatIsGivenBackButForGatheredInputs) {
  const Block layer = build_model_graph(llama(), step_of(4)).blocks[1];
  int whole = 0;
  for (const Storage& storage : layer.storages) {
    if (!storage.communicated || storage.bytes != Bytes(2L * 4096 * 2048)) continue;
    EXPECT_FALSE(storage.name.ends_with("qkv.all_gather")) << storage.name;
    EXPECT_FALSE(storage.name.ends_with("wgrad.all_gather")) << storage.name;
    ++whole;
  }
  // Partial sums of two row-split layers; in backward the gathered gradients of both, and the data
  // gradients of two column-split ones.
  EXPECT_EQ(whole, 2 + 2 + 2);
}

// One piece of all parameters beside the parameters themselves; a call for each tensor that is
// flattened; each of 4 ranks' parts is made and copied back, for as long as a launch from C++ (4 us
// where a framework call takes 10.4).
TEST(Nanotron, GathersUpdatedParametersThroughOnePieceAndAListOfSlices) {
  StepOptions step = step_of(1, 1, 4);
  step.data_parallel.sharding = Sharding::optimizer;
  const Program program = build_program(llama(), step);
  const RankProgram& rank = program.stages.front();
  const ProgramOp& gather = *std::ranges::find(rank.ops, OpKind::all_gather, &ProgramOp::kind);
  EXPECT_EQ(gather.allocated, Bytes(2 * rank.parameters));
  constexpr int kTensors = 16 * 6 + 3;  // of layers; table, last norm and head
  const auto flatten =
      std::ranges::find(program.segments, std::string("parameters.flatten"), &Segment::name);
  const auto parts = std::lround(4 * kTensors * 4.0 / 10.4);
  EXPECT_EQ(flatten->host_ops, kTensors + parts);
  const auto unflatten =
      std::ranges::find(program.segments, std::string("parameters.unflatten"), &Segment::name);
  EXPECT_EQ(unflatten->host_ops, parts);
}

// Both moments of the own quarter, in fp32; master weights are there before.
TEST(Nanotron, TheFirstUpdateMakesMoments) {
  StepOptions step = step_of(1, 1, 4);
  step.data_parallel.sharding = Sharding::optimizer;
  const Program program = build_program(llama(), step);
  const RankProgram& rank = program.stages.front();
  EXPECT_EQ(rank.made_by_update, Bytes(8 * rank.parameters / 4));
  EXPECT_EQ(program.segment(rank.ops[static_cast<std::size_t>(rank.update_begin)].segment).phase,
            Phase::optimizer);
}

}  // namespace
}  // namespace tessera
