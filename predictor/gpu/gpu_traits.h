#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "hw/gpu.h"

namespace tessera {

/// Generations of cuBLAS' FP32 kernels, as their names start (maxwell_sgemm_128x64_nn): a GPU runs
/// the newest that is not newer than itself. Hopper and Ada have no FP32 kernels of their own.
enum class SgemmFamily : std::uint8_t { maxwell, volta, ampere };
inline constexpr std::size_t kSgemmFamilies = 3;

/// The facts of a GPU that the kernel models and the rules for unseen GPUs look at.
struct GpuTraits {
  double flops = 0;         ///< FP32 peak [FLOP/s]
  double bandwidth = 0;     ///< memory bandwidth [B/s]
  double l2 = 0;            ///< last-level cache [B]
  double sms = 0;           ///< streaming multiprocessors
  double instructions = 0;  ///< that all SMs start per second, counted by lane
  double tdp = 0;           ///< board power [W]; 0 = not published
  double threads = 2048;    ///< that an SM holds
  SgemmFamily family = SgemmFamily::ampere;
  int lanes_per_sm = 64;         ///< FP32 lanes that share one shared memory: 64 or 128
  double dense_clock_share = 1;  ///< clock of dense load / clock of the FP32 peak, in (0, 1]
  int efficiency_steps = 0;      ///< process and design generations after Pascal
  bool hbm = false;              ///< stacked memory: the large die of a generation (x.0)
  bool inline_ecc = false;       ///< check bits lie among the data, and are moved with it
};

/// Process and design generations after Pascal.
int efficiency_steps(Architecture architecture);

/// Arithmetic per joule against Pascal, after `steps` generations, which are cut to 0 to 3. NVIDIA
/// states 1.5 for Volta's SM against Pascal's and 2.7 for L4 against T4 at the same power (two
/// steps, taken as equal). Only the first step has measured cards on both sides (P4, T4).
double efficiency_gain(int steps);

/// Memory chips on the board whose driver shows 15/16 of them: the rest holds check bits (A10, A40,
/// L4, L40S, T4; boards with HBM keep them apart, GeForce cards have none).
bool has_inline_ecc(const GpuSpec& gpu);

/// Throws InputError naming the figure that `gpu` lacks (FP32 peak, bandwidth, SM count, L2).
GpuTraits gpu_traits(const GpuSpec& gpu);

/// The same as FP32 products see it: with the peak of matrix cores where the GPU multiplies FP32 on
/// them (AMD since CDNA1).
GpuTraits product_traits(const GpuSpec& gpu);

}  // namespace tessera
