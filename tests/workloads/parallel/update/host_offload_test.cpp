// Layers whose saved activations wait in host memory.
#include "workloads/parallel/update/host_offload.h"

#include <map>

#include <gtest/gtest.h>

#include "tests/workloads/models.h"
#include "workloads/memory/memory_profile.h"
#include "workloads/model_graph.h"
#include "workloads/program/program.h"

namespace tessera {
namespace {

constexpr int kLayers = 8, kWaiting = 4, kMicroBatches = 2;

StepOptions step_with(int waiting) {
  StepOptions step =
      test::in(Precision::bf16, test::single_gpu(test::megatron(), StepMode::training, 1, 1024));
  step.offload_layers = waiting;
  step.global_batch = kMicroBatches;
  return step;
}

ModelSpec model() {
  ModelSpec model = test::llama2_7b();
  model.layers = kLayers;
  return model;
}

TEST(HostOffload, CopiesWhatALayerSavedOutAndBackOncePerMicroBatch) {
  const Program program = build_program(model(), step_with(kWaiting));
  const Bytes saved = build_model_graph(model(), step_with(kWaiting)).blocks[1].saved;
  std::map<std::pair<OpKind, int>, int> copies;
  for (const ProgramOp& op : program.stages[0].ops) {
    if (!is_copy(op.kind)) continue;
    EXPECT_EQ(op.bytes, saved);
    EXPECT_EQ(op.kind == OpKind::copy_out ? op.freed : op.allocated, saved);
    ++copies[{op.kind, op.layer}];
  }
  EXPECT_EQ(copies.size(), 2U * kWaiting);
  for (const auto& [what, count] : copies) {
    EXPECT_LT(what.second, kWaiting);
    EXPECT_EQ(count, kMicroBatches);
  }
}

TEST(HostOffload, KernelsOfTheNextWindowWaitForACopy) {
  // Four of eight layers: a window of two layers for each. Layer 2 waits for the copy of layer 0.
  const Program program = build_program(model(), step_with(kWaiting));
  const std::vector<ProgramOp>& ops = program.stages[0].ops;
  const auto awaited_by = [&](OpKind kind, Phase phase, int layer) {
    for (const ProgramOp& op : ops) {
      if (op.kind != OpKind::kernels || op.layer != layer || op.phase != phase) continue;
      for (const std::int32_t wait : op.waits)
        if (wait >= 0 && ops[static_cast<std::size_t>(wait)].kind == kind)
          return ops[static_cast<std::size_t>(wait)].layer;
      return -1;
    }
    return -1;
  };
  EXPECT_EQ(awaited_by(OpKind::copy_out, Phase::forward, 2), 0);
  EXPECT_EQ(awaited_by(OpKind::copy_out, Phase::forward, 4), 1);
  EXPECT_EQ(awaited_by(OpKind::copy_in, Phase::backward, 3), 3);
  EXPECT_EQ(awaited_by(OpKind::copy_in, Phase::backward, 0), 0);
}

/// The allocator reserves what it holds at most, so it has to see tensors leave and come back. All
/// four are away during the loss; of a window of two layers the last comes back as backward starts.
TEST(HostOffload, WhatIsOnTheHostTakesNoMemoryOfTheDevice) {
  const Program all_here = build_program(model(), step_with(0));
  const Program program = build_program(model(), step_with(kWaiting));
  const Bytes saved = build_model_graph(model(), step_with(kWaiting)).blocks[1].saved;
  const MemoryProfile here = profile_memory(all_here, 0, {});
  const MemoryProfile there = profile_memory(program, 0, {});
  EXPECT_LE(there.peak, here.peak - 3 * saved);
  EXPECT_GE(there.peak, here.peak - kWaiting * saved);
  EXPECT_LE(there.reserved, here.reserved - 3 * saved);
  EXPECT_EQ(there.over_ops.back().afterwards.all(), here.over_ops.back().afterwards.all());
}

TEST(HostOffload, WithoutLayersCopiesNothing) {
  const Program program = build_program(model(), step_with(0));
  for (const ProgramOp& op : program.stages[0].ops) EXPECT_FALSE(is_copy(op.kind));
}

}  // namespace
}  // namespace tessera
