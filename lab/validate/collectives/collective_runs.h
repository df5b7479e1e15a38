#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "hw/units/quantity.h"
#include "lab/validate/bad_rows.h"
#include "lab/validate/runs/row_rules.h"
#include "sim/collectives/collective.h"

namespace tessera {

/// A measured collective: one row of a file in the format of docs/collectives.md.
struct CollectiveRun {
  std::string where;  ///< file:line
  std::string system, gpu, intra_link, inter_link, dtype, launch;
  int ranks = 0;
  int nodes = 1;
  CollectiveKind collective = CollectiveKind::all_reduce;
  Bytes bytes;
  Seconds measured;
  std::vector<std::pair<std::string, std::string>> columns;  ///< the row as it is, by column
  std::string fault;  ///< why the row cannot be used; empty if it can

  /// The field of a column; empty where the file lacks it.
  const std::string& field(const std::string& column) const;
};

/// Throws InputError with every row that cannot be read, or gives these a fault: columns gpu,
/// n_gpus, n_nodes, collective, bytes and time_us are needed; system, intra_link, inter_link,
/// dtype, launch and others are used where they are there; `rules` say how collectives were
/// launched where the word for it has two meanings.
std::vector<CollectiveRun> read_collective_runs(const std::filesystem::path& file,
                                                const RowRules& rules,
                                                BadRows bad_rows = BadRows::refuse);

}  // namespace tessera
