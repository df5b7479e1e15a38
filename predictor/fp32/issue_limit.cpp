#include "predictor/fp32/issue_limit.h"

#include "predictor/fp32/power_mean.h"

namespace tessera {
namespace {

// GELU on 16-bit elements of an A100-SXM4-80GB (kernels/memory_bound_fp16.csv): 2.13 elements per
// SM and clock where the memory allows 3.0, so 54 instructions for its 15 FLOPs
// (workloads/program/pointwise_flops.h). Adds reach what the memory allows. What an element takes
// beside its arithmetic (load, convert, store, count) is a judgement.
constexpr double kPointwise = 8, kPerFlop = 3.1;
// A strided loop finds every element of every operand by divisions over the dimensions (PyTorch,
// cuda/detail/OffsetCalculator.cuh): about 40 integer instructions for two operands in three
// dimensions, at half rate. Judgement from the code: nobody timed one.
constexpr double kStrided = 80;
constexpr double kTakeOver = 4;  ///< how sharply one limit follows on the other; judgement

/// What was timed in fp32 contains its instructions.
bool is_short(const Kernel& kernel) {
  return kernel.precision != Precision::fp32 && kernel.precision != Precision::tf32;
}

double instructions_of(const Kernel& kernel) {
  const double elements = static_cast<double>(kernel.rows) * static_cast<double>(kernel.cols);
  if (kernel.strided) return elements * kStrided;
  if (kernel.kind != KernelKind::elementwise || !is_short(kernel)) return 0;
  return elements * kPointwise + kPerFlop * kernel.flops.value();
}

}  // namespace

double issue_seconds(const Kernel& kernel, const GpuTraits& gpu) {
  return gpu.instructions > 0 ? instructions_of(kernel) / gpu.instructions : 0;
}

double with_issue_limit(double moved, const Kernel& kernel, const GpuTraits& gpu) {
  return with_instructions(moved, instructions_of(kernel), gpu);
}

double with_instructions(double moved, double instructions, const GpuTraits& gpu) {
  if (instructions <= 0 || gpu.instructions <= 0) return moved;
  return smooth_max(moved, instructions / gpu.instructions, kTakeOver);
}

}  // namespace tessera
