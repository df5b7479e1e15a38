// How long the engine takes for a step. SimGrid allows one simulation per process, so every
// iteration runs in a fork, which reports the time of its simulation alone (manual time).
#include <chrono>
#include <stdexcept>
#include <string>

#include <benchmark/benchmark.h>

#include "sim/engine/engine.h"
#include "sim/process/forked_call.h"
#include "tests/sim/engine/program_builder.h"

namespace tessera::test {
namespace {

constexpr std::int64_t kMegabyte = 1'000'000;

SegmentCosts launch_of(Seconds host_time) {
  SegmentCosts costs;
  costs.host_time = host_time;
  costs.peak_above_start = 100_MiB;
  return costs;
}

/// `ops` alternating segments and all-reduces per GPU on one node of `layout.tensor` GPUs.
TimedProgram tensor_parallel_step(int gpus, int ops) {
  ProgramBuilder builder({.tensor = gpus, .pipeline = 1, .data = 1});
  for (int i = 0; i < ops / 2; ++i) {
    builder.kernels(0, 500_us, kNoWaits, launch_of(100_us));
    builder.all_reduce(0, GroupKind::tensor, Bytes(20 * kMegabyte), StreamKind::compute);
  }
  return builder.build();
}

/// Micro-batches through a pipeline, then a gradient all-reduce that meets the last messages.
TimedProgram pipeline_step(const ParallelLayout& layout, int micro_batches, int segments) {
  ProgramBuilder builder(layout);
  for (int stage = 0; stage < layout.pipeline; ++stage) {
    for (int i = 0; i < micro_batches; ++i) {
      std::int32_t computed = -1;
      if (stage > 0) computed = builder.recv(stage, stage - 1, i, Bytes(10 * kMegabyte));
      for (int segment = 0; segment < segments; ++segment) {
        computed = builder.kernels(stage, 300_us, {computed, -1}, launch_of(50_us));
        builder.all_reduce(stage, GroupKind::tensor, Bytes(20 * kMegabyte), StreamKind::compute);
      }
      if (stage < layout.pipeline - 1) {
        builder.send(stage, stage + 1, i, Bytes(10 * kMegabyte), {computed, -1});
      }
    }
    builder.all_reduce(stage, GroupKind::data, Bytes(500 * kMegabyte), StreamKind::data_comm);
  }
  return builder.on(switched_node(layout.world_size()));
}

/// 64 layers whose gradients are reduced over all GPUs while the next layer computes, on nodes of
/// eight with a NIC per GPU: the case that ASTRA-sim publishes times for.
TimedProgram overlapped_all_reduces(int gpus, bool contended) {
  ProgramBuilder builder({.tensor = 1, .pipeline = 1, .data = gpus});
  std::int32_t computed = -1;
  for (int layer = 0; layer < 64; ++layer) {
    computed = builder.kernels(0, 2_ms, {computed, -1}, launch_of(50_us));
    builder.all_reduce(0, GroupKind::data, Bytes(50 * kMegabyte), StreamKind::data_comm,
                       {computed, -1});
  }
  // Another stream on the same links keeps the closed form away: every collective is a flow.
  if (contended) builder.all_reduce(0, GroupKind::data, 1_MiB, StreamKind::tensor_comm);
  ClusterSpec cluster = switched_node(8);
  cluster.node_count = gpus / 8;
  cluster.node.nic_count = 8;
  cluster.node.nic_bandwidth = 25_GBps;
  cluster.node.nic_latency = 1_us;
  return builder.on(cluster);
}

double simulation_seconds(const TimedProgram& program) {
  return std::stod(run_forked([&] {
    const auto start = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(simulate(program));
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    return std::to_string(time.count());
  }));
}

void measure(benchmark::State& state, const TimedProgram& program) {
  for (auto _ : state) state.SetIterationTime(simulation_seconds(program));
  std::int64_t ops = 0;
  for (const RankProgram& stage : program.program.stages) {
    ops += static_cast<std::int64_t>(stage.ops.size()) * program.program.layout.tensor *
           program.program.layout.data;
  }
  state.SetItemsProcessed(state.iterations() * ops);
  state.counters["ops"] = static_cast<double>(ops);
}

void four_gpus_300_ops(benchmark::State& state) {
  measure(state, tensor_parallel_step(4, 300));
}
BENCHMARK(four_gpus_300_ops)->UseManualTime()->Unit(benchmark::kMillisecond);

void four_gpus_5400_ops(benchmark::State& state) {
  measure(state, tensor_parallel_step(4, 5400));
}
BENCHMARK(four_gpus_5400_ops)->UseManualTime()->Unit(benchmark::kMillisecond);

void sixty_four_gpus_tp8_pp4_dp2(benchmark::State& state) {
  measure(state, pipeline_step({.tensor = 8, .pipeline = 4, .data = 2}, 16, 24));
}
BENCHMARK(sixty_four_gpus_tp8_pp4_dp2)->UseManualTime()->Unit(benchmark::kMillisecond);

void sixty_four_layers_overlapped(benchmark::State& state) {
  measure(state, overlapped_all_reduces(static_cast<int>(state.range(0)), state.range(1) != 0));
}
BENCHMARK(sixty_four_layers_overlapped)
    ->ArgNames({"gpus", "flows"})
    ->ArgsProduct({{8, 64, 256, 1024}, {0, 1}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tessera::test

BENCHMARK_MAIN();
