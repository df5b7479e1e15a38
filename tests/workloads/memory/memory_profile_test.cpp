#include "workloads/memory/memory_profile.h"

#include <gtest/gtest.h>

#include "tests/workloads/models.h"
#include "workloads/memory/memory_replay.h"
#include "workloads/model_graph.h"

namespace tessera {
namespace {

StepOptions pipelined(int tensor, int pipeline, PipelineSchedule schedule) {
  StepOptions step = test::single_gpu(test::megatron(), StepMode::training, 1, 256);
  step = test::in(Precision::bf16, step);
  step.layout = {.tensor = tensor, .pipeline = pipeline, .data = 1};
  step.global_batch = 6;
  step.schedule = schedule;
  return step;
}

/// Highest memory by the figures that the engine's ledger uses.
Bytes ledger_peak(const Program& program, const RankProgram& stage) {
  Bytes used = stage.static_memory;
  Bytes peak = used;
  for (const ProgramOp& op : stage.ops) {
    if (op.kind != OpKind::kernels) continue;
    const Segment& segment = program.segment(op.segment);
    peak = std::max(peak, used + segment.peak_above_start);
    used += segment.net_memory;
  }
  return peak;
}

TEST(MemoryProfile, HasTheLedgersPeakToTheByte) {
  for (const auto schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b}) {
    const Program program = build_program(test::gpt2_large(), pipelined(2, 4, schedule));
    for (const RankProgram& stage : program.stages) {
      const MemoryProfile profile = profile_memory(program, stage.stage, {});
      EXPECT_EQ(profile.peak, ledger_peak(program, stage)) << stage.stage;
      EXPECT_EQ(profile.at_peak.total(), profile.peak);
      EXPECT_EQ(peak_memory(program, stage.stage, {}).all(), profile.at_peak.all());
    }
  }
}

TEST(MemoryProfile, KnowsEveryFamilyInEveryMode) {
  for (const ModelSpec& model : {test::gpt2_large(), test::opt_1_3b(), test::bert_large(),
                                 test::llama2_7b(), test::switch_xl4()}) {
    for (const StepMode mode :
         {StepMode::training, StepMode::forward_backward, StepMode::inference}) {
      const Program program =
          build_program(model, test::single_gpu(test::hf_eager(), mode, 2, 128));
      const MemoryProfile profile = profile_memory(program, 0, {});
      EXPECT_EQ(profile.peak, ledger_peak(program, program.stages[0])) << model.name;
    }
  }
}

/// A head of two outputs leaves no gradient of the table for the embedding to wait for.
TEST(MemoryProfile, KnowsAModelWhoseHeadDoesNotUseTheTiedTable) {
  ModelSpec model = test::bert_large();
  ASSERT_TRUE(model.tied_embeddings);
  model.outputs = 2;
  const Program program =
      build_program(model, test::single_gpu(test::hf_eager(), StepMode::training, 2, 128));
  const MemoryProfile profile = profile_memory(program, 0, {});
  EXPECT_EQ(profile.peak, ledger_peak(program, program.stages[0]));
}

TEST(MemoryProfile, NamesWhatLivesAtThePeak) {
  StepOptions step = pipelined(1, 1, PipelineSchedule::one_f_one_b);
  step.sequence_length = 1024;  // long enough for the peak to be in the loss
  step.micro_batch = step.global_batch = 4;
  const Program program = build_program(test::gpt2_large(), step);
  const MemoryProfile profile = profile_memory(program, 0, {.workspaces = Bytes(1000)});
  EXPECT_EQ(profile.at_peak[MemoryCategory::workspace], Bytes(1000));
  // Logits in bf16 and their fp32 copy, 6 B each, live beside all saved activations.
  Bytes live;
  int attention_outputs = 0;
  for (const LiveMemory& entry : profile.live) {
    live += entry.bytes;
    if (entry.name == "layer.attention.output_copy") attention_outputs = entry.count;
  }
  EXPECT_EQ(attention_outputs, 36);
  EXPECT_EQ(live, profile.at_peak[MemoryCategory::activations] +
                      profile.at_peak[MemoryCategory::temporary]);
  EXPECT_GE(profile.reserved, live);
}

TEST(MemoryProfile, PlannedMemoryReservesThePeak) {
  const Program program =
      build_program(test::gpt2_large(), pipelined(1, 1, PipelineSchedule::one_f_one_b));
  const MemoryProfile cached = profile_memory(program, 0, {});
  const MemoryProfile planned = profile_memory(program, 0, {.planned = true});
  EXPECT_EQ(planned.reserved, planned.peak);
  EXPECT_GT(cached.reserved, cached.peak);
  // Where the device is short of memory, free segments go before new ones come.
  const MemoryProfile tight = profile_memory(program, 0, {.capacity = cached.peak});
  EXPECT_LT(tight.reserved, cached.reserved);
  EXPECT_EQ(reserved_memory(program, 0, {}), cached.reserved);
  EXPECT_EQ(reserved_memory(program, 0, {.capacity = cached.peak}), tight.reserved);
  EXPECT_EQ(reserved_memory(program, 0, {.planned = true}), planned.peak);
}

TEST(MemoryProfile, MptHasNoMaskInEveryLayer) {
  StepOptions step = test::single_gpu(test::fsdp(), StepMode::training, 1, 256);
  step = test::in(Precision::bf16, step);
  const auto buffers = [&] {
    return build_program(test::gpt2_large(), step).stages[0].static_parts[MemoryCategory::buffers];
  };
  const Bytes with = buffers();
  step.framework.mask_buffers = false;
  EXPECT_EQ(with - buffers(), Bytes(36L * 1024 * 1024));  // a byte per pair of 1024 positions
}

/// Profiles leave out micro-batches behind the telling ones, with all that they scatter and add.
TEST(MemoryProfile, OfShardedGradientsDoesNotGrowWithMicroBatches) {
  for (const int expert : {1, 2, 4}) {
    ModelSpec model = test::llama2_7b();
    model.layers = 2;
    model.experts = 4;
    model.experts_per_token = 2;
    StepOptions step = pipelined(1, 1, PipelineSchedule::one_f_one_b);
    step.layout.data = 4;
    step.layout.expert = expert;
    step.data_parallel.sharding = Sharding::parameters;
    step.global_batch = 4 * 3;
    const Bytes peak = profile_memory(build_program(model, step), 0, {}).peak;
    step.global_batch = 4 * 16;
    EXPECT_EQ(profile_memory(build_program(model, step), 0, {}).peak, peak) << expert;
  }
}

TEST(MemoryReplay, FreesEverythingThatItAllocates) {
  const Program program =
      build_program(test::gpt2_large(), pipelined(2, 2, PipelineSchedule::one_f_one_b));
  for (int stage = 0; stage < 2; ++stage) {
    Bytes in_use;
    replay_memory(program, stage, -1, [&](const MemoryStep& step) {
      in_use += step.allocates ? step.allocation.bytes : -step.allocation.bytes;
    });
    EXPECT_EQ(in_use, Bytes());
  }
}

/// Saved bytes of a layer of Megatron in 16 bit with fused softmax.
double saved(std::int64_t hidden, std::int64_t heads, Recompute recompute,
             bool sequence_parallel = false) {
  ModelSpec model = test::gpt3_175b();
  model.hidden = hidden;
  model.heads = model.kv_heads = heads;
  model.head_dim = hidden / heads;
  model.ffn = 4 * hidden;
  model.layers = 2;
  FrameworkProfile framework = test::megatron_local();
  framework.attention = AttentionKernels::fused_softmax;
  StepOptions step =
      test::in(Precision::fp16, test::single_gpu(framework, StepMode::training, 1, 2048));
  step.layout.tensor = 8;
  step.layout.sequence_parallel = sequence_parallel;
  step.recompute = recompute;
  return static_cast<double>(build_model_graph(model, step).blocks[1].saved.value());
}

// Korthikanti et al. 2022, activation memory as a share of that with tensor parallelism alone.
TEST(MemoryProfile, RecomputationSavesWhatKorthikantiMeasured) {
  struct Case {
    std::int64_t hidden, heads;
    double selective, full, sequence, both;
  };
  for (const Case& c :
       {Case{6144, 64, 49.42, 7.64, 66.84, 16.18}, Case{12288, 96, 56.53, 8.71, 62.04, 18.49}}) {
    const double base = saved(c.hidden, c.heads, Recompute::none);
    EXPECT_NEAR(100 * saved(c.hidden, c.heads, Recompute::selective) / base, c.selective, 1);
    EXPECT_NEAR(100 * saved(c.hidden, c.heads, Recompute::full) / base, c.full, 1);
    EXPECT_NEAR(100 * saved(c.hidden, c.heads, Recompute::none, true) / base, c.sequence, 1);
    EXPECT_NEAR(100 * saved(c.hidden, c.heads, Recompute::selective, true) / base, c.both, 1);
  }
}

/// The host has issued everything, and no communication has ended, or all of it has.
LaunchTimes ahead(const Program& program, bool waits) {
  const std::size_t ops = program.stages[0].ops.size();
  const StepLaunches step{.issued = std::vector<Seconds>(ops, Seconds(0)),
                          .communicated = std::vector<Seconds>(ops, Seconds(waits ? 1 : 0))};
  return {.first = step, .later = step, .micro_batches = telling_micro_batches(program.stages[0])};
}

// Every row-split layer's partial sum [s, b, h] is sent to a reduce-scatter, and so is every
// column-split one's gradient; what is gathered is whole too. While no stream is behind its
// collective each needs memory of its own.
TEST(MemoryProfile, WhatAStreamStillUsesIsNobodysYet) {
  StepOptions step = pipelined(4, 1, PipelineSchedule::one_f_one_b);
  step.layout.sequence_parallel = true;
  const ModelSpec model = test::gpt2_large();
  const Program program = build_program(model, step);
  const Bytes in_order = reserved_memory(program, 0, {});
  EXPECT_EQ(reserved_memory(program, 0, {}, ahead(program, false)), in_order);
  const Bytes behind = reserved_memory(program, 0, {}, ahead(program, true));
  const std::int64_t whole = 2L * 256 * model.hidden;
  const int micro_batches = telling_micro_batches(program.stages[0]);
  const std::int64_t at_least = 4L * model.layers * micro_batches * whole;
  EXPECT_GE((behind - in_order).value(), at_least);
  EXPECT_LE((behind - in_order).value(), 4 * at_least);
  // A device that is full waits for the streams; what lies in pieces then takes a segment more.
  const Bytes room = in_order + Bytes(at_least / 8);
  EXPECT_LE(reserved_memory(program, 0, {.capacity = room}, ahead(program, true)), room + 20_MiB);
}

}  // namespace
}  // namespace tessera
