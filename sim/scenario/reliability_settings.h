#pragma once

#include <cstdint>
#include <string>

#include "hw/units/quantity.h"

namespace tessera {

/// What a job does while nodes are missing.
enum class MissingNodes : std::uint8_t { restart, elastic, replica_wise };

/// What the global batch becomes while replicas are missing.
enum class BatchWithout : std::uint8_t {
  kept,    ///< those that are left take more micro-batches
  smaller  ///< each takes as many as before, so a step trains fewer samples
};

/// The section `reliability` of a scenario: what a long run meets. No step depends on it.
struct ReliabilitySettings {
  std::string failures;                    ///< name or file; empty: none
  double failures_per_1000_node_days = 0;  ///< 0: not given
  Seconds detection;
  Seconds repair;        ///< 0: the node restarts
  Seconds restart_time;  ///< 0: 5 min and reading the checkpoint
  Seconds checkpoint_interval = Seconds(3600);
  Seconds checkpoint_time;           ///< 0: from its bytes and the links
  BytesPerSecond storage_bandwidth;  ///< 0: no limit
  Seconds memory_interval;           ///< 0: no copies in memory
  Seconds local_interval;            ///< 0: no copies on the nodes' drives
  double incremental_share = 1;      ///< of a checkpoint's bytes, in (0, 1]; 1: all are whole
  int full_every = 10;               ///< of so many checkpoints one is whole
  bool asynchronous = false;
  MissingNodes policy = MissingNodes::restart;
  int spares = 0;
  int repair_crews = 0;  ///< 0: all at a time
  int least_replicas = 1;
  BatchWithout batch = BatchWithout::kept;  ///< of jobs that train on with fewer replicas
  bool keep_slow_nodes = false;             ///< until the next stop, rather than to stop for them
  Seconds collective_timeout;               ///< 0: nobody waits for one
  Seconds heartbeat;                        ///< without which a node counts as dead; 0: none
  double progress_steps = 0;                ///< without the end of one; 0: nobody counts

  bool operator==(const ReliabilitySettings&) const = default;
};

}  // namespace tessera
