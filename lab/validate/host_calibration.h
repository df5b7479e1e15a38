#pragma once

#include <string>

#include "sim/formats/kineto_host.h"
#include "workloads/host_table.h"

namespace tessera {

/// The table that a scenario's `training.host` names: the mean of every kind of call that the trace
/// has; of others the framework profile's figure stays.
HostTable host_table_of(const HostTrace& trace);

/// What `tessera calibrate host` answers. JSON is of schema "tessera.host_calibration/1".
std::string host_calibration_table(const HostTable& host, const HostTrace& trace);
std::string host_calibration_json(const HostTable& host, const HostTrace& trace);

}  // namespace tessera
