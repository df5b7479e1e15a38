// Frozen weights that data-parallel ranks divide (FSDP, ZeRO-3): gathered with the adapters beside
// them, and neither summed nor updated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/program/program.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kLayers = 2, kRanks = 4, kRank = 16;
/// Of llama-2-7b: attention, gated feed-forward, two norms.
constexpr std::int64_t kLayer = 4L * 4096 * 4096 + 3L * 4096 * 11008 + 2L * 4096;
/// Embedding, head, last norm.
constexpr std::int64_t kRoot = 2L * 32000 * 4096 + 4096;
/// Two factors beside each of seven matrices.
constexpr std::int64_t kAdapters = kRank * (4L * (4096 + 4096) + 3L * (4096 + 11008));

ModelSpec model() {
  ModelSpec model = test::llama2_7b();
  model.layers = kLayers;
  return model;
}

/// All in bf16, Adam's moments in fp32.
StepOptions sharded(Sharding sharding) {
  StepOptions step = test::single_gpu(test::hf_eager(), StepMode::training, 1, 256);
  step.precision = Precision::bf16;
  step.formats = {.parameters = Precision::bf16,
                  .gradients = Precision::bf16,
                  .reduce = Precision::bf16,
                  .optimizer_states = Precision::fp32};
  step.layout.data = kRanks;
  step.global_batch = kRanks;
  step.data_parallel.sharding = sharding;
  step.lora_rank = kRank;
  return step;
}

std::int64_t moved(const Program& program, OpKind kind) {
  std::int64_t bytes = 0;
  for (const ProgramOp& op : program.stages[0].ops)
    if (op.kind == kind) bytes += op.bytes.value();
  return bytes;
}

TEST(ShardedAdapters, ARankHoldsItsShareOfFrozenWeights) {
  const Program program = build_program(model(), sharded(Sharding::parameters));
  const CategoryBytes& held = program.stages[0].static_parts;
  EXPECT_EQ(held[MemoryCategory::buffers], Bytes(2 * (kLayers * kLayer + kRoot) / kRanks));
  EXPECT_EQ(held[MemoryCategory::parameters], Bytes(2 * kLayers * kAdapters / kRanks));
  EXPECT_EQ(held[MemoryCategory::gradients], Bytes(2 * kLayers * kAdapters / kRanks));
  EXPECT_EQ(held[MemoryCategory::optimizer], Bytes(8 * kLayers * kAdapters / kRanks));
}

// A layer's weights and adapters twice, ahead of forward and of backward; the root unit's once.
TEST(ShardedAdapters, FrozenWeightsAreGatheredWithWhatIsTrained) {
  const Program program = build_program(model(), sharded(Sharding::parameters));
  EXPECT_EQ(moved(program, OpKind::all_gather), 2 * (2 * kLayers * (kLayer + kAdapters) + kRoot));
}

TEST(ShardedAdapters, GradientsOfAdaptersAloneAreSummed) {
  const Program program = build_program(model(), sharded(Sharding::parameters));
  EXPECT_EQ(moved(program, OpKind::reduce_scatter), 2 * kLayers * kAdapters);
}

// ZeRO-2 divides what is trained: every rank holds all frozen weights.
TEST(ShardedAdapters, Zero2LeavesFrozenWeightsWhole) {
  const Program program = build_program(model(), sharded(Sharding::gradients));
  EXPECT_EQ(program.stages[0].static_parts[MemoryCategory::buffers],
            Bytes(2 * (kLayers * kLayer + kRoot)));
  EXPECT_EQ(moved(program, OpKind::all_gather), 2 * kLayers * kAdapters);
}

// With weights in host memory the frozen ones are there, too, and come as often as they are read.
TEST(ShardedAdapters, FrozenWeightsInHostMemoryAreFetchedAheadOfTheirGathers) {
  StepOptions step = sharded(Sharding::parameters);
  step.offload_optimizer = step.offload_parameters = true;
  const Program program = build_program(model(), step);
  EXPECT_EQ(program.stages[0].static_parts[MemoryCategory::buffers], Bytes(0));
  EXPECT_EQ(moved(program, OpKind::copy_in),
            2 * (2 * kLayers * (kLayer + kAdapters) + kRoot) / kRanks);
}

TEST(ShardedAdapters, AreNotRefused) {
  for (const Sharding sharding : {Sharding::gradients, Sharding::parameters})
    EXPECT_EQ(test::refusal(model(), sharded(sharding)), "");
  StepOptions fp8 = sharded(Sharding::parameters);
  fp8.precision = Precision::fp8;
  fp8.data_parallel.gather_fp8 = true;
  EXPECT_THAT(test::refusal(model(), fp8), HasSubstr("of frozen weights"));
}

}  // namespace
}  // namespace tessera
