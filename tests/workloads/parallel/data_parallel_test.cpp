// What data-parallel ranks send, compute and hold, against closed forms: Rajbhandari et al.,
// "ZeRO", SC 2020 (bytes per parameter), Zhao et al., "PyTorch FSDP", VLDB 2023 (what is gathered
// when).
#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/parallel/gradient_buckets.h"
#include "workloads/program/program.h"
#include "workloads/sharding.h"

namespace tessera {
namespace {

using test::in;

ModelSpec small_gpt() {
  ModelSpec model = test::gpt2_large();
  model.layers = 6;
  model.hidden = 256;
  model.heads = model.kv_heads = 4;
  model.ffn = 1024;
  model.vocab = 1024;
  return model;
}

StepOptions step_of(const FrameworkProfile& framework, int ranks, int micro_batches = 1) {
  StepOptions step = test::single_gpu(framework, StepMode::training, 1, 128);
  step.layout.data = ranks;
  step.global_batch = std::int64_t{ranks} * micro_batches;
  step.data_parallel = framework.data_parallel;
  return in(Precision::bf16, step);
}

/// Bytes that a rank sends for the data-parallel collectives of its program, in rings.
double sent_bytes(const Program& program, int stage = 0) {
  double sum = 0;
  for (const ProgramOp& op : program.stages[static_cast<std::size_t>(stage)].ops) {
    if (!is_collective(op.kind) || op.bytes <= Bytes(4)) continue;
    const ParallelLayout& layout = program.layout;
    const double ranks = op.group == GroupKind::shard     ? layout.shard
                         : op.group == GroupKind::replica ? layout.replicas() / layout.shard
                                                          : layout.replicas();
    const double times = op.kind == OpKind::all_reduce ? 2 : 1;
    sum += times * (ranks - 1) / ranks * static_cast<double>(op.bytes.value());
  }
  return sum;
}

/// Parameters of all layers; embedding and head are the root unit.
double layer_parameters(const ModelSpec& model) {
  return 12.0 * static_cast<double>(model.layers * model.hidden * model.hidden) +
         13.0 * static_cast<double>(model.layers * model.hidden);
}

TEST(DataParallelVolume, OfEverySharding) {
  std::mt19937 random(5);
  const ModelSpec model = small_gpt();
  for (int round = 0; round < 60; ++round) {
    const int ranks = 2 << random() % 5;
    const int micro_batches = 1 + static_cast<int>(random() % 3);
    StepOptions step = step_of(test::fsdp(), ranks, micro_batches);
    step.data_parallel.sharding = static_cast<Sharding>(random() % 4);
    step.data_parallel.gather_units =
        step.data_parallel.sharding == Sharding::gradients && random() % 2 == 0;
    step.data_parallel.overlap_gradients = random() % 2 == 0;
    step.data_parallel.overlap_parameters = random() % 2 == 0;
    step.data_parallel.reduce_each_micro_batch = random() % 2 == 0;
    step.data_parallel.bucket = Bytes(1 + static_cast<std::int64_t>(random() % 5'000'000));
    const Program program = build_program(model, step);
    const double p = static_cast<double>(program.stages[0].parameters);
    const double ring = (ranks - 1.0) / ranks;
    const int reductions = step.data_parallel.reduce_each_micro_batch ? micro_batches : 1;
    double expected = 0;
    switch (step.data_parallel.sharding) {
      case Sharding::none:
        expected = 2 * ring * 4 * p;  // fp32 gradients once
        break;
      case Sharding::optimizer:
        expected = ring * (4 * p + 4 * p);  // and fp32 weights
        break;
      case Sharding::gradients:
        expected = ring * 4 * p * reductions;
        expected += step.data_parallel.gather_units ? ring * 2 * p * micro_batches : ring * 4 * p;
        break;
      case Sharding::parameters:  // bf16 in forward, and but for the root in backward
        expected =
            ring * 4 * p * reductions + ring * 2 * (p + layer_parameters(model)) * micro_batches;
        break;
    }
    EXPECT_NEAR(sent_bytes(program) / expected, 1, 1e-12)
        << static_cast<int>(step.data_parallel.sharding) << " " << ranks;
  }
}

TEST(DataParallelVolume, HybridShardingSendsTheShardBetweenGroups) {
  const ModelSpec model = small_gpt();
  for (const int group : {2, 4, 8}) {
    StepOptions step = step_of(test::fsdp(), 16);
    step.data_parallel.shard_group = group;
    const Program program = build_program(model, step);
    const double p = static_cast<double>(program.stages[0].parameters);
    const double inside = (group - 1.0) / group;
    const int groups = 16 / group;
    const double between = (groups - 1.0) / groups;
    const double expected =
        inside * (4 * p + 2 * (p + layer_parameters(model))) + 2 * between * 4 * p / group;
    EXPECT_NEAR(sent_bytes(program) / expected, 1, 1e-6) << group;  // shards are whole elements
  }
}

TEST(DataParallelVolume, MegatronsDistributedOptimizerGathersSixteenBits) {
  StepOptions step = step_of(test::megatron(), 8);
  step.layout.tensor = 2;
  step.data_parallel.sharding = Sharding::optimizer;
  const Program program = build_program(small_gpt(), step);
  double sent = 0;
  for (const ProgramOp& op : program.stages[0].ops) {
    if (op.group != GroupKind::shard || op.bytes <= Bytes(4)) continue;
    EXPECT_TRUE(op.kind == OpKind::reduce_scatter || op.kind == OpKind::all_gather);
    sent += static_cast<double>(op.bytes.value());
  }
  EXPECT_EQ(sent, (4.0 + 2.0) * static_cast<double>(program.stages[0].parameters));
}

/// ZeRO, section 5: 2 + 2 + 12 bytes in fp16, with one, two or all three of them divided.
TEST(ShardedMemory, IsZerosFormula) {
  FrameworkProfile framework = test::megatron_local();
  constexpr std::int64_t kParameters = 1 << 20;
  for (const int n : {1, 2, 8, 64}) {
    StepOptions step = step_of(framework, n);
    step.precision = Precision::fp16;
    step.formats = test::with_masters(Precision::fp16, Precision::fp16);
    const auto bytes = [&](Sharding sharding) {
      step.data_parallel.sharding = sharding;
      return persistent_bytes(step, kParameters);
    };
    EXPECT_EQ(bytes(Sharding::none), Bytes(16 * kParameters));
    EXPECT_EQ(bytes(Sharding::optimizer), Bytes(4 * kParameters + 12 * kParameters / n));
    EXPECT_EQ(bytes(Sharding::gradients), Bytes(2 * kParameters + 14 * kParameters / n));
    EXPECT_EQ(bytes(Sharding::parameters), Bytes(16 * kParameters / n));
  }
}

/// frameworks of bf16 weights and fp32 gradients: 6 + 12 / n.
TEST(ShardedMemory, OfMegatronsDistributedOptimizer) {
  StepOptions step = step_of(test::megatron(), 8);
  step.data_parallel.sharding = Sharding::optimizer;
  EXPECT_EQ(persistent_bytes(step, 8000), Bytes(6 * 8000 + 12 * 1000));
}

bool same_ops(const Program& a, const Program& b) {
  const auto equal = [](const ProgramOp& x, const ProgramOp& y) {
    return x.kind == y.kind && x.stream == y.stream && x.waits == y.waits &&
           x.segment == y.segment && x.bytes == y.bytes && x.allocated == y.allocated &&
           x.freed == y.freed;
  };
  return std::ranges::equal(a.stages[0].ops, b.stages[0].ops, equal) &&
         a.stages[0].static_memory == b.stages[0].static_memory;
}

TEST(Sharding, OverOneRankChangesNothing) {
  for (const FrameworkProfile& framework : {test::fsdp(), test::megatron(), test::hf_eager()}) {
    StepOptions step = step_of(framework, 1, 2);
    step.data_parallel = {};
    const Program plain = build_program(small_gpt(), step);
    for (const Sharding sharding :
         {Sharding::optimizer, Sharding::gradients, Sharding::parameters}) {
      step.data_parallel.sharding = sharding;
      EXPECT_TRUE(same_ops(build_program(small_gpt(), step), plain));
    }
    step.layout.data = 4;
    step.global_batch = 8;
    step.data_parallel.sharding = Sharding::none;
    const Program replicated = build_program(small_gpt(), step);
    step.data_parallel.sharding = Sharding::parameters;
    step.data_parallel.shard_group = 1;
    EXPECT_TRUE(same_ops(build_program(small_gpt(), step), replicated));
  }
}

/// Allocations outside of segments are freed by the end of the step.
TEST(Sharding, FreesWhatItAllocates) {
  for (const Sharding sharding : {Sharding::gradients, Sharding::parameters}) {
    for (const bool each : {false, true}) {
      StepOptions step = step_of(test::fsdp(), 4, 3);
      step.data_parallel.sharding = sharding;
      step.data_parallel.gather_units = sharding == Sharding::gradients;
      step.data_parallel.reduce_each_micro_batch = each;
      Bytes balance;
      Bytes most;
      const Program program = build_program(small_gpt(), step);
      for (const ProgramOp& op : program.stages[0].ops) {
        balance += op.allocated;
        most = std::max(most, balance);
        balance -= op.freed;
        EXPECT_GE(balance, Bytes(0));
      }
      EXPECT_EQ(balance, Bytes(0));
      EXPECT_GT(most, Bytes(0));
    }
  }
}

const ProgramOp& op_at(const std::vector<ProgramOp>& ops, std::int32_t index) {
  return ops[static_cast<std::size_t>(index)];
}

TEST(FullShard, GathersALayerWhenTheOneTwoBeforeItIsFreed) {
  const Program program = build_program(small_gpt(), step_of(test::fsdp(), 4));
  const std::vector<ProgramOp>& ops = program.stages[0].ops;
  int checked = 0;
  for (const ProgramOp& op : ops) {
    if (op.stream != StreamKind::data_comm || op.kind != OpKind::kernels) continue;
    if (op.phase != Phase::forward || op.layer < 2) continue;
    EXPECT_EQ(op_at(ops, op.waits[0]).layer, op.layer - 2);  // the cast ahead of the gather
    EXPECT_GT(op_at(ops, op.waits[0]).freed, Bytes(0));
    ++checked;
  }
  EXPECT_EQ(checked, 4);
}

TEST(FullShard, BackwardGathersTheLayerBeforeAheadOfTheOneThatRuns) {
  const Program program = build_program(small_gpt(), step_of(test::fsdp(), 4));
  std::vector<int> gathered;
  for (const ProgramOp& op : program.stages[0].ops) {
    const bool gather = op.kind == OpKind::all_gather && op.phase == Phase::backward;
    if (gather) gathered.push_back(op.layer);
    const bool runs = op.kind == OpKind::kernels && op.stream == StreamKind::compute &&
                      op.phase == Phase::backward && op.layer > 0;
    if (runs) {
      ASSERT_FALSE(gathered.empty());
      EXPECT_EQ(gathered.back(), op.layer - 1);
    }
  }
  EXPECT_EQ(gathered, (std::vector<int>{5, 4, 3, 2, 1, 0}));
}

TEST(Ddp, BucketsCloseWithTheTensorThatFillsThem) {
  StepOptions step = step_of(test::hf_eager(), 4);
  const ModelGraph graph = build_model_graph(test::gpt2_large(), step);
  const int end = static_cast<int>(graph.order.size());
  const auto buckets = gradient_buckets(graph, step, 0, end, true);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    sum += buckets[i].parameters;
    EXPECT_LE(buckets[i].ready, buckets[i].first);
    if (i > 0) {
      EXPECT_LE(buckets[i].first, buckets[i - 1].ready);
    }
    const Bytes limit = i == 0 ? step.data_parallel.first_bucket : step.data_parallel.bucket;
    if (i + 1 < buckets.size()) {
      EXPECT_GE(Bytes(2 * buckets[i].parameters), limit);
    }
  }
  EXPECT_EQ(sum, graph.parameters());
  EXPECT_GT(buckets.size(), 30u);  // 1.5 GB of bf16 in 25 MiB; a feed-forward matrix has 13 MB
}

TEST(Ddp, BucketsAreSummedBesideTheLastBackwardOnly) {
  const Program program = build_program(test::gpt2_large(), step_of(test::hf_eager(), 4, 2));
  int reductions = 0;
  bool backward_follows = false;
  const std::vector<ProgramOp>& ops = program.stages[0].ops;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind == OpKind::all_reduce && ops[i].group == GroupKind::data) ++reductions;
    if (reductions == 0 || ops[i].phase != Phase::backward) continue;
    EXPECT_EQ(ops[i].micro_batch, 1);
    backward_follows = true;
  }
  EXPECT_GT(reductions, 30);
  EXPECT_TRUE(backward_follows);
}

