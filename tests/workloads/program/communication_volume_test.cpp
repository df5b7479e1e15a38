// What ranks send, by group, against closed forms; on random layouts.
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/workloads/models.h"
#include "workloads/families/vocabulary.h"
#include "workloads/program/program.h"

namespace tessera {
namespace {

constexpr std::int64_t kSequence = 1024;
constexpr std::int64_t kBytes = 2;   // bf16 activations
constexpr std::int64_t kReduce = 4;  // gradients are reduced in fp32

ModelSpec mixture(std::int64_t layers) {
  ModelSpec model = test::llama2_7b();
  model.layers = layers;
  model.hidden = 1024;
  model.heads = 32;
  model.kv_heads = 16;
  model.head_dim = 32;
  model.ffn = 2816;
  model.experts = 8;
  model.experts_per_token = 2;
  return model;
}

StepOptions training(const ParallelLayout& layout, std::int64_t micro_batches) {
  StepOptions step = test::in(Precision::bf16,
                              test::single_gpu(test::megatron(), StepMode::training, 2, kSequence));
  step.layout = layout;
  step.global_batch = 2 * layout.data * micro_batches;
  if (layout.virtual_stages > 1) step.schedule = PipelineSchedule::interleaved_1f1b;
  return step;
}

using Key = std::pair<OpKind, GroupKind>;
/// Bytes of all collectives and messages of a stage; messages under the pipeline group.
std::map<Key, std::int64_t> volumes(const RankProgram& stage) {
  std::map<Key, std::int64_t> result;
  for (const ProgramOp& op : stage.ops) {
    if (op.kind == OpKind::kernels || op.kind == OpKind::recv) continue;
    if (op.phase == Phase::optimizer || op.phase == Phase::loss) continue;
    const GroupKind group = op.kind == OpKind::send ? GroupKind::pipeline : op.group;
    result[{op.kind, group}] += op.bytes.value();
  }
  return result;
}

/// What stage `stage` sends in forward and backward passes and to sum its gradients.
std::map<Key, std::int64_t> closed_form(const ModelSpec& model, const StepOptions& step, int stage,
                                        std::int64_t parameters) {
  const ParallelLayout& layout = step.layout;
  const std::int64_t m = step.micro_batches();
  const std::int64_t layers = model.layers / layout.pipeline;
  const std::int64_t tokens = step.micro_batch * kSequence / layout.context;
  const std::int64_t hidden = tokens * model.hidden * kBytes;
  const bool first = stage == 0;
  const bool last = stage == layout.pipeline - 1;
  std::map<Key, std::int64_t> expected;
  // four per layer, one of the embedding, one of the head
  if (layout.tensor > 1)
    expected[{OpKind::all_reduce, GroupKind::tensor}] =
        m * hidden * (4 * layers + (first ? 1 : 0) + (last ? 1 : 0));
  // keys and values go round forward; they and their gradients in backward
  const std::int64_t keys = 2 * tokens * model.kv_heads / layout.tensor * model.head_dim * kBytes;
  if (layout.context > 1)
    expected[{OpKind::ring_shift, GroupKind::context}] =
        m * layers * (layout.context - 1) * 3 * keys;
  // to the experts and back, twice; ahead of them the counts of all ranks, in int64
  if (layout.expert > 1) {
    expected[{OpKind::all_to_all, GroupKind::expert}] =
        m * layers * 4 * model.experts_per_token * hidden;
    expected[{OpKind::all_gather, GroupKind::expert}] =
        m * layers * layout.expert * model.experts * 8;
  }
  const int sends = layout.virtual_stages * 2 - (first ? 1 : 0) - (last ? 1 : 0);
  if (layout.pipeline > 1) expected[{OpKind::send, GroupKind::pipeline}] = m * sends * hidden;
  const std::int64_t experts =
      layers * model.experts / layout.expert * 3 * model.hidden * model.ffn / layout.tensor;
  const std::int64_t apart = layout.expert > 1 ? experts : 0;
  if (layout.replicas() > 1)
    expected[{OpKind::all_reduce, GroupKind::data}] = kReduce * (parameters - apart);
  if (layout.expert > 1 && layout.expert < layout.replicas())
    expected[{OpKind::all_reduce, GroupKind::expert_data}] = kReduce * experts;
  return expected;
}

TEST(CommunicationVolume, IsTheClosedFormOnRandomLayouts) {
  std::mt19937 random(5);
  const auto pick = [&](std::initializer_list<int> choices) {
    return *(choices.begin() +
             static_cast<std::ptrdiff_t>(random() % static_cast<unsigned>(choices.size())));
  };
  std::set<Key> seen;
  for (int trial = 0; trial < 64; ++trial) {
    ParallelLayout layout;
    layout.tensor = pick({1, 2, 4});
    layout.pipeline = pick({1, 2, 4});
    layout.data = pick({1, 2, 4});
    layout.context = pick({1, 2, 4, 8});
    layout.expert = pick({1, 2, 4, 8});
    if (layout.replicas() % layout.expert != 0) layout.expert = 1;
    layout.virtual_stages = layout.pipeline > 1 ? pick({1, 2}) : 1;
    const ModelSpec model = mixture(layout.pipeline * layout.virtual_stages * pick({1, 2}));
    const StepOptions step = training(layout, layout.pipeline * pick({1, 3}));
    const Program program = build_program(model, step);
    for (int stage = 0; stage < layout.pipeline; ++stage) {
      const RankProgram& rank = program.stages[static_cast<std::size_t>(stage)];
      const auto actual = volumes(rank);
      EXPECT_EQ(actual, closed_form(model, step, stage, rank.parameters))
          << "tensor " << layout.tensor << " pipeline " << layout.pipeline << " data "
          << layout.data << " context " << layout.context << " expert " << layout.expert
          << " virtual " << layout.virtual_stages << " stage " << stage;
      for (const auto& [key, bytes] : actual) seen.insert(key);
    }
  }
  EXPECT_EQ(seen.size(), 7u);
}

/// Bytes of the collectives of a kind over a group, all phases.
std::int64_t volume(const RankProgram& stage, OpKind kind, GroupKind group) {
  std::int64_t bytes = 0;
  for (const ProgramOp& op : stage.ops) {
    if (op.kind == kind && op.group == group) bytes += op.bytes.value();
  }
  return bytes;
}

// Megatron's distributed optimizer: gradients are reduce-scattered and weights gathered over all
// replicas, those of experts over the replicas that hold the same ones; what was summed in fp32 and
// is gathered in bf16. Per rank 6 bytes of weights and gradients, and 12 over the replicas.
TEST(CommunicationVolume, OfADistributedOptimizerWithExperts) {
  for (const int expert : {1, 2, 4, 8}) {
    ParallelLayout layout;
    layout.tensor = 2;
    layout.data = 4;
    layout.context = 2;
    layout.expert = expert;
    StepOptions step = training(layout, 2);
    step.data_parallel.sharding = Sharding::optimizer;
    const ModelSpec model = mixture(2);
    const RankProgram rank = build_program(model, step).stages.front();
    const std::int64_t held = 2 * 8 / expert * 3 * 1024 * 2816 / 2;
    const std::int64_t experts = expert > 1 ? held : 0;
    const std::int64_t dense = rank.parameters - experts;
    const bool divided = expert > 1 && expert < 8;  // over 8 / expert replicas
    SCOPED_TRACE(expert);
    EXPECT_EQ(volume(rank, OpKind::reduce_scatter, GroupKind::shard), 4 * dense);
    EXPECT_EQ(volume(rank, OpKind::all_gather, GroupKind::shard), 2 * dense);
    EXPECT_EQ(volume(rank, OpKind::reduce_scatter, GroupKind::expert_data),
              divided ? 4 * experts : 0);
    EXPECT_EQ(volume(rank, OpKind::all_gather, GroupKind::expert_data), divided ? 2 * experts : 0);
    EXPECT_EQ(volume(rank, OpKind::all_reduce, GroupKind::data), 0);
    EXPECT_EQ(rank.static_parts[MemoryCategory::optimizer].value(),
              12 * (dense / 8 + experts * expert / 8));
    EXPECT_EQ(rank.static_parts[MemoryCategory::gradients].value(), 4 * rank.parameters);
  }
}

TEST(CommunicationVolume, OfContextParallelism) {
  ParallelLayout layout;
  layout.context = 4;
  StepOptions step = training(layout, 1);
  const ModelSpec model = mixture(3);
  const std::int64_t keys = 2 * 2 * kSequence / 4 * 512 * kBytes;  // of one rank
  const std::int64_t queries = 2 * kSequence / 4 * 1024 * kBytes;
  step.context_attention = ContextAttention::all_gather;
  auto bytes = volumes(build_program(model, step).stages[0]);
  EXPECT_EQ((bytes[{OpKind::all_gather, GroupKind::context}]), 3 * 2 * 4 * keys);
  EXPECT_EQ((bytes[{OpKind::reduce_scatter, GroupKind::context}]), 3 * 4 * keys);
  step.context_attention = ContextAttention::ulysses;
  bytes = volumes(build_program(model, step).stages[0]);
  // queries and outputs, keys and values, there and back
  EXPECT_EQ((bytes[{OpKind::all_to_all, GroupKind::context}]), 3 * 2 * (2 * queries + keys));
}

TEST(CommunicationVolume, OfExpertsIsTheBusiestRanks) {
  ParallelLayout layout;
  layout.data = layout.expert = 4;
  StepOptions step = training(layout, 1);
  const std::int64_t rows = 2 * kSequence * 2;  // two experts per token
  const auto sent = [&] {
    return volumes(
        build_program(mixture(1), step).stages[0])[{OpKind::all_to_all, GroupKind::expert}];
  };
  EXPECT_EQ(sent(), 4 * rows * 1024 * kBytes);
  // the busiest of 8 experts gets twice the mean, the other of its rank 6/7 of it
  step.expert_imbalance = 2;
  const std::int64_t all = 4 * rows;
  const std::int64_t busiest = all / 4 + (all - all / 4 + 6) / 7;
  EXPECT_EQ(sent(), 4 * busiest * 1024 * kBytes);
  // a place for 1.25 times the mean with every expert, whoever comes
  step.expert_capacity_factor = 1.25;
  EXPECT_EQ(sent(), 4 * (rows * 5 / 4) * 1024 * kBytes);
}

}  // namespace
}  // namespace tessera
