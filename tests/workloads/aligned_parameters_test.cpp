// Gathers of updated parameters that all stages of an interleaved pipeline start together, and
// buckets that grow with the replicas: Megatron-Core, core/pipeline_parallel/schedules.py and
// core/distributed/distributed_data_parallel.py.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/parallel/gradient_buckets.h"
#include "workloads/program/program.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

ModelSpec small_gpt(std::int64_t layers) {
  ModelSpec model = test::gpt2_large();
  model.layers = layers;
  model.hidden = 256;
  model.heads = model.kv_heads = 4;
  model.ffn = 1024;
  model.vocab = 1024;
  return model;
}

/// Megatron's distributed optimizer over two replicas, one bucket per model chunk.
StepOptions interleaved(int stages, int chunks, int micro_batches) {
  StepOptions step = test::single_gpu(test::megatron(), StepMode::training, 1, 128);
  step.layout.data = 2;
  step.layout.pipeline = stages;
  step.layout.virtual_stages = chunks;
  step.global_batch = std::int64_t{2} * micro_batches;
  step.schedule = PipelineSchedule::interleaved_1f1b;
  step.data_parallel = step.framework.data_parallel;
  step.data_parallel.sharding = Sharding::optimizer;
  step.data_parallel.overlap_parameters = step.data_parallel.align_parameters = true;
  return test::in(Precision::bf16, step);
}

/// Forward passes of the stage that end ahead of each of its gathers.
std::vector<int> passes_ahead_of_gathers(const RankProgram& rank) {
  std::vector<int> passes;
  for (std::size_t i = 0; i < rank.ops.size(); ++i) {
    if (rank.ops[i].kind != OpKind::all_gather) continue;
    passes.push_back(static_cast<int>(std::ranges::count_if(rank.passes, [&](const PassSpan& span) {
      return span.part == PassPart::forward && span.end <= static_cast<std::int64_t>(i);
    })));
  }
  return passes;
}

/// The first stage begins chunk c with its pass number c * stages; chunk c + 1 is gathered then, by
/// stage s ahead of its pass number c * stages - s, which runs at that time.
TEST(AlignedParameters, OfAModelChunkAreGatheredAtTheSameTimeOnAllStages) {
  const Program program = build_program(small_gpt(16), interleaved(4, 4, 8));
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(passes_ahead_of_gathers(program.stages[static_cast<std::size_t>(stage)]),
              (std::vector<int>{0, 0, 4 - stage, 8 - stage}))
        << stage;
  }
}

/// Else a stage starts a chunk's gather with the chunk's first pass, and the first at the start.
TEST(AlignedParameters, AreOtherwiseGatheredByEachStageForItself) {
  StepOptions step = interleaved(4, 4, 8);
  step.data_parallel.align_parameters = false;
  const Program program = build_program(small_gpt(16), step);
  for (const RankProgram& rank : program.stages)
    EXPECT_EQ(passes_ahead_of_gathers(rank), (std::vector<int>{0, 4, 8, 12}));
}

TEST(AlignedParameters, AreAsManyAsOthers) {
  const auto gathered = [](const Program& program) {
    std::vector<Bytes> sums;
    for (const RankProgram& rank : program.stages) {
      sums.emplace_back();
      for (const ProgramOp& op : rank.ops) {
        if (op.kind == OpKind::all_gather) sums.back() += op.bytes;
      }
    }
    return sums;
  };
  for (const int chunks : {2, 3}) {
    StepOptions step = interleaved(2, chunks, 4);
    step.data_parallel.bucket = step.data_parallel.first_bucket = 1_MiB;
    const std::vector<Bytes> aligned = gathered(build_program(small_gpt(12), step));
    step.data_parallel.align_parameters = false;
    EXPECT_EQ(aligned, gathered(build_program(small_gpt(12), step))) << chunks;
    EXPECT_GT(aligned[0], Bytes(0));
  }
}

std::string error_of(const StepOptions& step) {
  return test::refusal(small_gpt(16), step);
}

TEST(AlignedParameters, NeedOverlapAndTheInterleavedSchedule) {
  StepOptions alone = interleaved(4, 4, 8);
  alone.data_parallel.overlap_parameters = false;
  EXPECT_THAT(error_of(alone), HasSubstr("training.data_parallel.align_parameters: is for gathers "
                                         "beside forward: overlap_parameters is off"));
  StepOptions plain = interleaved(4, 1, 8);
  plain.schedule = PipelineSchedule::one_f_one_b;
  EXPECT_THAT(error_of(plain), HasSubstr("align_parameters: is for the interleaved schedule"));
  EXPECT_EQ(error_of(interleaved(4, 4, 8)), "");
}

std::vector<std::int64_t> bucket_sizes(const DataParallel& data_parallel, int replicas) {
  StepOptions step = test::single_gpu(test::megatron(), StepMode::training, 1, 128);
  step.layout.data = replicas;
  step.global_batch = replicas;
  step.data_parallel = data_parallel;
  step = test::in(Precision::bf16, step);
  const ModelSpec model = small_gpt(16);
  const ModelGraph graph = build_model_graph(model, step);
  std::vector<std::int64_t> sizes;
  const int positions = static_cast<int>(graph.order.size());
  for (const GradientBucket& bucket : gradient_buckets(graph, step, 0, positions, true))
    sizes.push_back(bucket.parameters);
  return sizes;
}

/// 64 KiB per replica are 1 MiB of 16 of them.
TEST(Buckets, GrowWithTheReplicasBeyondTheirLeastSize) {
  const DataParallel fixed{.bucket = 1_MiB, .first_bucket = 1_MiB};
  const DataParallel twice{.bucket = 2_MiB, .first_bucket = 2_MiB};
  DataParallel growing = fixed;
  growing.bucket_per_replica = 64_KiB;
  for (const int replicas : {1, 8, 16})
    EXPECT_EQ(bucket_sizes(growing, replicas), bucket_sizes(fixed, replicas)) << replicas;
  EXPECT_EQ(bucket_sizes(growing, 32), bucket_sizes(twice, 32));
  EXPECT_LT(bucket_sizes(growing, 32).size(), bucket_sizes(fixed, 32).size());
}

/// A million parameters per replica, 40 million at least; fp32 gradients.
TEST(Buckets, OfMegatronHoldMoreThanFortyMillionParametersBeyondFortyReplicas) {
  const DataParallel megatron = test::megatron().data_parallel;
  EXPECT_EQ(megatron.bucket_per_replica.value() * 40, megatron.bucket.value());
}

}  // namespace
}  // namespace tessera
