#pragma once

#include <string>

#include "hw/gpu.h"

namespace tessera {

/// The facts of a GPU that the kernel models and the rules for unseen GPUs look at.
struct GpuTraits {
  double flops = 0;              ///< FP32 peak [FLOP/s]
  double bandwidth = 0;          ///< memory bandwidth [B/s]
  double l2 = 0;                 ///< last-level cache [B]
  double sms = 0;                ///< streaming multiprocessors
  double tdp = 0;                ///< board power [W]; 0 = not published
  bool pascal = false;           ///< runs the cuBLAS kernels that were written for Maxwell
  int lanes_per_scheduler = 16;  ///< FP32 lanes that one warp scheduler feeds: 16 or 32
  int efficiency_steps = 0;      ///< process and design generations after Pascal
  bool hbm = false;              ///< stacked memory: the large die of a generation (x.0)
};

/// Throws InputError naming the figure that `gpu` lacks (FP32 peak, bandwidth, SM count, L2).
GpuTraits gpu_traits(const GpuSpec& gpu);

/// GPUs with one die key differ in board only (form factor, power, memory size), e.g. "GA100".
/// Empty where no sibling board is known.
std::string die_of(const GpuSpec& gpu);

}  // namespace tessera
