#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hw/units/input_error.h"
#include "sim/config/files/csv.h"

namespace tessera {

/// The fields of one row of a file of measured steps; collects what cannot be read.
class TrainingRowReader {
 public:
  TrainingRowReader(const CsvTable& table, const CsvTable::Row& row, std::vector<Problem>& problems)
      : table_(table), row_(row), problems_(problems) {}

  std::string where() const { return table_.where(row_); }
  /// Empty where the column is absent.
  std::string text(const std::string& column) const;
  /// Whether the row states something in the column.
  bool states(const std::string& column) const { return !text(column).empty(); }
  /// A count from 1 to 10^9; `missing` (if above 0) where the field is empty.
  std::int64_t count(const std::string& column, std::int64_t missing = 0) const;
  /// A number above 0.
  double positive(const std::string& column) const;
  /// 1 or 0; none where the field is empty.
  std::optional<bool> flag(const std::string& column) const;
  /// The words between blanks.
  std::vector<std::string> words(const std::string& column) const;

  void complain(const std::string& column, const char* hint) const;

 private:
  const CsvTable& table_;
  const CsvTable::Row& row_;
  std::vector<Problem>& problems_;
};

}  // namespace tessera
