#pragma once

#include <filesystem>
#include <string>

#include "sim/plan/timed_program.h"

namespace tessera {

/// Writes a step as Chakra execution traces, for ASTRA-sim and other simulators: `PREFIX.<rank>.et`
/// for every rank, a stream of nodes with their dependencies, and `PREFIX.groups.json`, the groups
/// that `pg_name` of collectives refers to ({"1": [ranks], ...}). A segment of kernels is a COMP
/// node with its predicted duration (whole microseconds, as the schema has it, and `duration_ns`),
/// its FLOPs
/// (`num_ops`) and bytes (`tensor_size`); `product_ns` says how much of it are matrix products and
/// attention, `host_ns` what the host needs to launch a node, `host_sync` that it waits for its
/// end: for chakra_replay.h, other readers ignore them. `comm_size` is what every rank gives.
/// Copies to and from host memory are MEM nodes; a ring shift is a SEND and a RECV. `version`
/// stands in the metadata: "1.0.0" or "0.0.4", which share these fields. Throws InputError where a
/// file cannot be written. Source: MLCommons Chakra, schema/protobuf/et_def.proto.
void write_chakra(const std::filesystem::path& prefix, const TimedProgram& timed,
                  const std::string& version);

}  // namespace tessera
