#pragma once

#include <string>

#include "app/sweep/database.h"
#include "app/sweep/sweep_store.h"

namespace tessera {

/// A row of the table `results` with the hash of its content.
struct StoredResultRow {
  StoredResult result;
  std::string outcome;  ///< by its name
  std::string hash;

  static constexpr const char* kColumns = "results.key, outcome, answer, wall_s, results.hash";
  /// From kColumns, of which the first is column number `first`.
  static StoredResultRow at(const Statement& query, int first);
  std::string right_hash() const;
  bool sound() const { return hash == right_hash(); }
};

/// A row of the table `points` with the hash of its content.
struct StoredPointRow {
  std::int64_t number = 0;
  std::string fields;
  std::string key;  ///< empty: the point is invalid, as `reason` says
  std::string reason;
  std::string hash;

  static constexpr const char* kColumns = "number, fields, points.key, reason, points.hash";
  static StoredPointRow at(const Statement& query);
  std::string right_hash() const;
  bool sound() const { return hash == right_hash(); }
};

}  // namespace tessera