/// Two pipeline stages or more of Megatron's distributed optimizer, everything overlapped.
StepOptions aligned_pipeline(int stages, int chunks, int micro_batches) {
  FrameworkProfile framework = test::megatron();
  framework.data_parallel = {.sharding = Sharding::optimizer,
                             .overlap_gradients = true,
                             .align_gradients = true,
                             .overlap_parameters = true,
                             .bucket = 1_MiB,
                             .first_bucket = 1_MiB};
  StepOptions step = step_of(framework, 4, micro_batches);
  step.layout.pipeline = stages;
  step.layout.virtual_stages = chunks;
  if (chunks > 1) step.schedule = PipelineSchedule::interleaved_1f1b;
  return step;
}

/// Backward passes of `stage` that end ahead of each sum of gradients.
std::vector<int> passes_ahead_of_sums(const Program& program, std::size_t stage) {
  const RankProgram& rank = program.stages[stage];
  std::vector<int> passes;
  for (std::size_t i = 0; i < rank.ops.size(); ++i) {
    if (rank.ops[i].kind != OpKind::reduce_scatter) continue;
    passes.push_back(static_cast<int>(std::ranges::count_if(rank.passes, [&](const PassSpan& span) {
      return span.part == PassPart::backward && span.end <= static_cast<std::int64_t>(i);
    })));
  }
  return passes;
}

