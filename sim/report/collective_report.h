#pragma once

#include <string>
#include <vector>

#include "hw/topology/topology.h"
#include "sim/collectives/collective_tuning.h"

namespace tessera {

/// One collective alone on a cluster, with the figures that nccl-tests prints.
struct CollectiveReport {
  CollectiveCall call;
  int ranks = 0;
  int nodes = 0;
  CollectiveCost cost;
  double algorithm_bandwidth = 0;  ///< bytes/s: buffer over time
  double bus_bandwidth = 0;        ///< bytes/s: that times the wire traffic per buffer byte
  std::string bottleneck;          ///< name of the link that is busy longest; empty without one
  std::string bound;  ///< "latency" or "bandwidth": which of the two is more than half of the time
};

CollectiveReport report_collective(const Topology& topology, const CollectiveCall& call,
                                   const std::vector<int>& ranks, const CollectiveTuning& tuning);

/// Bytes on the wire per byte of the buffer, as nccl-tests counts them: 2(n-1)/n of an all-reduce,
/// (n-1)/n of gathers, scatters and all-to-alls, 1 of the rest.
double bus_factor(CollectiveKind kind, int ranks);

/// One collective in words, or several sizes as the table of nccl-tests.
std::string collective_report_text(const std::vector<CollectiveReport>& reports);
std::string collective_report_json(const std::vector<CollectiveReport>& reports);

/// "0-3,8,10-11" -> GPUs in that order. Throws InputError for anything else, a GPU named twice or
/// one that the cluster lacks.
std::vector<int> parse_ranks(const std::string& text, int gpu_count);

}  // namespace tessera
