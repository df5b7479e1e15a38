#pragma once

/// Operands that the L2 still holds when their turn comes.
namespace tessera {

/// What the L2 delivers at least, in bytes per clock and SM: the traffic of products on A100 that
/// its L2 held came no slower than its memory has it (2.04 TB/s, 108 SMs, 1.41 GHz).
inline constexpr double kL2PerClock = 13.4;
/// Share of the L2 that operands may fill and still be there when their turn comes again: products
/// of L40S (96 MiB) in turns of five come from the memory from 16 MiB on
/// (measurements/kernels_2026/tensor_core_l40s.csv).
inline constexpr double kHeldShare = 0.8;

}  // namespace tessera
