#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "sim/remat/graph.h"

namespace tessera::remat {

/// A graph to plan for, and what its file says besides.
struct Instance {
  Graph graph;
  std::string format;               ///< "golden", "monet", "poet", "operators", "dtr"
  int count = 1;                    ///< instances in the file
  std::optional<ByteCount> memory;  ///< the budget that the file asks for
  /// DTR logs: peak by reference counts, as the framework released its tensors.
  std::optional<ByteCount> release_peak;
};

/// Reads instance `number` (from 0) of a JSON graph or a DTR operator log; the content tells the
/// format. Throws InputError naming file, line or field, and value.
///
/// JSON graphs are objects with
/// - `instances[]` of {dur, size, work, deps, keep, M}: sizes in bytes, times in ns; or
/// - `mem_kib[]`, `cpu_centi_ms[]`, `fixed_kib[]`, `edges[[producer, consumer]]` (MONeT's DAGs; the
///   last fixed_kib is always held; workspaces are not counted, as in the reference solutions); or
/// - `nodes[]` of {id, kind, runtime_s, out_bytes, param_bytes, deps} (POET's layer models;
///   parameters are always held, input layers are never run again); or
/// - `ops[]` of {name, time_ns, inputs, out_bytes, workspace, fixed}, `first_backward`: tensors are
///   numbered from 0 in the order in which operators make them, any number by each; `inputs` are
///   such numbers; what is `fixed` is never run again. `tessera.torch` writes these.
///
/// DTR logs (one JSON object per line): a view shares the storage of its argument and its time is
/// charged to that storage's producer; a mutation makes a new version; constants are always held.
Instance read_instance(const std::filesystem::path& file, int number = 0);

}  // namespace tessera::remat
