#include "sim/plan/library_memory.h"

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

}  // namespace

LibraryMemory library_memory(const StepOptions& step, const GpuSpec& gpu) {
  LibraryMemory memory;
  const int handles = step.mode == StepMode::inference ? 1 : 2;
  memory.workspaces = Bytes(handles * cublas_workspace(step, gpu).value());
  if (step.framework.transformer_engine) memory.workspaces += product_workspace(gpu);
  return memory;
}

}  // namespace tessera
