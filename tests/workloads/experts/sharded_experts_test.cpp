// Gradients and parameters of experts that are spread over ranks, sharded: what ranks send and
// hold, against closed forms; on random layouts.
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/program/program.h"

namespace tessera {
namespace {

constexpr std::int64_t kHidden = 1024, kKeys = 512, kFfn = 2816, kVocabulary = 32000;
constexpr std::int64_t kExperts = 8;
constexpr std::int64_t kSequence = 1024, kMicroBatch = 2;

ModelSpec mixture(std::int64_t layers) {
  ModelSpec model = test::llama2_7b();
  model.layers = layers;
  model.hidden = kHidden;
  model.heads = 32;
  model.kv_heads = 16;
  model.head_dim = 32;
  model.ffn = kFfn;
  model.experts = kExperts;
  model.experts_per_token = 2;
  return model;
}

StepOptions training(const ParallelLayout& layout, std::int64_t micro_batches) {
  StepOptions step =
      test::in(Precision::bf16,
               test::single_gpu(test::megatron(), StepMode::training, kMicroBatch, kSequence));
  step.layout = layout;
  step.global_batch = kMicroBatch * layout.data * micro_batches;
  return step;
}

using Key = std::pair<OpKind, GroupKind>;
using Volumes = std::map<Key, std::int64_t>;
/// Bytes of collectives over replicas, those of experts and all; without numbers such as the norm,
/// and without gathers of the root unit.
Volumes volumes(const RankProgram& stage) {
  Volumes result;
  for (const ProgramOp& op : stage.ops) {
    const bool counts = op.group == GroupKind::shard || op.group == GroupKind::expert_data ||
                        op.group == GroupKind::replica || op.group == GroupKind::data;
    if (!is_collective(op.kind) || !counts || op.bytes <= Bytes(4)) continue;
    const bool root = op.kind == OpKind::all_gather && op.layer < 0 && op.phase != Phase::optimizer;
    if (!root) result[{op.kind, op.group}] += op.bytes.value();
  }
  return result;
}

/// Of one rank of a stage.
struct Held {
  std::int64_t dense = 0, experts = 0;
  std::int64_t layers_dense = 0;  ///< of `dense`, without embedding and head
};
Held held_by(const ParallelLayout& layout, std::int64_t layers, std::int64_t parameters) {
  const std::int64_t t = layout.tensor;
  const std::int64_t experts_split = layout.expert_parts();
  const std::int64_t attention = (2 * kHidden * kHidden + 2 * kHidden * kKeys) / t;
  const std::int64_t whole = 2 * kHidden + kExperts * kHidden;  // norms, router
  Held held;
  held.experts = layers * kExperts / layout.expert * 3 * kHidden * kFfn / experts_split;
  held.dense = parameters - held.experts;
  held.layers_dense = layers * (attention + whole);
  return held;
}

std::int64_t shard(std::int64_t parameters, std::int64_t ranks) {
  return (parameters + ranks - 1) / ranks;
}

/// fp32 sums of gradients, per micro-batch or once; bf16 weights, twice per micro-batch where
/// parameters are sharded, else once behind the update. A part whose group has one rank moves not.
Volumes closed_form(const StepOptions& step, const Held& held) {
  const std::int64_t m = step.micro_batches();
  const std::int64_t sums = step.data_parallel.reduce_each_micro_batch ? m : 1;
  const bool gathers_units = step.data_parallel.sharding == Sharding::parameters;
  Volumes expected;
  const auto add = [&](GroupKind group, int ranks, std::int64_t parameters, std::int64_t layers) {
    if (ranks == 1) return;
    expected[{OpKind::reduce_scatter, group}] = 4 * parameters * sums;
    expected[{OpKind::all_gather, group}] = gathers_units ? 2 * layers * 2 * m : 2 * parameters;
  };
  add(GroupKind::shard, step.layout.replicas(), held.dense, held.layers_dense);
  add(GroupKind::expert_data, step.layout.expert_replicas(), held.experts, held.experts);
  return expected;
}

/// 2 bytes of bf16 weights, 4 of fp32 gradients, 12 of fp32 masters and moments.
void expect_states(const RankProgram& rank, const StepOptions& step, const Held& held) {
  const std::int64_t divided = shard(held.dense, step.layout.replicas()) +
                               shard(held.experts, step.layout.expert_replicas());
  const bool parameters = step.data_parallel.sharding == Sharding::parameters;
  const auto bytes = [&](MemoryCategory category) { return rank.static_parts[category].value(); };
  EXPECT_EQ(bytes(MemoryCategory::parameters), 2 * (parameters ? divided : rank.parameters));
  EXPECT_EQ(bytes(MemoryCategory::gradients), 4 * divided);
  EXPECT_EQ(bytes(MemoryCategory::optimizer), 12 * divided);
}

/// What ops take besides their segments is given back.
void expect_balanced(const RankProgram& rank) {
  Bytes balance;
  for (const ProgramOp& op : rank.ops) {
    balance += op.allocated;
    balance -= op.freed;
    EXPECT_GE(balance, Bytes(0));
  }
  EXPECT_EQ(balance, Bytes(0));
}

class Draw {
 public:
  int of(std::initializer_list<int> choices) {
    return *(choices.begin() +
             static_cast<std::ptrdiff_t>(random_() % static_cast<unsigned>(choices.size())));
  }
  bool coin() { return of({0, 1}) == 1; }

