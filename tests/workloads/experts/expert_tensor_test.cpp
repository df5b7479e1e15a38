// Experts under tensor parallelism: parts of each on every rank, or whole ones
// (Megatron-Core's --expert-tensor-parallel-size 1).
#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/model_graph.h"
#include "workloads/program/process_groups.h"
#include "workloads/program/program.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kHidden = 1024, kFfn = 2816, kSequence = 1024, kMicroBatch = 2;
constexpr std::int64_t kExperts = 8, kPerToken = 2;
constexpr std::int64_t kExpertParameters = 3 * kHidden * kFfn;

ModelSpec mixture(std::int64_t layers) {
  ModelSpec model = test::llama2_7b();
  model.layers = layers;
  model.hidden = kHidden;
  model.heads = 32;
  model.kv_heads = 16;
  model.head_dim = 32;
  model.ffn = kFfn;
  model.experts = kExperts;
  model.experts_per_token = kPerToken;
  return model;
}

/// Tensor 4, data 2, experts whole and spread over `expert` of the 8 ranks.
StepOptions whole_experts(int expert) {
  StepOptions step =
      test::in(Precision::bf16,
               test::single_gpu(test::megatron(), StepMode::training, kMicroBatch, kSequence));
  step.layout = {.tensor = 4, .pipeline = 1, .data = 2};
  step.layout.sequence_parallel = true;
  step.layout.expert = expert;
  step.layout.expert_tensor = 1;
  step.global_batch = 2 * kMicroBatch * step.layout.data;  // two micro-batches
  return step;
}

Block layer_of(const StepOptions& step) {
  return build_model_graph(mixture(2), step).blocks[1];
}

const GraphOp& op_of(const Block& block, const std::string& name) {
  return *std::ranges::find(block.forward, name, &GraphOp::name);
}

std::vector<int> group_of(int rank, GroupKind kind, const ParallelLayout& layout) {
  std::vector<int> members;
  for (int other = 0; other < layout.world_size(); ++other) {
    if (group_key(other, kind, layout) == group_key(rank, kind, layout)) members.push_back(other);
  }
  return members;
}

std::int64_t volume(const RankProgram& stage, OpKind kind, GroupKind group) {
  std::int64_t bytes = 0;
  for (const ProgramOp& op : stage.ops) {
    if (op.kind == kind && op.group == group) bytes += op.bytes.value();
  }
  return bytes;
}

std::string error_of(const StepOptions& step, std::int64_t experts = kExperts) {
  ModelSpec model = mixture(2);
  model.experts = experts;
  model.experts_per_token = experts > 0 ? kPerToken : 0;
  return test::refusal(model, step);
}

TEST(ExpertTensor, WholeExpertsMultiplyEachRanksPartOfTheSequence) {
  const GraphOp up = op_of(layer_of(whole_experts(8)), "mlp.experts.up");
  const std::int64_t rows = kSequence * kMicroBatch * kPerToken / 4;  // of one rank's tokens
  EXPECT_EQ(up.kernel.n, 2 * kFfn);
  EXPECT_EQ(up.kernel.k, kHidden);
  EXPECT_EQ(up.kernel.group_sizes, std::vector<std::int64_t>{rows});  // an expert a rank
  StepOptions parts = whole_experts(2);
  parts.layout.expert_tensor = 0;
  const GraphOp cut = op_of(layer_of(parts), "mlp.experts.up");
  EXPECT_EQ(cut.kernel.n, 2 * kFfn / 4);
  EXPECT_DOUBLE_EQ(up.kernel.flops.value(), cut.kernel.flops.value());  // an equal share of all
}

TEST(ExpertTensor, WholeExpertsNeedNoCollectiveOfTheTensorGroup) {
  const auto is_tensor = [](const GraphOp& op) {
    return op.kind == GraphOpKind::collective && op.group == GroupKind::tensor &&
           op.name.starts_with("mlp");
  };
  StepOptions step = whole_experts(8);
  Block layer = layer_of(step);
  EXPECT_EQ(std::ranges::count_if(layer.forward, is_tensor), 0);
  EXPECT_EQ(std::ranges::count_if(layer.backward, is_tensor), 0);
  // The router's gradient of a part of the sequence is summed with those of the norms.
  EXPECT_EQ(layer.partial_parameters, 2 * kHidden + kExperts * kHidden);
}

