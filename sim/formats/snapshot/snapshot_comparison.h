#pragma once

#include <string>

#include "sim/formats/snapshot/memory_snapshot.h"

namespace tessera {

/// A measured snapshot, and what a simulated one has at its own peak.
struct SnapshotComparison {
  SnapshotPeak measured;
  SnapshotPeak simulated;
};

/// The peak of a snapshot by use, a line each, with the largest of what lives at the end.
std::string table_text(const SnapshotPeak& peak, const MemorySnapshot& snapshot);
/// Both peaks by use and their difference, the largest difference first.
std::string table_text(const SnapshotComparison& comparison);
/// The same as JSON, without `simulated` where there is none.
std::string json_text(const SnapshotPeak& measured, const SnapshotPeak* simulated);

}  // namespace tessera
