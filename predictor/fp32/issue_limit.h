#pragma once

#include "predictor/gpu/gpu_traits.h"
#include "workloads/program/kernel.h"

namespace tessera {

/// Least time of a kernel that moves memory, by the instructions that its elements take: SMs start
/// so many per clock, however fast the memory is. Elements of 16 bits come twice as fast as those
/// of 32. 0 = not known for such a kernel, or what was timed contains it.
double issue_seconds(const Kernel& kernel, const GpuTraits& gpu);

/// `moved` [s], the time of the kernel's traffic, with that limit.
double with_issue_limit(double moved, const Kernel& kernel, const GpuTraits& gpu);
/// The same of a kernel whose elements are known to take `instructions` together; 0 = not known.
double with_instructions(double moved, double instructions, const GpuTraits& gpu);

}  // namespace tessera