/// Bytes of collectives of a group in a layer, forward and backward.
std::int64_t bytes_of(const Block& layer, OpKind kind, GroupKind group) {
  std::int64_t bytes = 0;
  for (const auto* ops : {&layer.forward, &layer.backward}) {
    for (const GraphOp& op : *ops) {
      if (op.kind == GraphOpKind::collective && op.collective == kind && op.group == group)
        bytes += op.bytes.value();
    }
  }
  return bytes;
}

// As Megatron's dispatcher of alltoall has it: own tokens to the ranks of their experts, there a
// gather over the ranks that hold parts of these; back by a reduce-scatter and an exchange.
TEST(ExpertTensor, RanksThatHoldPartsGatherWhatArrives) {
  const std::int64_t rows = kSequence * kMicroBatch * kPerToken / 4;  // of one rank's tokens
  const std::int64_t moved = rows * kHidden * 2;
  for (const int parts : {2, 4, 8}) {
    SCOPED_TRACE(parts);
    for (const int expert : {1, 2}) {
      StepOptions step = whole_experts(expert);
      step.layout.expert_tensor = parts;
      if (step.layout.expert_places() % expert != 0) continue;
      const Block layer = layer_of(step);
      EXPECT_EQ(bytes_of(layer, OpKind::all_to_all, GroupKind::expert), expert > 1 ? 4 * moved : 0);
      for (const OpKind kind : {OpKind::all_gather, OpKind::reduce_scatter})
        EXPECT_EQ(bytes_of(layer, kind, GroupKind::expert_tensor), 2 * parts * moved);
      const GraphOp up = op_of(layer, "mlp.experts.up");
      EXPECT_EQ(up.kernel.n, 2 * kFfn / parts);
      EXPECT_EQ(std::accumulate(up.kernel.group_sizes.begin(), up.kernel.group_sizes.end(),
                                std::int64_t{0}),
                parts * rows);
      EXPECT_EQ(layer.expert_parameters, kExperts / expert * kExpertParameters / parts);
      EXPECT_EQ(layer.partial_parameters, 2 * kHidden + kExperts * kHidden);
    }
  }
}

