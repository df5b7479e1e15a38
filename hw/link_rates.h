#pragma once

#include "hw/units/quantity.h"

namespace tessera {

/// What links give of their line rate, and how long a hop takes, where a description does not say.
/// The one table of it: single GPUs, boxes that nobody described, imported and published systems.

/// Share of an NVLink's line rate that rings reach, by generation. NCCL plans with 18 of 20, 20 of
/// 25, 20.6 of 25 and 40.1 of 50 GB/s (NVIDIA/nccl src/graph/topo.h); on NVLink 2 it planned with
/// 22 of 25 before 2.15, which is what a DGX-1 reaches
/// (docs/decisions/0036-a-row-is-a-scenario.md).
double nccl_nvlink_share(int generation);

/// NCCL's share of a PCIe x16 link: 12 of 15.75 GB/s, 24 of 31.5, 48 of 63 (topo.h).
inline constexpr double kNcclPcieShare = 0.762;

/// Pinned copies reach 13.3 of 15.75 GB/s (gen 3, V100), 24.8-26.3 of 31.5 (gen 4, A100) and
/// 51-55.6 of 63 (gen 5, H100): 0.79 to 0.88 of the line rate. Sources: Rapid-LLM v100.yaml, NVIDIA
/// forum 352186, Azure/AI-benchmarking-guide, NVbandwidth sample output.
inline constexpr double kPinnedCopyShare = 0.82;

/// Copies between two GPUs that cannot read each other's memory, through the host's: 1 to 5 GB/s,
/// the middle of what users report (recalled).
inline constexpr BytesPerSecond kStagedCopy = 3_GBps;

/// Rings of 400 Gb/s InfiniBand reach 45.7 to 47 of 50 GB/s per NIC (nccl-tests logs).
inline constexpr double kNicShare = 0.92;

/// One hop over NVLink; stas00/ml-engineering network/README.md.
inline constexpr Seconds kNvlinkHop = 1_us;
/// One way over a PCIe switch or root port; recalled, not confirmed.
inline constexpr Seconds kPcieHop = 0.5_us;
/// HDR InfiniBand adapter, and as much for a switch (stas00/ml-engineering network/README.md).
inline constexpr Seconds kInfinibandHop = 0.6_us;
inline constexpr Seconds kRoceHop = 2_us;  ///< recalled
/// What EFA's plug-in tells NCCL's tuner of a message (aws/aws-ofi-nccl, platform data of
/// p4d.24xlarge, p4de and p5; recalled). Two p4de start an all-reduce, with two such messages,
/// after 161 us.
inline constexpr Seconds kEfaHop = 75_us;
/// The same from p5en on (recalled).
inline constexpr Seconds kNewEfaHop = 35_us;

}  // namespace tessera
