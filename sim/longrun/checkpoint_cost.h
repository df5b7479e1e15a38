#pragma once

#include <algorithm>
#include <string>

#include "hw/units/quantity.h"
#include "sim/plan/timed_program.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// What a checkpoint holds and how long it takes to write. Everything that leaves a node goes from
/// its GPUs over PCIe to its memory, from there over its NICs to the storage, all at the same time,
/// so the slowest of the three decides, or what they share on the way.
struct CheckpointCost {
  Bytes bytes;          ///< of the job: weights, master weights, moments, once each
  int writers = 1;      ///< GPUs that hold a part of them
  Bytes bytes_per_gpu;  ///< of a writer
  Seconds to_host;      ///< GPU to host memory
  Seconds to_network;   ///< host memory through the NICs; 0 where the node has none
  Seconds to_storage;   ///< at the bandwidth of the storage; 0 where it is not known
  /// From the hosts into the storage, where links that are shared on the way hold it up; else 0.
  Seconds simulated;
  Seconds to_drives;    ///< of the node itself, instead; 0 where it has none
  std::string slowest;  ///< "PCIe", "NIC", "storage" or "links on the way"

  /// All the way.
  Seconds total() const { return std::max({to_host, to_network, to_storage, simulated}); }
};

/// `storage`: what it takes from the whole job; 0: not known, and no limit.
CheckpointCost checkpoint_cost(const Scenario& scenario, const TimedProgram& timed,
                               BytesPerSecond storage);

/// `cost` with the time of a simulated write from the hosts into the storage, which counts where it
/// is more than 1.02 of what each of its links alone would take.
CheckpointCost with_simulated_write(CheckpointCost cost, Seconds write);

/// Reading it again, by all replicas: those that wrote nothing read the same parts.
Seconds restore_time(const Scenario& scenario, const CheckpointCost& cost, BytesPerSecond storage);

}  // namespace tessera
