#pragma once

#include <filesystem>
#include <string>

#include "sim/config/files/csv.h"

namespace tessera {

/// A file of published figures, read by the names of its columns.
class PublishedTable {
 public:
  /// Throws InputError for what read_csv() cannot read.
  explicit PublishedTable(const std::filesystem::path& file) : table_(read_csv(file)) {}

  const std::vector<CsvTable::Row>& rows() const { return table_.rows; }
  /// Throws InputError where the file has no such column.
  const std::string& text(const CsvTable::Row& row, const std::string& column) const;
  /// Throws InputError naming the row where the field is no number.
  double number(const CsvTable::Row& row, const std::string& column) const;
  /// The row whose `column` is `value`, and whose `other` is `other_value`. Throws InputError where
  /// there is none.
  const CsvTable::Row& find(const std::string& column, const std::string& value,
                            const std::string& other, const std::string& other_value) const;

 private:
  CsvTable table_;
};

}  // namespace tessera
