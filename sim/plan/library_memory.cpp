#include "sim/plan/library_memory.h"

#include "workloads/optimizers/optimizer_step.h"

namespace tessera {
namespace {

Bytes cublas_workspace(const StepOptions& step, const GpuSpec& gpu) {
  if (step.framework.deterministic) return Bytes(8 * 4096 * 1024);
  if (gpu.architecture >= Architecture::hopper) return 32_MiB;
  return Bytes(2 * 4096 * 1024 + 8 * 16 * 1024);
}

Bytes product_workspace(const GpuSpec& gpu) {
  return gpu.architecture >= Architecture::hopper ? 32_MiB : 4_MiB;
}

Bytes communicator_memory(const NodeSpec& node, bool leaves_node) {
  constexpr std::int64_t kSimple = 4LL << 20;
  constexpr std::int64_t kLowLatency = 512LL * 8 * 8 * 16;      // threads, lines, steps, bytes
  constexpr std::int64_t kLowLatency128 = 640LL * 120 * 8 * 8;  // threads, elements, steps, bytes
  constexpr std::int64_t kPeers = 3;
  const bool switched = node.interconnect == GpuInterconnect::nvswitch;
  const std::int64_t channels = leaves_node ? 8 : switched ? 24 : 12;
  const std::int64_t sides = leaves_node ? 2 : 1;
  return Bytes(channels * sides * kPeers * (kSimple + kLowLatency + kLowLatency128));
}

/// The groups follow Megatron's order tp-dp-pp.
Bytes communicators(const ParallelLayout& layout, const NodeSpec& node) {
  const int gpus = node.gpu_count;
  Bytes sum;
  const auto add = [&](int members, int extent) {
    if (members > 1) sum += communicator_memory(node, extent > gpus);
  };
  add(layout.tensor, layout.tensor);
  add(layout.data, layout.tensor * layout.data);
  add(layout.pipeline, layout.world_size());
  add(layout.pipeline, layout.world_size());  // the first and the last stage
  add(layout.world_size(), layout.world_size());
  return sum;
}

/// Moments are made by the first update (torch/optim/adamw.py, _init_group), master weights ahead
/// of the first step. DeepSpeed makes all states ahead (stage_1_and_2.py,
/// initialize_optimizer_states).
double late_states(const StepOptions& step) {
  if (step.mode != StepMode::training || step.optimizer == OptimizerKind::none) return 0;
  if (step.framework.deepspeed_zero || step.framework.planned_memory) return 0;
  const auto states = static_cast<double>(state_bytes(step, 1)[MemoryCategory::optimizer].value());
  const double master = step.formats.master_weights ? element_bytes(Precision::fp32) : 0;
  return states > 0 ? (states - master) / states : 0;
}

}  // namespace

LibraryMemory library_memory(const StepOptions& step, const NodeSpec& node) {
  const GpuSpec& gpu = node.gpu;
  LibraryMemory memory;
  const int handles = step.mode == StepMode::inference ? 1 : 2;
  memory.context = step.framework.context;
  memory.communicators = communicators(step.layout, node);
  memory.allocator.workspaces = Bytes(handles * cublas_workspace(step, gpu).value());
  if (step.framework.transformer_engine) memory.allocator.workspaces += product_workspace(gpu);
  memory.allocator.capacity = gpu.memory - memory.context - memory.communicators;
  memory.allocator.late_states = late_states(step);
  memory.allocator.planned = step.framework.planned_memory;
  return memory;
}

}  // namespace tessera