TEST(AlignedGradients, OfLaterStagesAreSummedInOnePieceBehindTheirLastPass) {
  const Program program = build_program(small_gpt(), aligned_pipeline(3, 1, 4));
  const std::vector<int> first = passes_ahead_of_sums(program, 0);
  EXPECT_GT(first.size(), 4u);  // two layers of 3 MB and the embedding, in buckets of 1 MiB
  EXPECT_EQ(first.front(), 3);  // beside the last of four
  EXPECT_EQ(passes_ahead_of_sums(program, 1), std::vector<int>{4});
  EXPECT_EQ(passes_ahead_of_sums(program, 2), std::vector<int>{4});
}

/// Backward runs chunks 2, 1 and 0 for two micro-batches at a time: the chunks' last passes are
/// numbers 8, 10 and 12 of 12, and stage s starts a chunk's sums s passes later.
TEST(AlignedGradients, OfModelChunksStartAtTheSamePassOnAllStages) {
  const Program program = build_program(small_gpt(), aligned_pipeline(2, 3, 4));
  EXPECT_EQ(passes_ahead_of_sums(program, 1), (std::vector<int>{9, 11, 12}));
  const std::vector<int> first = passes_ahead_of_sums(program, 0);
  EXPECT_EQ(first[0], 8);
  EXPECT_EQ(first[1], 10);
  for (std::size_t i = 2; i < first.size(); ++i) EXPECT_EQ(first[i], 12);
}

TEST(AlignedGradients, SumAsMuchAsOthers) {
  for (const int chunks : {1, 3}) {
    StepOptions step = aligned_pipeline(2, chunks, 4);
    const Program aligned = build_program(small_gpt(), step);
    step.data_parallel.align_gradients = false;
    const Program independent = build_program(small_gpt(), step);
    for (const int stage : {0, 1})
      EXPECT_NEAR(sent_bytes(aligned, stage) / sent_bytes(independent, stage), 1, 1e-12);
  }
}

TEST(OverlappedParameters, AreGatheredFromTheStartOfAStep) {
  const Program program = build_program(small_gpt(), aligned_pipeline(2, 1, 4));
  for (const RankProgram& rank : program.stages) {
    const auto is_communication = [](const ProgramOp& op) { return op.kind != OpKind::kernels; };
    const auto first = std::ranges::find_if(rank.ops, is_communication);
    EXPECT_EQ(first->kind, OpKind::all_gather);
  }
}

TEST(Sharding, GroupsHaveToDivideTheRanks) {
  StepOptions step = step_of(test::fsdp(), 6);
  step.data_parallel.shard_group = 4;
  EXPECT_NE(test::refusal(small_gpt(), step), "");
}

}  // namespace
}  // namespace tessera