TEST(ExpertTensor, PartsLieOnNeighboursAndExpertsOnBlocksOfThem) {
  ParallelLayout layout = whole_experts(2).layout;  // tensor 4, data 2
  layout.expert_tensor = 2;
  EXPECT_THAT(group_of(5, GroupKind::expert_tensor, layout), ElementsAre(4, 5));
  EXPECT_THAT(group_of(1, GroupKind::expert, layout), ElementsAre(1, 3));
  EXPECT_THAT(group_of(1, GroupKind::expert_data, layout), ElementsAre(1, 5));
  EXPECT_EQ(layout.expert_replicas(), 2);
  layout.expert_tensor = 8;  // more than tensor-parallel ranks
  layout.expert = 1;
  EXPECT_THAT(group_of(3, GroupKind::expert_tensor, layout), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(group_of(3, GroupKind::expert_data, layout), ElementsAre(3));
}

// Where the sequence is not shared, ranks hold all tokens, and add their parts of the results.
TEST(ExpertTensor, WithoutSequenceParallelismResultsAreSummed) {
  StepOptions step = whole_experts(2);
  step.layout.expert_tensor = 0;
  step.layout.sequence_parallel = false;
  const Block layer = layer_of(step);
  EXPECT_EQ(bytes_of(layer, OpKind::all_gather, GroupKind::expert_tensor), 0);
  const std::int64_t rows = kSequence * kMicroBatch * kPerToken;
  EXPECT_EQ(bytes_of(layer, OpKind::all_to_all, GroupKind::expert), 4 * rows * kHidden * 2);
}

TEST(ExpertTensor, GroupsOfWholeExpertsSpanTensorGroups) {
  ParallelLayout layout = whole_experts(4).layout;
  EXPECT_THAT(group_of(0, GroupKind::expert, layout), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(group_of(5, GroupKind::expert_data, layout), ElementsAre(1, 5));
  layout.expert = 2;
  EXPECT_THAT(group_of(3, GroupKind::expert, layout), ElementsAre(2, 3));
  EXPECT_THAT(group_of(0, GroupKind::expert_data, layout), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(group_of(0, GroupKind::tensor, layout), ElementsAre(0, 1, 2, 3));
  layout.order = {RankDimension::tensor, RankDimension::context, RankDimension::data,
                  RankDimension::expert, RankDimension::pipeline};
  EXPECT_THAT(group_of(0, GroupKind::expert, layout), ElementsAre(0, 4));
}

TEST(ExpertTensor, GroupsPartitionTheRanksInEveryOrder) {
  RankOrder order = kDefaultRankOrder;
  do {
    ParallelLayout layout = whole_experts(4).layout;
    layout.pipeline = layout.context = 2;
    layout.order = order;
    for (const GroupKind kind : {GroupKind::expert, GroupKind::expert_data}) {
      std::map<GroupCoordinates, int> members;
      for (int rank = 0; rank < layout.world_size(); ++rank)
        ++members[group_key(rank, kind, layout)];
      for (const auto& [key, count] : members) EXPECT_EQ(count, 4);
      EXPECT_EQ(members.size(), 8u);
    }
    for (const int member : group_of(0, GroupKind::expert, layout)) {
      const auto same = group_of(member, GroupKind::expert_data, layout);
      EXPECT_EQ(std::ranges::count_if(same,
                                      [&](int rank) {
                                        return group_key(rank, GroupKind::expert, layout) ==
                                               group_key(0, GroupKind::expert, layout);
                                      }),
                1);
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(ExpertTensor, VolumesAndStatesAreTheClosedForms) {
  for (const Sharding sharding : {Sharding::none, Sharding::optimizer}) {
    for (const int expert : {1, 2, 4, 8}) {
      SCOPED_TRACE(expert);
      StepOptions step = whole_experts(expert);
      step.data_parallel.sharding = sharding;
      const RankProgram rank = build_program(mixture(2), step).stages.front();
      const std::int64_t rows = kSequence * kMicroBatch * kPerToken / 4;
      // two micro-batches, two layers, to the experts and back, forward and backward
      EXPECT_EQ(volume(rank, OpKind::all_to_all, GroupKind::expert),
                expert > 1 ? 2 * 2 * 4 * rows * kHidden * 2 : 0);
      const std::int64_t experts = 2 * kExperts / expert * kExpertParameters;
      const std::int64_t dense = rank.parameters - experts;
      const std::int64_t copies = 8 / expert;  // of each expert, on as many ranks
      const bool sharded = sharding == Sharding::optimizer;
      const OpKind sum = sharded ? OpKind::reduce_scatter : OpKind::all_reduce;
      EXPECT_EQ(volume(rank, sum, GroupKind::expert_data), copies > 1 ? 4 * experts : 0);
      EXPECT_EQ(volume(rank, sum, sharded ? GroupKind::shard : GroupKind::data), 4 * dense);
      EXPECT_EQ(volume(rank, OpKind::all_gather, GroupKind::expert_data),
                sharded && copies > 1 ? 2 * experts : 0);
      EXPECT_EQ(rank.static_parts[MemoryCategory::optimizer].value(),
                12 * (sharded ? dense / 2 + experts / copies : dense + experts));
      EXPECT_EQ(rank.static_parts[MemoryCategory::gradients].value(), 4 * rank.parameters);
    }
  }
}

TEST(ExpertTensor, CopiesOnTheRanksOfOneTensorGroupAreSummedToo) {
  StepOptions step = whole_experts(2);
  step.layout.data = 1;  // dense parameters have one copy, experts two
  step.global_batch = kMicroBatch;
  step.data_parallel.sharding = Sharding::optimizer;
  const RankProgram rank = build_program(mixture(1), step).stages.front();
  const std::int64_t experts = kExperts / 2 * kExpertParameters;
  EXPECT_EQ(volume(rank, OpKind::reduce_scatter, GroupKind::expert_data), 4 * experts);
  EXPECT_EQ(volume(rank, OpKind::all_gather, GroupKind::expert_data), 2 * experts);
  EXPECT_EQ(volume(rank, OpKind::all_gather, GroupKind::shard), 0);
  EXPECT_EQ(rank.static_parts[MemoryCategory::optimizer].value(),
            12 * (rank.parameters - experts + experts / 2));
}

// Megatron's --num-distributed-optimizer-instances: each instance holds all states of what is
// dense, and here each replica of an expert all of its states.
TEST(ExpertTensor, SeveralInstancesOfTheOptimizerHoldACopyOfItsStatesEach) {
  StepOptions step = whole_experts(2);
  step.layout.data = 4;
  step.layout.expert_tensor = 0;  // two replicas of every expert
  step.global_batch = kMicroBatch * step.layout.data;
  step.data_parallel.sharding = Sharding::optimizer;
  step.data_parallel.shard_group = 2;
  const RankProgram rank = build_program(mixture(1), step).stages.front();
  const std::int64_t experts = kExperts / 2 * kExpertParameters / 4;
  const std::int64_t dense = rank.parameters - experts;
  EXPECT_EQ(rank.static_parts[MemoryCategory::optimizer].value(), 12 * (dense / 2 + experts));
  EXPECT_EQ(volume(rank, OpKind::reduce_scatter, GroupKind::shard), 4 * dense);
  EXPECT_EQ(volume(rank, OpKind::all_reduce, GroupKind::replica), 4 * dense / 2);
  EXPECT_EQ(volume(rank, OpKind::all_reduce, GroupKind::expert_data), 4 * experts);
  EXPECT_EQ(volume(rank, OpKind::all_gather, GroupKind::expert_data), 0);
  step.data_parallel.shard_group = 1;
  EXPECT_THAT(error_of(step), HasSubstr("4 groups with a copy of all states each, and 2 replicas"));
}

TEST(ExpertTensor, CapacityIsThatOfEachRanksTokens) {
  StepOptions step = whole_experts(8);
  step.expert_capacity_factor = 1.25;
  const GraphOp up = op_of(layer_of(step), "mlp.experts.up");
  const std::int64_t places = kSequence * kMicroBatch * kPerToken / 4 / kExperts * 5 / 4;
  EXPECT_EQ(up.kernel.m, 8 * places);  // from eight ranks
}

TEST(ExpertTensor, OfAllRanksIsTheDefault) {
  StepOptions step = whole_experts(2);
  step.layout.expert_tensor = 0;
  const Program usual = build_program(mixture(2), step);
  step.layout.expert_tensor = 4;
  const Program named = build_program(mixture(2), step);
  EXPECT_EQ(usual.stages[0].static_memory, named.stages[0].static_memory);
  ASSERT_EQ(usual.stages[0].ops.size(), named.stages[0].ops.size());
  for (int rank = 0; rank < step.layout.world_size(); ++rank) {
    EXPECT_EQ(group_key(rank, GroupKind::expert, usual.layout),
              group_key(rank, GroupKind::expert, named.layout));
  }
}

TEST(ExpertTensor, RefusesWhatItCannotBe) {
  StepOptions step = whole_experts(8);
  EXPECT_EQ(error_of(step), "");
  step.layout.expert_tensor = 2;
  EXPECT_THAT(error_of(step), HasSubstr("8 does not divide the ranks tensor * data * context / "
                                        "expert_tensor = 4"));
  step.layout.expert_tensor = 3;
  EXPECT_THAT(error_of(step), HasSubstr("3 does not divide the ranks tensor * data * context = 8"));
  step = whole_experts(2);
  step.layout.expert_tensor = 2;
  EXPECT_EQ(error_of(step), "");
  step.framework.expert_dispatcher = ExpertDispatcher::deepep;
  EXPECT_THAT(error_of(step), HasSubstr("sends tokens once for each rank is not simulated"));
  step = whole_experts(8);
  step.layout.sequence_parallel = false;
  EXPECT_THAT(error_of(step), HasSubstr("every tensor-parallel rank would send the same tokens"));
  EXPECT_THAT(
      error_of(whole_experts(16), 16),
      HasSubstr("16 does not divide the ranks tensor * data * context / expert_tensor = 8"));
  EXPECT_THAT(error_of(whole_experts(1), 0), HasSubstr("the model has no experts"));
}

}  // namespace
}  // namespace tessera
