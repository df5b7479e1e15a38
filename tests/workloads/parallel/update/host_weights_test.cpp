// Weights that live in host memory (StepOptions::offload_parameters): what travels, and when.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/workloads/models.h"
#include "workloads/program/program.h"

namespace tessera {
namespace {

constexpr std::int64_t kLayers = 2;
/// Of llama-2-7b: attention, gated feed-forward, two norms.
constexpr std::int64_t kLayer = 4L * 4096 * 4096 + 3L * 4096 * 11008 + 2L * 4096;
/// Embedding, head, last norm.
constexpr std::int64_t kRoot = 2L * 32000 * 4096 + 4096;
constexpr std::int64_t kAll = kLayers * kLayer + kRoot;

ModelSpec model() {
  ModelSpec model = test::llama2_7b();
  model.layers = kLayers;
  return model;
}

/// FSDP2: weights of 4 bytes, cast to bf16 ahead of their gather; gradients summed in fp32.
StepOptions fully_sharded(int replicas, int micro_batches = 1) {
  StepOptions step = test::single_gpu(test::hf_eager(), StepMode::training, 1, 256);
  step.framework.copies_gathered = true;
  step.precision = Precision::bf16;
  step.formats = {.parameters = Precision::fp32,
                  .gradients = Precision::fp32,
                  .reduce = Precision::fp32,
                  .optimizer_states = Precision::fp32};
  step.layout.data = replicas;
  step.global_batch = std::int64_t{micro_batches} * replicas;
  step.data_parallel.sharding = Sharding::parameters;
  step.data_parallel.reduce_each_micro_batch = true;
  step.offload_optimizer = step.offload_parameters = true;
  return step;
}
/// DeepSpeed's ZeRO-3: weights of 2 bytes.
StepOptions zero_3(int replicas, int micro_batches = 1) {
  StepOptions step = fully_sharded(replicas, micro_batches);
  step.framework.copies_gathered = false;
  step.formats = test::with_masters(Precision::bf16, Precision::bf16);
  return step;
}

std::int64_t copied(const Program& program, OpKind kind) {
  std::int64_t bytes = 0;
  for (const ProgramOp& op : program.stages[0].ops)
    if (op.kind == kind) bytes += op.bytes.value();
  return bytes;
}
std::int64_t count(const Program& program, OpKind kind) {
  return std::ranges::count(program.stages[0].ops, kind, &ProgramOp::kind);
}

TEST(HostWeights, LeaveNothingOfTheModelOnTheGpu) {
  for (const StepOptions& step : {fully_sharded(4), zero_3(4), zero_3(1)}) {
    const Program program = build_program(model(), step);
    for (const auto category :
         {MemoryCategory::parameters, MemoryCategory::gradients, MemoryCategory::optimizer})
      EXPECT_EQ(program.stages[0].static_parts[category], Bytes(0));
  }
}

// A layer's shard comes ahead of its forward and of its backward pass, the root unit's once: it
// stays in between. Nothing comes back behind the update.
TEST(HostWeights, AShardComesAheadOfEveryGatherAsTheHostHoldsIt) {
  constexpr std::int64_t kFetched = 2 * kLayers * kLayer + kRoot;
  const Program fsdp = build_program(model(), fully_sharded(4));
  EXPECT_EQ(copied(fsdp, OpKind::copy_in), 4 * kFetched / 4);
  EXPECT_EQ(count(fsdp, OpKind::copy_in), count(fsdp, OpKind::all_gather));
  EXPECT_EQ(copied(build_program(model(), zero_3(4)), OpKind::copy_in), 2 * kFetched / 4);
}

TEST(HostWeights, GradientsGoDownInFp32) {
  EXPECT_EQ(copied(build_program(model(), fully_sharded(4)), OpKind::copy_out), 4 * kAll / 4);
  EXPECT_EQ(copied(build_program(model(), zero_3(4)), OpKind::copy_out), 4 * kAll / 4);
}

TEST(HostWeights, OfOneGpuComeWholeAndAreNotGathered) {
  const Program program = build_program(model(), zero_3(1));
  EXPECT_EQ(copied(program, OpKind::copy_in), 2 * (2 * kLayers * kLayer + kRoot));
  EXPECT_EQ(count(program, OpKind::all_gather), 0);
}

// Three micro-batches: DeepSpeed's sums come back to be added to, twice, in bf16; under FSDP2 the
// CPU adds, 12 bytes a number, twice.
TEST(HostWeights, TheCpuAddsWhatFsdpBringsAndDeepSpeedsGpuWhatComesBack) {
  constexpr std::int64_t kShard = kAll / 4;
  const auto weights = [](const StepOptions& step, std::int64_t bytes) {
    StepOptions once = step;
    once.global_batch = once.layout.data;
    return 3 * copied(build_program(model(), once), OpKind::copy_in) + bytes;
  };
  const auto moved = [](const Program& program) {
    std::int64_t bytes = 0;
    for (const ProgramOp& op : program.stages[0].ops)
      if (op.stream == StreamKind::host) bytes += program.segment(op.segment).host_moved.value();
    return bytes;
  };
  const Program zero = build_program(model(), zero_3(4, 3));
  const Program fsdp = build_program(model(), fully_sharded(4, 3));
  EXPECT_EQ(copied(zero, OpKind::copy_in), weights(zero_3(4), 2 * 2 * kShard));
  EXPECT_EQ(copied(fsdp, OpKind::copy_in), weights(fully_sharded(4), 0));
  EXPECT_EQ(copied(fsdp, OpKind::copy_out), 3 * 4 * kShard);
  const std::int64_t update = moved(build_program(model(), fully_sharded(4)));
  EXPECT_EQ(moved(fsdp), update + 2 * 12 * kShard);
}

// The host runs ahead: a layer's copy waits for nothing but its turn, its gather for the copy.
TEST(HostWeights, AGatherWaitsForItsCopy) {
  const Program program = build_program(model(), zero_3(4));
  const std::vector<ProgramOp>& ops = program.stages[0].ops;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind != OpKind::all_gather) continue;
    EXPECT_EQ(ops[i].waits[0], static_cast<std::int32_t>(i) - 1);
    EXPECT_EQ(ops[i - 1].kind, OpKind::copy_in);
    EXPECT_EQ(ops[i].freed, ops[i - 1].allocated);  // the shard is free behind its gather
  }
}

TEST(HostWeights, TheAllocatorEndsAsItBegan) {
  for (const StepOptions& step :
       {fully_sharded(4, 2), fully_sharded(1, 2), zero_3(4, 2), zero_3(1, 2)}) {
    const Program program = build_program(model(), step);
    std::int64_t left = 0;
    for (const ProgramOp& op : program.stages[0].ops) {
      left += (op.allocated - op.freed).value();
      if (op.kind == OpKind::kernels) left += program.segment(op.segment).net_memory.value();
    }
    EXPECT_EQ(left, 0);
  }
}

}  // namespace
}  // namespace tessera
