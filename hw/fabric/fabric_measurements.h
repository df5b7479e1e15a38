#pragma once

#include "hw/findings.h"
#include "hw/node.h"

namespace tessera {

/// What was measured of `cluster` at its size: `measured_all_reduce` and `measured_all_gather`, or
/// what `measured_fabric` says, between two of its entries on the line through the logarithms of
/// nodes and rates (a fabric that halves with each doubling of nodes is one such line). Zeros where
/// nothing was measured and for a single node. Expects a cluster without problems.
FabricMeasurement measurement_of(const ClusterSpec& cluster);

/// Whether no entry of `measured_fabric` has the cluster's number of nodes.
bool is_between_measurements(const ClusterSpec& cluster);

/// `measured_fabric` ascends, has all-gathers throughout or nowhere, and reaches the cluster's
/// size; nothing is measured twice, nor an all-gather alone.
void check_measured_fabric(const ClusterSpec& cluster, Findings& findings);

}  // namespace tessera