  ParallelLayout layout() {
    ParallelLayout layout;
    layout.tensor = of({1, 2, 4});
    layout.pipeline = of({1, 2});
    layout.data = of({1, 2, 4});
    layout.context = of({1, 2});
    layout.expert = of({1, 2, 4, 8});
    layout.virtual_stages = layout.pipeline > 1 ? of({1, 2}) : 1;
    layout.sequence_parallel = layout.tensor > 1 && coin();
    if (layout.sequence_parallel && coin()) layout.expert_tensor = 1;
    if (layout.expert_places() % layout.expert != 0) layout.expert = 1;
    return layout;
  }
  StepOptions step(const ParallelLayout& layout) {
    StepOptions step = training(layout, layout.pipeline * of({1, 3}));
    if (layout.virtual_stages > 1) {
      step.schedule = PipelineSchedule::interleaved_1f1b;
    } else if (layout.pipeline > 1 && coin()) {
      step.schedule = PipelineSchedule::zb_h1;
    }
    step.data_parallel.sharding = coin() ? Sharding::parameters : Sharding::gradients;
    step.data_parallel.reduce_each_micro_batch = coin();
    return step;
  }

 private:
  std::mt19937 random_{11};
};

TEST(ShardedExperts, VolumesAndStatesAreTheClosedFormsOnRandomLayouts) {
  Draw draw;
  std::set<Key> seen;
  int alone = 0;
  for (int trial = 0; trial < 128; ++trial) {
    const ParallelLayout layout = draw.layout();
    const bool divided = layout.replicas() > 1 || layout.expert_replicas() > 1;
    if (!layout.experts_apart() || !divided) continue;
    if (layout.expert_replicas() == 1) ++alone;
    const StepOptions step = draw.step(layout);
    const std::int64_t layers = layout.virtual_stages * draw.of({1, 2});
    const Program program = build_program(mixture(layers * layout.pipeline), step);
    for (const RankProgram& rank : program.stages) {
      SCOPED_TRACE("tensor " + std::to_string(layout.tensor) + " data " +
                   std::to_string(layout.data) + " context " + std::to_string(layout.context) +
                   " expert " + std::to_string(layout.expert) + " whole " +
                   std::to_string(layout.expert_tensor) + " stage " + std::to_string(rank.stage));
      const Held held = held_by(layout, layers, rank.parameters);
      EXPECT_EQ(volumes(rank), closed_form(step, held));
      expect_states(rank, step, held);
      expect_balanced(rank);
      for (const auto& [key, bytes] : volumes(rank)) seen.insert(key);
    }
  }
  EXPECT_EQ(seen.size(), 4u);
  EXPECT_GT(alone, 3);
}

/// Gathered in forward, kept to the end of backward: FSDP's SHARD_GRAD_OP.
TEST(ShardedExperts, UnitsThatStayAreGatheredOncePerMicroBatch) {
  StepOptions step = training({.data = 8, .expert = 2}, 3);
  step.data_parallel.sharding = Sharding::gradients;
  step.data_parallel.gather_units = true;
  const RankProgram rank = build_program(mixture(2), step).stages.front();
  const Held held = held_by(step.layout, 2, rank.parameters);
  Volumes actual = volumes(rank);
  EXPECT_EQ((actual[{OpKind::all_gather, GroupKind::expert_data}]), 2 * held.experts * 3);
  EXPECT_EQ((actual[{OpKind::all_gather, GroupKind::shard}]), 2 * held.layers_dense * 3);
  EXPECT_EQ(rank.static_parts[MemoryCategory::parameters].value(),
            2 * (held.dense / 8 + held.experts / 4));
}

/// Ops of `key`, and their bytes.
std::vector<std::size_t> places_of(const RankProgram& rank, const Key& key, std::int64_t& bytes) {
  std::vector<std::size_t> places;
  bytes = 0;
  for (std::size_t i = 0; i < rank.ops.size(); ++i) {
    const ProgramOp& op = rank.ops[i];
    if (op.kind != key.first || op.group != key.second) continue;
    places.push_back(i);
    bytes += op.bytes.value();
  }
  return places;
}

/// Buckets of one byte close with every layer: two of experts, which leave and come one by one.
TEST(ShardedExperts, OverlappedBucketsOfExpertsAreTheirOwn) {
  StepOptions step = training({.data = 8, .expert = 2}, 2);
  DataParallel& data = step.data_parallel;
  data.sharding = Sharding::optimizer;
  data.overlap_gradients = data.overlap_parameters = true;
  data.bucket = data.first_bucket = Bytes(1);
  data.bucket_per_replica = Bytes(0);
  const RankProgram rank = build_program(mixture(2), step).stages.front();
  const Held held = held_by(step.layout, 2, rank.parameters);
  std::int64_t bytes = 0;
  const auto summed = places_of(rank, {OpKind::reduce_scatter, GroupKind::expert_data}, bytes);
  EXPECT_EQ(bytes, 4 * held.experts);
  const auto gathered = places_of(rank, {OpKind::all_gather, GroupKind::expert_data}, bytes);
  EXPECT_EQ(bytes, 2 * held.experts);
  places_of(rank, {OpKind::reduce_scatter, GroupKind::shard}, bytes);
  EXPECT_EQ(bytes, 4 * held.dense);
  places_of(rank, {OpKind::all_gather, GroupKind::shard}, bytes);
  EXPECT_EQ(bytes, 2 * held.dense);
  ASSERT_EQ(summed.size(), 2u);
  ASSERT_EQ(gathered.size(), 2u);
  std::vector<std::size_t> of_first_layer;  // passes of layer 0
  for (std::size_t i = 0; i < rank.ops.size(); ++i)
    if (rank.ops[i].kind == OpKind::kernels && rank.ops[i].layer == 0) of_first_layer.push_back(i);
  EXPECT_LT(summed.front(), of_first_layer.back());
  EXPECT_GT(summed.back(), of_first_layer.back());
  EXPECT_LT(gathered.front(), of_first_layer.front());
  expect_balanced(rank);
}

/// Each group of ranks with a copy of the dense states has one replica of every expert.
TEST(ShardedExperts, ShardGroupsSumWholeExperts) {
  StepOptions step = training({.data = 8, .expert = 4}, 1);
  step.data_parallel.sharding = Sharding::parameters;
  step.data_parallel.shard_group = 4;
  const RankProgram rank = build_program(mixture(1), step).stages.front();
  const Held held = held_by(step.layout, 1, rank.parameters);
  Volumes actual = volumes(rank);
  EXPECT_EQ((actual[{OpKind::all_reduce, GroupKind::expert_data}]), 4 * held.experts);
  EXPECT_EQ((actual[{OpKind::all_reduce, GroupKind::replica}]), 4 * held.dense / 4);
  EXPECT_EQ((actual[{OpKind::all_gather, GroupKind::expert_data}]), 0);
  EXPECT_EQ((actual[{OpKind::all_gather, GroupKind::shard}]), 2 * 2 * held.layers_dense);
  EXPECT_EQ(rank.static_parts[MemoryCategory::optimizer].value(),
            12 * (held.dense / 4 + held.experts));
  expect_balanced(rank);
  step.data_parallel.shard_group = 2;
  EXPECT_THAT(test::refusal(mixture(1), step),
              testing::HasSubstr("4 groups with a copy of all states each"));
}

/// fp32 weights of experts that no other rank holds are cast where they are, as a unit's are; and
/// their gradients are added to fp32 where they lie.
TEST(ShardedExperts, OfOneReplicaAreCastAndAddedInPlace) {
  StepOptions step = training({.data = 8, .expert = 8}, 2);
  step.data_parallel.sharding = Sharding::parameters;
  step.formats.parameters = Precision::fp32;
  const Program program = build_program(mixture(1), step);
  const RankProgram& rank = program.stages.front();
  const Held held = held_by(step.layout, 1, rank.parameters);
  std::map<std::string, std::int64_t> traffic;  // of kernels over the replicas of experts
  for (const ProgramOp& op : rank.ops) {
    if (op.group != GroupKind::expert_data) continue;
    ASSERT_EQ(op.kind, OpKind::kernels);
    const Segment& segment = program.segment(op.segment);
    for (const KernelLaunch& launch : segment.kernels)
      traffic[segment.name] += launch.kernel.bytes().value();
  }
  EXPECT_EQ(traffic.at("parameters.cast"), (4 + 2) * held.experts * 4);  // twice per micro-batch
  EXPECT_EQ(traffic.at("gradients.cast_back"), (2 + 4) * held.experts);  // the first micro-batch
  EXPECT_EQ(traffic.at("gradients.accumulate"), (2 + 4 + 4) * held.experts);  // the second
  EXPECT_EQ(traffic.size(), 3u);
  EXPECT_EQ(rank.static_parts[MemoryCategory::parameters].value(),
            4 * (held.dense / 8 + held.experts));
  expect_balanced(rank);
}

/// Every rank holds all experts: they are nothing else than the rest of their unit.
TEST(ShardedExperts, OnEveryRankAreDividedByAllReplicas) {
  for (const Sharding sharding : {Sharding::gradients, Sharding::parameters}) {
    StepOptions step = training({.data = 4, .context = 2}, 1);
    step.data_parallel.sharding = sharding;
    const RankProgram rank = build_program(mixture(1), step).stages.front();
    for (const ProgramOp& op : rank.ops) EXPECT_NE(op.group, GroupKind::expert_data);
    EXPECT_EQ((volumes(rank)[{OpKind::reduce_scatter, GroupKind::shard}]), 4 * rank.parameters);
    EXPECT_EQ(rank.static_parts[MemoryCategory::optimizer].value(), 12 * shard(rank.parameters, 8));
  }
}

TEST(ShardedExperts, EmbeddingAndHeadAreTheRootUnitOfAllReplicas) {
  StepOptions step = training({.data = 4, .expert = 2}, 1);
  step.data_parallel.sharding = Sharding::parameters;
  const RankProgram rank = build_program(mixture(1), step).stages.front();
  std::int64_t root = 0;
  for (const ProgramOp& op : rank.ops)
    if (op.kind == OpKind::all_gather && op.layer < 0) root += op.bytes.value();
  EXPECT_EQ(root, 2 * (2 * kVocabulary * kHidden + kHidden));  // and the last norm
}

}  // namespace
}  // namespace tessera
