#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/config/files/csv.h"

namespace tessera {

/// Fields of a file of measurements that were labelled wrongly, put right.
struct AppliedCorrections {
  struct Field {
    std::string id, column, before, after, reason;
  };
  std::filesystem::path file;  ///< empty: there were none; of several "a.csv, b.csv"
  std::vector<Field> fields;

  /// Those of a further file.
  void add(const AppliedCorrections& other);
};

/// X_corrections.csv beside X.csv.
std::filesystem::path corrections_beside(const std::filesystem::path& file);

/// Changes fields of `table` as `file` says: columns id, column, value (empty: takes the figure
/// out) and, optional, reason. Throws InputError for ids and columns that `table` lacks.
AppliedCorrections apply_corrections(const std::filesystem::path& file, CsvTable& table);

}  // namespace tessera
