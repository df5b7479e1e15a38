// Updates by the CPU: what travels, what it works on and what stays on the GPU.
#include "workloads/parallel/update/host_update.h"

#include <gtest/gtest.h>

#include "tests/workloads/models.h"
#include "workloads/memory/memory_profile.h"
#include "workloads/program/program.h"

namespace tessera {
namespace {

ModelSpec model() {
  ModelSpec model = test::llama2_7b();
  model.layers = 2;
  return model;
}

/// DeepSpeed's engine in bf16: 16-bit weights and gradients, fp32 states and master weights.
StepOptions offloaded(int replicas, Sharding sharding, int micro_batches = 1) {
  StepOptions step = test::single_gpu(test::hf_eager(), StepMode::training, 1, 512);
  step.precision = Precision::bf16;
  step.formats = test::with_masters(Precision::bf16, Precision::bf16);
  step.layout.data = replicas;
  step.global_batch = std::int64_t{micro_batches} * replicas;
  step.data_parallel = step.framework.data_parallel;
  step.data_parallel.sharding = sharding;
  step.offload_optimizer = true;
  return step;
}

std::int64_t copied(const Program& program, OpKind kind) {
  std::int64_t bytes = 0;
  for (const ProgramOp& op : program.stages[0].ops)
    if (op.kind == kind) bytes += op.bytes.value();
  return bytes;
}
std::int64_t moved(const Program& program) {
  std::int64_t bytes = 0;
  for (const Segment& segment : program.segments) bytes += segment.host_moved.value();
  return bytes;
}
Bytes held(const Program& program, MemoryCategory category) {
  return program.stages[0].static_parts[category];
}

TEST(HostUpdate, StatesAndGradientsLiveInHostMemory) {
  const Program program = build_program(model(), offloaded(1, Sharding::none));
  EXPECT_EQ(held(program, MemoryCategory::optimizer), Bytes(0));
  EXPECT_EQ(held(program, MemoryCategory::gradients), Bytes(0));
  EXPECT_EQ(held(program, MemoryCategory::parameters), Bytes(2 * program.parameters));
}

TEST(HostUpdate, GradientsGoDownAndWeightsComeBackInFp32) {
  const Program program = build_program(model(), offloaded(1, Sharding::none));
  EXPECT_EQ(copied(program, OpKind::copy_out), 4 * program.parameters);
  EXPECT_EQ(copied(program, OpKind::copy_in), 4 * program.parameters);
  // Gradients: 4 read, 8 to clip them; weight and two moments of 4, each way.
  EXPECT_EQ(moved(program), (12 + 3 * 8) * program.parameters);
}

TEST(HostUpdate, WithoutClippingGradientsAreReadOnce) {
  StepOptions step = offloaded(1, Sharding::none);
  step.clip_gradients = false;
  const Program program = build_program(model(), step);
  EXPECT_EQ(moved(program), (4 + 3 * 8) * program.parameters);
}

TEST(HostUpdate, LaterMicroBatchesBringTheSumBackAndTakeItAgain) {
  const Program program = build_program(model(), offloaded(1, Sharding::none, 3));
  // In 16 bit behind the first two, in fp32 behind the last; 16 bit back ahead of two additions.
  EXPECT_EQ(copied(program, OpKind::copy_out), (2 + 2 + 4) * program.parameters);
  EXPECT_EQ(copied(program, OpKind::copy_in), (2 + 2 + 4) * program.parameters);
}

TEST(HostUpdate, ReplicasUpdateTheirShards) {
  constexpr int kReplicas = 4;
  const Program whole = build_program(model(), offloaded(kReplicas, Sharding::parameters));
  const double shard = static_cast<double>(whole.parameters) / kReplicas;
  EXPECT_NEAR(static_cast<double>(copied(whole, OpKind::copy_out)), 4.0 * shard, 1e-4 * shard);
  EXPECT_NEAR(static_cast<double>(copied(whole, OpKind::copy_in)), 2.0 * shard, 1e-4 * shard);
  // ZeRO-1 holds all gradients, and takes its shard of the sums behind backward.
  const Program states = build_program(model(), offloaded(kReplicas, Sharding::optimizer));
  EXPECT_EQ(held(states, MemoryCategory::gradients), Bytes(2 * states.parameters));
  EXPECT_NEAR(static_cast<double>(copied(states, OpKind::copy_out)), 4.0 * shard, 1e-4 * shard);
}

TEST(HostUpdate, TheCpuWaitsForTheLastGradientsAndTheWeightsForTheCpu) {
  const Program program = build_program(model(), offloaded(1, Sharding::none));
  const std::vector<ProgramOp>& ops = program.stages[0].ops;
  std::int32_t last_out = -1, update = -1, first_in = -1;
  for (std::int32_t i = 0; i < std::ssize(ops); ++i) {
    const ProgramOp& op = ops[static_cast<std::size_t>(i)];
    if (op.kind == OpKind::copy_out) last_out = i;
    if (op.stream == StreamKind::host) update = i;
    if (op.kind == OpKind::copy_in && first_in < 0) first_in = i;
  }
  ASSERT_GE(update, 0);
  EXPECT_EQ(ops[static_cast<std::size_t>(update)].waits[0], last_out);
  EXPECT_EQ(ops[static_cast<std::size_t>(first_in)].waits[0], update);
}

TEST(HostUpdate, TheAllocatorEndsAsItBegan) {
  for (const int replicas : {1, 4}) {
    for (const Sharding sharding :
         {Sharding::optimizer, Sharding::gradients, Sharding::parameters}) {
      const Program program = build_program(model(), offloaded(replicas, sharding, 2));
      std::int64_t left = 0;
      for (const ProgramOp& op : program.stages[0].ops) {
        left += (op.allocated - op.freed).value();
        if (op.kind == OpKind::kernels) left += program.segment(op.segment).net_memory.value();
      }
      EXPECT_EQ(left, 0) << replicas << " replicas, sharding " << static_cast<int>(sharding);
    }
  }
}

}  // namespace
}  // namespace tessera
